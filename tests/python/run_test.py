"""Running models from Python: all kinds of arrays as inputs, the caller's arrays as outputs."""

import array

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto
from small_models import node, tensor_type

TYPES = {
    "bool": TensorProto.BOOL,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}


def aligned(shape, dtype=np.float32):
    """An array with the alignment that kernels need, so that it is read in place."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def misaligned(shape):
    memory = np.zeros(int(np.prod(shape)) * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + 4
    return memory[start : start + int(np.prod(shape)) * 4].view(np.float32).reshape(shape)


def test_a_network_equals_onnxruntime(tessera, save_model):
    random = np.random.default_rng(7)
    weight = random.standard_normal((8, 3, 3, 3)).astype(np.float32)
    matrix = random.standard_normal((8, 5)).astype(np.float32)
    path = save_model([node("Conv", "image weight", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "b"),
                       node("GlobalAveragePool", "b", "c"), node("Flatten", "c", "d"),
                       node("MatMul", "d matrix", "e"), node("Softmax", "e", "f")],
                      {"image": [2, 3, 9, 7]}, "f e", {"weight": weight, "matrix": matrix})
    image = random.standard_normal((2, 3, 9, 7)).astype(np.float32)
    executor = tessera.load(path).bind(threads=1)
    actual = executor.run({"image": image})
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"image": image})
    assert [output.name for output in executor.outputs] == ["f", "e"]
    assert len(actual) == 2
    for one, other in zip(actual, expected, strict=True):
        assert isinstance(one, np.ndarray)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_type_goes_in_and_comes_out(tessera, save_model, name, shape):
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    path = save_model([node("Concat", "x x", "y", axis=0)] if shape else [node("Reshape", "x one", "y")],
                      {"x": tensor_type(TYPES[name], shape)}, {"y": tensor_type(TYPES[name], None)},
                      {"one": np.array([1], np.int64)})
    values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) % 2 + 1
    values = values.astype(dtype)
    (actual,) = tessera.load(path).bind().run({"x": values})
    expected = np.concatenate([values, values]) if shape else values.reshape(1)
    assert actual.dtype == dtype
    assert actual.shape == expected.shape
    assert np.array_equal(actual, expected)
    assert actual.flags.writeable


LAYOUTS = {
    "aligned": lambda values: _filled(aligned(values.shape), values),
    "misaligned": lambda values: _filled(misaligned(values.shape), values),
    "fortran": np.asfortranarray,
    "reversed": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "every other": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "broadcast": lambda values: np.broadcast_to(values[:1], values.shape),
    "big-endian": lambda values: values.astype(">f4"),
    "read-only": lambda values: _locked(values.copy()),
    "memoryview": lambda values: memoryview(values.copy()),
    "subclass": lambda values: np.ma.masked_array(values),
    "has __array__": lambda values: _ArrayLike(values),
}


def _filled(target, values):
    target[...] = values
    return target


def _locked(values):
    values.flags.writeable = False
    return values


class _ArrayLike:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout_are_read(tessera, doubling_model, layout):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    given = LAYOUTS[layout](values)
    (actual,) = tessera.load(doubling_model).bind({"x": (4, 3)}).run({"x": given})
    assert np.array_equal(actual, 2 * np.asarray(given, np.float32))


def test_a_model_can_be_the_bytes_of_a_file(tessera, doubling_model):
    content = doubling_model.read_bytes()
    executor = tessera.load(content).bind({"x": (1, 3)})
    del content
    [result] = executor.run(np.ones((1, 3), np.float32))
    assert (result == 2).all()
    with pytest.raises(tessera.InvalidModel, match="the given bytes"):
        tessera.load(b"model.onnx")


def test_an_input_with_a_value_in_the_file_can_be_fed(tessera, save_model, monkeypatch):
    path = save_model([node("Add", "x w", "y")], {"x": [2], "w": [2]}, {"y": [2]},
                      {"w": np.array([10, 20], np.float32)})
    x = np.array([1, 2], np.float32)
    # With an index of the model, which has the value of the file.
    monkeypatch.delenv("TESSERA_OPTIMIZE")
    for _ in range(2):
        model = tessera.load(path)
        assert [value.name for value in model.inputs] == ["x"]
        assert model.bind(tune_budget_seconds=0.1).run(x)[0].tolist() == [11, 22]
    for source in (path, path.read_bytes()):
        model = tessera.load(source, free_inputs=["w"])
        assert [value.name for value in model.inputs] == ["x", "w"]
        executor = model.bind(optimize=False)
        assert executor.run({"x": x, "w": 2 * x})[0].tolist() == [3, 6]
        with pytest.raises(tessera.InvalidArgument, match="'w'"):
            executor.run({"x": x})
    expected = "free input 'x': expected an input for which the model's file has a value"
    with pytest.raises(tessera.InvalidArgument, match=expected):
        tessera.load(path, free_inputs=["x"])


def test_names_that_are_not_unicode_are_shown_escaped(tessera, save_model):
    path = save_model([node("Add", "x__ x__", "y", "n__")], {"x__": ["d__"]}, {"y": ["d__"]})
    content = path.read_bytes()
    for name in (b"x", b"n", b"d"):
        content = content.replace(name + b"__", name + b"\xff\xfe")
    model = tessera.load(content)
    assert model.inputs[0].name == r"x\xff\xfe" and model.inputs[0].shape == (r"d\xff\xfe",)
    assert model.describe().nodes[0].name == r"n\xff\xfe"
    assert r"x\xff\xfe: float32" in repr(model)
    session = tessera.InferenceSession(content)
    assert session.get_inputs()[0].name == r"x\xff\xfe"
    with pytest.raises(tessera.InvalidArgument):
        session.run(None, {r"x\xff\xfe": np.ones(2, np.float32)})


def test_lists_and_buffers_of_the_right_type_are_read(tessera, save_model):
    path = save_model([node("Add", "x x", "y")], {"x": tensor_type(TensorProto.DOUBLE, [3])},
                      {"y": tensor_type(TensorProto.DOUBLE, [3])})
    executor = tessera.load(path).bind()
    for given in ([1.0, 2.0, 3.0], array.array("d", [1, 2, 3])):
        assert executor.run(given)[0].tolist() == [2, 4, 6]


def test_inputs_by_position_or_by_name(tessera, save_model):
    path = save_model([node("Sub", "a b", "y")], {"a": [2], "b": [2]}, {"y": [2]})
    executor = tessera.load(path).bind()
    a, b = np.array([5, 7], np.float32), np.array([1, 2], np.float32)
    assert executor.run(a, b)[0].tolist() == [4, 5]
    assert executor.run({"b": b, "a": a})[0].tolist() == [4, 5]
    with pytest.raises(tessera.InvalidArgument, match=r"2 inputs \(a, b\).*found 1 argument"):
        executor.run(a)
    with pytest.raises(tessera.InvalidArgument, match="found a key of type int"):
        executor.run({0: a, 1: b})


def test_what_an_output_holds_stays_after_the_next_run(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (2, 3)})
    (first,) = executor.run(np.ones((2, 3), np.float32))
    (second,) = executor.run(np.full((2, 3), 5, np.float32))
    assert np.array_equal(first, np.full((2, 3), 2))
    assert np.array_equal(second, np.full((2, 3), 10))
    assert not np.shares_memory(first, second)


def test_outputs_share_no_memory_with_anything(tessera, save_model):
    """Also if an output is an input, a weight, or the same value as another output."""
    path = save_model([node("Identity", "x", "same"), node("Identity", "weight", "constant"),
                       node("Neg", "x", "negative"), node("Identity", "negative", "again")],
                      {"x": [4]}, {name: [4] for name in ("same", "constant", "negative", "again")},
                      {"weight": np.arange(4, dtype=np.float32)})
    executor = tessera.load(path).bind()
    x = aligned((4,))
    x[:] = [1, 2, 3, 4]
    outputs = executor.run({"x": x})
    for index, output in enumerate(outputs):
        assert not np.shares_memory(output, x)
        assert not any(np.shares_memory(output, other) for other in outputs[:index])
        output[:] = -1
    assert x.tolist() == [1, 2, 3, 4]
    assert [output.tolist() for output in executor.run({"x": x})] == [
        [1, 2, 3, 4], [0, 1, 2, 3], [-1, -2, -3, -4], [-1, -2, -3, -4],
    ]


def test_fetched_values_follow_the_outputs(tessera, save_model):
    path = save_model([node("Neg", "x", "inner"), node("Abs", "inner", "y")], {"x": [2]},
                      {"y": [2]})
    executor = tessera.load(path, keep_all_values=True).bind(fetch=["inner"])
    outputs = executor.run(np.array([1, -2], np.float32))
    assert [value.name for value in executor.outputs] == ["y", "inner"]
    assert [output.tolist() for output in outputs] == [[1, 2], [-1, 2]]
