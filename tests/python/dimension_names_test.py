"""Names of dimensions mean nothing for inputs that nobody reads, and are not believed if a run
contradicts them. onnxruntime runs the same models on the same arrays."""

import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from programs import run_program
from small_models import model_bytes, node, tensor_type

FLOAT = TensorProto.FLOAT


def ones(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def expected_of(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def check(results, expected):
    for result, right in zip(results, expected, strict=True):
        assert result.shape == right.shape and result.dtype == right.dtype
        np.testing.assert_array_equal(result, right)


# --- Inputs that nobody reads -------------------------------------------------------------------------

TWO = {"ids": ["B", "S"], "mask": ["B", "S"]}
IDS = [node("Neg", "ids", "y")]
# Models in which nothing reads `mask`, which shares its dimensions with `ids`.
UNREAD = {
    "no node": model_bytes(IDS, TWO, "y"),
    "a dead node": model_bytes([*IDS, node("Exp", "mask", "dead")], TWO, "y"),
    "nodes whose results cancel out": model_bytes(
        [node("Shape", "mask", "s"), node("Sub", "s s", "none"),
         node("ReduceSum", "none", "zero", keepdims=0),
         node("Cast", "zero", "float", to=FLOAT), node("Neg", "ids", "n"),
         node("Add", "n float", "y")], TWO, "y"),
    "the first input": model_bytes(IDS, dict(reversed(TWO.items())), {"y": ["B", "S"]}),
    "one name for everything": model_bytes(
        IDS, {"ids": ["N", "N"], "mask": ["N", "N"]}, {"y": ["N", "N"]}),
    "an unread input of another type": model_bytes(
        IDS, {**TWO, "mask": tensor_type(TensorProto.INT64, ["B", "S"])}, "y"),
}


def feeds(model):
    """Inputs of several sizes; those of `mask` differ from those of `ids`."""
    dtype = np.int64 if model == UNREAD["an unread input of another type"] else np.float32
    for ids, mask in (((1, 6), (1, 6)), ((1, 7), (1, 6)), ((2, 5), (3, 9)), ((4, 0), (1, 2)),
                      ((1, 6), (0, 0))):
        yield {"ids": ones(*ids), "mask": ones(*mask, dtype=dtype)}


@pytest.fixture(params=UNREAD.values(), ids=UNREAD.keys())
def unread(request):
    return request.param


def test_unread_inputs_bind_nothing(tessera, unread):
    executor = tessera.load(unread).bind({"ids": (1, 6), "mask": (1, 6)}, threads=1)
    plans = set()
    for inputs in feeds(unread):
        check(executor.run(inputs), expected_of(unread, inputs))
        check(executor.run({"ids": inputs["ids"]}), expected_of(unread, inputs))
        plans.add(inputs["ids"].shape)
    # Another size of an unread input needs no other plan.
    assert {plan.shapes["ids"] for plan in map(as_tuples, executor.shapes().plans)} == plans


def as_tuples(plan):
    plan.shapes.update({name: tuple(shape) for name, shape in plan.shapes.items()})
    return plan


@pytest.mark.parametrize("options", ({}, {"fixed_shapes": True}, {"optimize": True},
                                     {"backends": ["reference"]}))
def test_any_shape_may_be_given_for_unread_inputs(tessera, unread, options):
    model = tessera.load(unread)
    for shapes in ({"ids": (2, 3)}, {"ids": (2, 3), "mask": (7, 9)}):
        executor = model.bind(shapes, threads=1, **options)
        for inputs in feeds(unread):
            inputs["ids"] = ones(2, 3)
            check(executor.run(inputs), expected_of(unread, inputs))


def test_bound_memory_of_unread_inputs(tessera, unread):
    executor = tessera.load(unread).bind({"ids": (1, 6), "mask": (1, 6)}, threads=1)
    for inputs in feeds(unread):
        expected = expected_of(unread, inputs)
        for name, array in inputs.items():
            executor.bind_input(name, array)
        y = np.zeros_like(expected[0])
        executor.bind_output("y", y)
        executor.run_bound()
        check([y], expected)
        check(executor.run(), expected)
    executor.clear_bindings()
    check(executor.run(inputs), expected)


def test_memory_of_unread_inputs_beside_fixed_ones(tessera):
    """`ids` has one shape, so there is one plan."""
    model = model_bytes(IDS, {"ids": [2, 3], "mask": ["B", 3]}, "y")
    executor = tessera.load(model).bind(threads=1)
    executor.bind_input("ids", ones(2, 3))
    for rows in (2, 5, 0):
        executor.bind_input("mask", ones(rows, 3))
        check(executor.run(), [-ones(2, 3)])


def test_sessions_and_pools_with_unread_inputs(tessera, unread):
    ort = tessera.onnxruntime
    session = ort.InferenceSession(unread)
    binding = session.io_binding()
    with tessera.Pool(tessera.load(unread), {"ids": (1, 6), "mask": (1, 6)}, executors=2) as pool:
        for inputs in feeds(unread):
            expected = expected_of(unread, inputs)
            check(session.run(None, inputs), expected)
            for name, array in inputs.items():
                binding.bind_cpu_input(name, array)
            binding.bind_output("y")
            session.run_with_iobinding(binding)
            check(binding.copy_outputs_to_cpu(), expected)
            check(pool.submit(inputs).result(), expected)


def test_the_backend_of_onnx_with_unread_inputs(unread):
    import tessera.backend

    prepared = tessera.backend.prepare(onnx.load_from_string(unread))
    for inputs in feeds(unread):
        check(prepared.run(inputs), expected_of(unread, inputs))


def test_what_is_declared_of_an_unread_input_still_holds(tessera):
    """As in onnxruntime: its element type, its rank, and dimensions that are numbers."""
    model = model_bytes(IDS, {"ids": ["B", "S"], "mask": ["B", 4]}, "y")
    executor = tessera.load(model).bind({"ids": (1, 6)}, threads=1)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for wrong in (ones(4), ones(1, 4, 1), ones(1, 5), ones(1, 4, dtype=np.int64)):
        inputs = {"ids": ones(1, 6), "mask": wrong}
        with pytest.raises(Exception, match="mask|input data type"):
            session.run(None, inputs)
        with pytest.raises(tessera.InvalidArgument, match="^input 'mask': expected float32"):
            executor.run(inputs)
        with pytest.raises(tessera.InvalidArgument, match="^input 'mask': expected float32"):
            executor.bind_input("mask", wrong)
    with pytest.raises(tessera.InvalidArgument, match="'mask': the model declares float32 Bx4"):
        tessera.load(model).bind({"ids": (1, 6), "mask": (1, 5)})


def test_sizes_that_are_used_do_count(tessera):
    """Nothing reads the elements of `mask`, but the result has its shape."""
    nodes = [node("Shape", "mask", "s"), node("Expand", "ids s", "y")]
    model = model_bytes(nodes, TWO, {"y": ["B", "S"]})
    executor = tessera.load(model).bind({"ids": (1, 1), "mask": (2, 6)}, threads=1)
    for ids, mask in (((1, 1), (2, 6)), ((1, 1), (3, 4)), ((3, 1), (1, 5)), ((2, 3), (2, 3))):
        inputs = {"ids": ones(*ids), "mask": ones(*mask)}
        check(executor.run(inputs), expected_of(model, inputs))


def test_the_program_with_unread_inputs(tessera_binary, tmp_path):
    (tmp_path / "model.onnx").write_bytes(UNREAD["no node"])
    np.save(tmp_path / "ids.npy", ones(1, 6))
    np.save(tmp_path / "mask.npy", ones(3, 2))
    for inputs in (["--input", "ids=ids.npy", "--input", "mask=mask.npy"],
                   ["--shape", "ids=1x6", "--shape", "mask=5x2", "--random", "1"],
                   ["--shape", "ids=1x6", "--random", "1"]):
        run_program(tessera_binary, "run", "model.onnx", *inputs, cwd=tmp_path)


# --- Names that are none, and names that are wrong ----------------------------------------------------

RELU = [node("Relu", "x", "y")]
NO_NAMES = ("?", "-1", "*", " ", " N", "N ", "a b", "batch-size", "3", "0", "N+1", "(N*2)", "max(N,4)",
            "x.y", "it's", "N'2", "~0", "", "a\nb")
NAMES = ("N", "None", "unk", "unk__123", "batch", "_", "dynamic_axes_1", "\u6279\u6b21")


@pytest.mark.parametrize("name", (*NO_NAMES, *NAMES))
def test_one_name_in_one_input(tessera, name):
    messages = []
    model = model_bytes(RELU, {"x": [1, 1, name, name]}, {"y": [1, 1, name, name]})
    executor = tessera.load(model, log=messages.append).bind({"x": (1, 1, 3, 4)}, threads=1)
    for shape in ((1, 1, 3, 4), (1, 1, 5, 5), (1, 1, 0, 4), (1, 1, 2, 1)):
        inputs = {"x": ones(*shape)}
        check(executor.run(inputs), expected_of(model, inputs))
    if name in NAMES:
        [message] = messages
        assert f"'{name}'" in message and "dimension 2 of input 'x'" in message
    else:
        assert not messages


def two_inputs(op, name):
    return model_bytes([node(op, ["a", "b"], ["y"])], {"a": [name, name], "b": [name, name]},
                       {"y": [name, name]})


@pytest.mark.parametrize("name", ("?", "N", "None"))
def test_one_name_in_several_inputs(tessera, name):
    """Each op has what it needs; a product needs other equal dimensions than the name says."""
    messages = []
    for op, pairs in {"MatMul": (((3, 4), (4, 5)), ((2, 7), (7, 2)), ((3, 3), (3, 3)), ((0, 2), (2, 3))),
                      "Add": (((3, 4), (1, 4)), ((3, 1), (1, 5)), ((2, 2), (2, 2)), ((1, 1), (0, 3)))
                      }.items():
        model = two_inputs(op, name)
        loaded = tessera.load(model, log=messages.append)
        session = tessera.onnxruntime.InferenceSession(model)
        executor = loaded.bind(dict(zip("ab", pairs[0])), threads=1)
        with tessera.Pool(loaded, dict(zip("ab", pairs[0])), executors=1) as pool:
            for shapes in (*pairs, *pairs):
                inputs = {key: ones(*shape) for key, shape in zip("ab", shapes)}
                expected = expected_of(model, inputs)
                check(executor.run(inputs), expected)
                check(session.run(None, inputs), expected)
                check(pool.submit(inputs).result(), expected)
                for key in "ab":
                    executor.bind_input(key, inputs[key])
                check(executor.run(), expected)
                executor.clear_bindings()
    assert len(messages) == (0 if name == "?" else 2), "once for each model"


@pytest.mark.parametrize("op, shapes, sizes", (
    ("Add", ((2, 3), (2, 4)), (3, 4)),
    ("Mul", ((5, 2), (4, 2)), (5, 4)),
    ("MatMul", ((2, 3), (4, 2)), (3, 4)),
    ("Where", ((2, 3), (2, 5)), (3, 5)),
    ("Add", ((0, 3), (2, 3)), (0, 2)),
))
def test_an_op_that_needs_equal_dimensions(tessera, op, shapes, sizes):
    nodes = [node(op, ["a", "b"], ["y"], name="join")]
    if op == "Where":
        nodes = [node("Less", "a b", "c", name="join"), node("Where", "c a b", "y")]
    model = model_bytes(nodes, {"a": ["N", "N"], "b": ["N", "N"]}, "y")
    with pytest.raises(tessera.InvalidArgument) as failed:
        tessera.load(model).bind(dict(zip("ab", shapes)))
    text = str(failed.value)
    assert "node 'join'" in text and "'a'" in text and "'b'" in text and "'N'" in text
    assert all(str(size) in text for size in sizes), text
    executor = tessera.load(model).bind({"a": (2, 2), "b": (2, 2)}, threads=1)
    inputs = {key: ones(*shape) for key, shape in zip("ab", shapes)}
    with pytest.raises(tessera.InvalidArgument, match="node 'join'"):
        executor.run(inputs)
    # It runs on.
    executor.run({"a": ones(2, 2), "b": ones(2, 2)})
    with pytest.raises(tessera.InvalidArgument, match="node 'join'"):
        tessera.onnxruntime.InferenceSession(model).run(None, inputs)


def test_a_name_gives_sizes_that_are_not_given(tessera):
    model = tessera.load(model_bytes([node("Add", "a b", "y")], {"a": ["N", 3], "b": ["N", 3]},
                                     {"y": ["N", 3]}))
    assert [value.text for value in (*model.inputs, *model.outputs)] == ["float32 Nx3"] * 3
    assert model.bind({"a": (2, 3)}).inputs[1].shape == (2, 3)
    assert model.describe({"b": (4, 3)}).outputs[0].shape == (4, 3)
    three = tessera.load(model_bytes([node("Sum", "a b c", "y")], {key: ["N"] for key in "abc"},
                                     {"y": ["N"]}))
    with pytest.raises(tessera.InvalidArgument, match=r"input 'c': dimension 0 \('N'\)"):
        three.describe({"a": (1,), "b": (4,)})
    assert not three.bind({"a": (1,), "b": (4,)}).has_shapes
    check(three.bind({"a": (1,), "b": (4,), "c": (1,)}).run(
              {"a": ones(1), "b": ones(4), "c": ones(1)}), [ones(4) + 2])


# Models whose meaning changes if a name is believed when they are loaded.
BELIEVED = {
    "equal sizes decide": model_bytes(
        [node("Shape", "a", "sa"), node("Shape", "b", "sb"),
         node("Equal", "sa sb", "same"), node("Cast", "same", "y", to=FLOAT)],
        {"a": ["N"], "b": ["N"]}, "y"),
    "a quotient of sizes": model_bytes(
        [node("Shape", "a", "sa"), node("Shape", "b", "sb"), node("Div", "sa sb", "y")],
        {"a": ["N"], "b": ["N"]}, {"y": tensor_type(TensorProto.INT64, None)}),
    "an Expand that seems to change nothing": model_bytes(
        [node("Shape", "b", "s"), node("Expand", "a s", "y")],
        {"a": ["N"], "b": ["N"]}, {"y": ["N"]}),
    "a difference of sizes": model_bytes(
        [node("Shape", "a", "sa"), node("Shape", "b", "sb"), node("Sub", "sa sb", "y")],
        {"a": ["N"], "b": ["N"]}, {"y": tensor_type(TensorProto.INT64, None)}),
    "a Reshape to what value_info calls the same": model_bytes(
        [node("Reshape", "a s", "r"), node("Shape", "r", "sr"),
         node("Shape", "a", "sa"), node("Sub", "sr sa", "y")],
        {"a": ["N", "N"], "b": ["N"], "s": tensor_type(TensorProto.INT64, [2])},
        {"y": tensor_type(TensorProto.INT64, None)}, value_info={"r": ["N", "N"]}),
    "an output that repeats a name": model_bytes(
        [node("NonZero", "a", "i"), node("Shape", "i", "si"),
         node("Shape", "a", "sa"), node("Concat", "si sa", "y", axis=0)],
        {"a": ["N"], "b": ["N"]},
        {"y": tensor_type(TensorProto.INT64, ["N"]),
         "i": tensor_type(TensorProto.INT64, ["N", "N"])}),
}


@pytest.mark.parametrize("keeps", (False, True))
@pytest.mark.parametrize("case", BELIEVED)
def test_nothing_relies_on_names(tessera, case, keeps):
    model = BELIEVED[case]
    loaded = tessera.load(model, keep_all_values=keeps, log=lambda message: None)
    is_reshape = "Reshape" in case
    first = (4, 4) if is_reshape else (1,)
    shapes = {"a": first, "b": (6,)} | ({"s": (2,)} if is_reshape else {})
    executor = loaded.bind(shapes, threads=1)
    for size in (6, 1, 3, 0):
        inputs = {"a": ones(*first), "b": ones(size)}
        if "Expand" not in case and not is_reshape:
            inputs["a"] = ones(2)
            if "quotient" in case and size == 0:
                continue
        if is_reshape:
            inputs["s"] = np.array([2, 8], np.int64)
        check(executor.run(inputs), expected_of(model, inputs))


def test_symbols_that_no_input_has(tessera):
    """Outputs and inner values may declare any names; sizes come from the inputs."""
    model = model_bytes([node("Relu", "x", "h"), node("Neg", "h", "y")], {"x": ["A", "?"]},
                        {"y": ["B", "C"]}, value_info={"h": ["B", "B"]})
    executor = tessera.load(model).bind({"x": (2, 3)}, threads=1)
    for shape in ((2, 3), (3, 2), (0, 1)):
        inputs = {"x": ones(*shape)}
        check(executor.run(inputs), expected_of(model, inputs))


SECOND = """
import sys
import numpy as np
import tessera

model = tessera.load(sys.argv[1], log=print)
executor = model.bind({"a": (3, 4), "b": (4, 5)}, threads=1, optimize=True)
executor.run({"a": np.ones((3, 4), np.float32), "b": np.ones((4, 5), np.float32)})
# A name still gives the sizes that are not given, whatever was bound before.
assert model.bind({"a": (2, 2)}).inputs[1].shape == (2, 2)
print("from a cache" if executor.cache_report().is_hit else "measured")
"""


def test_caches_and_bundles_know_sizes_of_one_name(tessera, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(two_inputs("MatMul", "N"))
    script = tmp_path / "second.py"
    script.write_text(SECOND)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path),
                                "TESSERA_CACHE_DIR": str(tmp_path / "caches")}
    environment.pop("TESSERA_OPTIMIZE", None)
    bundle = tmp_path / "model.bundle"
    tessera.load(path, log=lambda message: None).save_bundle(
        bundle, [{"a": (3, 4), "b": (4, 5)}, {"a": (2, 2)}], threads=1)
    told = []
    for source in (path, path, path, bundle, bundle):
        done = run_program(sys.executable, script, source, env=environment)
        lines = done.stdout.splitlines()
        assert sum("gives one name, 'N'" in line for line in lines) == 1, done.stdout
        told.append(lines[-1])
    assert told[1:3] == ["from a cache"] * 2
