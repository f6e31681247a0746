"""Models whose groups are compiled by jit: equal to ONNX Runtime, compiled once, and shown to users.
Skipped where jit cannot be used."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from programs import run_program, run_python
from small_models import model_of, node, tensor_type

pytestmark = pytest.mark.usefixtures("needs_jit")
FUSED = ["jit", "reference"]


def floats(**constants):
    return {name: np.asarray(values, np.float32) for name, values in constants.items()}


def inferred(nodes, inputs, outputs, constants=None, opset=17):
    """A model from rows (op, inputs, output, attributes)."""
    made = [node(op, takes, [gives], f"{op}_{gives}", **attributes)
            for op, takes, gives, attributes in nodes]
    return onnx.shape_inference.infer_shapes(model_of(
        made, {name: tensor_type(*kind) for name, kind in inputs.items()},
        {name: tensor_type(kind, None) for name, kind in outputs.items()}, constants, opset=opset))


def gelu(shape):
    return inferred(
        [("Div", ["x", "root"], "a", {}), ("Erf", ["a"], "b", {}), ("Add", ["b", "one"], "c", {}),
         ("Mul", ["x", "c"], "d", {}), ("Mul", ["d", "half"], "y", {})],
        {"x": (TensorProto.FLOAT, shape)}, {"y": TensorProto.FLOAT},
        floats(root=2 ** 0.5, one=1, half=0.5))


def silu_with_bias(shape):
    return inferred(
        [("Add", ["x", "b"], "a", {}), ("Sigmoid", ["a"], "s", {}), ("Mul", ["a", "s"], "y", {})],
        {"x": (TensorProto.FLOAT, shape)}, {"y": TensorProto.FLOAT},
        floats(b=np.linspace(-1, 1, shape[1]).reshape(1, -1, *[1] * (len(shape) - 2))))


def rms_norm(shape):
    return inferred(
        [("Pow", ["x", "two"], "p", {}),
         ("ReduceMean", ["p"], "m", {"axes": [-1], "keepdims": 1}), ("Add", ["m", "eps"], "e", {}),
         ("Sqrt", ["e"], "r", {}), ("Div", ["x", "r"], "n", {}), ("Mul", ["n", "g"], "y", {})],
        {"x": (TensorProto.FLOAT, shape)}, {"y": TensorProto.FLOAT},
        floats(two=2, eps=1e-5, g=np.linspace(0.5, 1, shape[-1])))


def masked_softmax(shape):
    return inferred(
        [("Mul", ["x", "scale"], "a", {}), ("Where", ["mask", "a", "low"], "b", {}),
         ("Softmax", ["b"], "y", {"axis": -1})],
        {"x": (TensorProto.FLOAT, shape), "mask": (TensorProto.BOOL, [1, shape[-1]])},
        {"y": TensorProto.FLOAT}, floats(scale=0.125, low=-1e9))


def layer_norm_over_channels(shape):
    """Reduces an axis that is not the last one."""
    return inferred(
        [("ReduceMean", ["x"], "m", {"axes": [1]}), ("Sub", ["x", "m"], "d", {}),
         ("Mul", ["d", "d"], "q", {}), ("ReduceMean", ["q"], "v", {"axes": [1]}),
         ("Add", ["v", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}), ("Div", ["d", "r"], "y", {})],
        {"x": (TensorProto.FLOAT, shape)}, {"y": TensorProto.FLOAT}, floats(eps=1e-5))


def integers_and_bools(shape):
    return inferred(
        [("Add", ["i", "i"], "a", {}), ("Mul", ["a", "three"], "b", {}),
         ("Greater", ["b", "i"], "c", {}), ("Where", ["c", "b", "i"], "w", {}),
         ("Cast", ["w"], "y", {"to": TensorProto.FLOAT})],
        {"i": (TensorProto.INT64, shape)}, {"y": TensorProto.FLOAT},
        {"three": 3})


def float16_chain(shape):
    return inferred(
        [("Add", ["h", "h"], "a", {}), ("Mul", ["a", "h"], "b", {}), ("Relu", ["b"], "y", {})],
        {"h": (TensorProto.FLOAT16, shape)}, {"y": TensorProto.FLOAT16})


MODELS = {
    "gelu": (gelu, [3, 5, 37]),
    "gelu of one element": (gelu, [1]),
    "silu with a bias of channels": (silu_with_bias, [2, 7, 5, 3]),
    "rms norm": (rms_norm, [4, 3, 130]),
    "rms norm of short rows": (rms_norm, [40, 3]),
    "masked softmax": (masked_softmax, [2, 6, 50]),
    "normalization over channels": (layer_norm_over_channels, [2, 20, 9]),
    "integers and bools": (integers_and_bools, [5, 33]),
    "float16": (float16_chain, [4, 31]),
}


def feeds_of(model, seed=0):
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        numbers = random.standard_normal(shape) * 2
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = numbers > -1 if dtype == bool else (numbers * 5).astype(dtype) \
            if np.issubdtype(dtype, np.integer) else numbers.astype(dtype)
    return feeds


def bind(tessera, model, **options):
    loaded = tessera.load(model.SerializeToString())
    options = {"backends": FUSED, "optimize": False, "threads": 1, **options}
    return loaded.bind(**options)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threads", (1, 2))
def test_results_equal_those_of_onnx_runtime(tessera, name, threads):
    make, shape = MODELS[name]
    model = make(shape)
    feeds = feeds_of(model)
    executor = bind(tessera, model, threads=threads)
    steps = executor.plan().steps
    assert [step.backend for step in steps] == ["jit"], "the model is one group"
    found, = executor.run(feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected, = session.run(None, feeds)
    tolerance = 2e-3 if found.dtype == np.float16 else 2e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_a_chain_of_1100_operations_is_one_kernel(tessera):
    names = ["x", *(f"v{at}" for at in range(1099)), "y"]
    nodes = [("Add" if at % 2 else "Mul", [names[at], "c"], names[at + 1], {})
             for at in range(1100)]
    for shape in ([1], [1024]):
        model = inferred(nodes, {"x": (TensorProto.FLOAT, shape)}, {"y": TensorProto.FLOAT},
                         floats(c=0.5))
        executor = bind(tessera, model)
        assert len(executor.plan().steps) == 1
        x = np.linspace(-3, 3, shape[0], dtype=np.float32)
        expected = x
        for at in range(1100):
            expected = expected + np.float32(0.5) if at % 2 else expected * np.float32(0.5)
        np.testing.assert_array_equal(executor.run({"x": x})[0], expected)


def test_equal_groups_are_compiled_once(tessera):
    backends = tessera.Backends()
    counts = []
    for shape in ([3, 40], [7, 90], [128]):
        model = tessera.load(gelu(shape).SerializeToString(), backends=backends)
        executor = model.bind(backends=FUSED, optimize=False, threads=1)
        [compiled] = executor.compiled
        counts.append((compiled.kernels, compiled.unique, compiled.compiled))
    assert counts == [(1, 1, 1), (2, 1, 1), (3, 1, 1)]


def test_fusing_can_be_switched_off(tessera):
    executor = bind(tessera, gelu([2, 3]), fuse=False)
    assert len(executor.plan().steps) == 5
    assert {step.backend for step in executor.plan().steps} == {"reference"}


def test_what_was_compiled_can_be_read(tessera):
    executor = bind(tessera, gelu([2, 3]))
    assert "fused_multiply_add" in executor.kernel_text(0, "expression")
    assert "define" in executor.kernel_text(0)
    assert "ret" in executor.kernel_text(0, "assembly")
    with pytest.raises(ValueError, match="expected 'expression', 'source' or 'assembly'"):
        executor.kernel_text(0, "binary")
    with pytest.raises(ValueError, match="expected the number of a step below 1, found 1"):
        executor.kernel_text(1)
    assert bind(tessera, gelu([2, 3]), backends=["reference"]).kernel_text(0) is None


def test_the_program_prints_what_was_compiled(tessera_binary, tmp_path):
    onnx.save(gelu([2, 3]), tmp_path / "gelu.onnx")

    def call(*arguments, code=0):
        return run_program(tessera_binary, "explain", "gelu.onnx", "--no-optimize", "--runs", "1",
                           *arguments, code=code, cwd=tmp_path)

    for form, word in (("expression", "operand"), ("source", "define"), ("assembly", "ret")):
        done = call("--backends", "jit,reference", "--kernel", "Erf_b", "--form", form)
        assert word in done.stdout, done.stderr
    done = call("--backends", "jit,reference", "--kernel", "Erf_b", "--json")
    assert "define" in json.loads(done.stdout)["kernels"][0]["text"]
    done = call("--backends", "reference", "--kernel", "Erf_b", code=2)
    assert "expected a kernel that was compiled here" in done.stderr
    done = call("--backends", "jit,reference", "--no-fuse", "--kernel", "Erf_b", code=2)
    assert "found one of reference" in done.stderr
    done = call("--kernel", "Erf_b", "--form", "binary", code=2)
    assert "expected expression, source or assembly" in done.stderr


PROCESS = """
import json, sys
import numpy as np
import tessera
model = tessera.load(sys.argv[1])
executor = model.bind(backends=["jit", "reference"], optimize=True, threads=1,
                      pins=[tessera.Pin("*", "jit")], in_process=True)
feeds = {value.name: np.ones(value.shape, np.float32) for value in executor.inputs}
executor.run(feeds)
[counts] = executor.compiled
print(json.dumps({"compiled": counts.compiled, "loaded": counts.loaded_from_store,
                  "has_llvm": "libLLVM" in open("/proc/self/maps").read()}))
"""


def test_later_processes_and_other_models_compile_nothing(tessera, tmp_path):
    def run(name, model):
        onnx.save(model, tmp_path / name)
        return json.loads(run_python(tessera, PROCESS, tmp_path / name).stdout)

    first = run("first.onnx", gelu([4, 1000]))
    assert first["compiled"] > 0 and first["has_llvm"]
    assert run("first.onnx", gelu([4, 1000]))["compiled"] == 0
    # Another model with the same group, which no plan knows: its kernel is loaded without LLVM.
    other = run("other.onnx", gelu([8, 77]))
    assert other["compiled"] == 0 and other["loaded"] > 0 and not other["has_llvm"]


def test_a_fused_group_stands_beside_its_nodes(tessera):
    step, = bind(tessera, gelu([4, 1000])).plan().steps
    tensor, number = 16_000, 4
    # Div, Erf, Add, Mul, Mul: each reads and writes tensors, three also read a number.
    assert step.unfused_bytes == (2 + 2 + 2 + 3 + 2) * tensor + 3 * number
    assert step.bytes == 2 * tensor
    assert step.unfused_seconds is None, "nothing was measured"
    alone = bind(tessera, gelu([4, 1000]), fuse=False).plan().steps
    assert {(step.unfused_bytes, step.unfused_seconds) for step in alone} == {(None, None)}


def test_constants_count_once(tessera):
    model = inferred(
        [("Add", ["x", "c"], "a", {}), ("Mul", ["a", "c"], "b", {}), ("Sub", ["b", "x"], "y", {})],
        {"x": (TensorProto.FLOAT, [3, 500])}, {"y": TensorProto.FLOAT},
        floats(c=np.linspace(1, 2, 500)))
    step, = bind(tessera, model).plan().steps
    tensor, row = 6000, 2000
    assert step.unfused_bytes == (2 + 2 + 3) * tensor + row
    assert step.bytes == 2 * tensor + row


def test_views_in_a_group_move_nothing(tessera):
    model = inferred(
        [("Relu", ["x"], "a", {}), ("Reshape", ["a", "shape"], "b", {}),
         ("Sigmoid", ["b"], "y", {})],
        {"x": (TensorProto.FLOAT, [6, 500])}, {"y": TensorProto.FLOAT},
        {"shape": [2, 3, 500]})
    step, = bind(tessera, model).plan().steps
    assert len(step.nodes) == 3 and step.unfused_bytes == 4 * 6 * 500 * 4


def test_measured_nodes_give_the_time_without_fusion(tessera):
    executor = bind(tessera, gelu([40, 1000]), optimize=True, tune_all=True, in_process=True)
    plan = executor.plan()
    step, = plan.steps
    assert step.backend == "jit"
    alone = {}
    for candidate in plan.candidates:
        if len(candidate.nodes) == 1 and candidate.time is not None:
            node, = candidate.nodes
            alone[node] = min(alone.get(node, 1), candidate.price_seconds)
    assert set(alone) == set(step.nodes)
    assert 0 < step.unfused_seconds <= 1.000001 * sum(alone.values())
    assert step.unfused_seconds > step.predicted_seconds
