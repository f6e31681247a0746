"""Arrays of NumPy, of the buffer protocol and of DLPack, as inputs and outputs."""

import array
import ctypes
import enum

import numpy as np
import pytest
from onnx import TensorProto
from small_models import model_bytes, node, tensor_type

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Device(enum.IntEnum):
    CPU = 1
    CUDA = 2


class Producer:
    """An array of a library that has nothing but DLPack, in its form since 2024: capsules have a
    version, and can be read-only."""

    def __init__(self, values, device=(Device.CPU, 0)):
        self.values = values
        self.device = device
        self.exports = 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.exports += 1
        return self.values.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return self.device


class OldProducer(Producer):
    """The form of 2021: capsules have no version."""

    def __dlpack__(self, stream=None):
        self.exports += 1
        return self.values.__dlpack__()


class NamelessProducer:
    """Without __dlpack_device__(), which older libraries lack."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()


@pytest.fixture
def executor(tessera, doubling_model):
    return tessera.load(doubling_model).bind({"x": (2, 3)})


def aligned(shape, dtype=np.float32):
    """An array that begins at a multiple of 64 bytes, as executors want it."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count].view(dtype).reshape(shape)


@pytest.mark.parametrize("make", [Producer, OldProducer, NamelessProducer])
@pytest.mark.parametrize("order", ["C", "F", "reversed"])
def test_dlpack_is_read(executor, make, order):
    values = {"C": X, "F": np.asfortranarray(X), "reversed": X[::-1, ::-1]}[order]
    (y,) = executor.run({"x": make(values)})
    np.testing.assert_array_equal(y, values * 2)


def test_a_read_only_array_is_an_input_and_no_output(tessera, executor):
    constant = X.copy()
    constant.flags.writeable = False
    (y,) = executor.run({"x": Producer(constant)})
    np.testing.assert_array_equal(y, X * 2)
    for given in (constant, Producer(constant)):
        with pytest.raises(tessera.InvalidArgument, match="output 'y': .* may be written, found "
                                                          r".* that is read-only"):
            executor.bind_output("y", given)


def test_dlpack_is_not_copied(tessera, executor):
    """Both directions: the caller's data is read, and results are in the caller's memory."""
    x, y = aligned((2, 3)), aligned((2, 3))
    given, taken = Producer(x), Producer(y)
    executor.bind_input("x", given)
    executor.bind_output("y", taken)
    for factor in (1, 2):
        x[:] = X * factor
        (result,) = executor.run()
        assert result is taken
        np.testing.assert_array_equal(y, X * 2 * factor)
    assert (given.exports, taken.exports) == (1, 1)
    message = "input 'x': expected a dense row-major array, found .*Producer with other strides"
    with pytest.raises(tessera.InvalidArgument, match=message):
        executor.bind_input("x", Producer(np.asfortranarray(X)))


def test_results_are_given_by_dlpack(executor):
    (y,) = executor.run({"x": X})
    seen = np.from_dlpack(y)
    assert seen.ctypes.data == y.ctypes.data
    assert y.__dlpack_device__() == (Device.CPU, 0)


def test_contiguous_arrays_are_used_in_place(tessera, save_model):
    """A view as the only step: the output would have another address if the input were copied."""
    path = save_model([node("Add", "x x", "y")], {"x": [64]}, {"y": [64]})
    executor = tessera.load(path).bind()
    x, y = aligned(64), aligned(64)
    executor.bind_input("x", x)
    executor.bind_output("y", y)
    x[:] = 3
    executor.run_bound()
    assert (y == 6).all()
    (result,) = executor.run({"x": x})
    assert result.ctypes.data == y.ctypes.data


@pytest.mark.parametrize("device", [(Device.CUDA, 1), (10, 0), (99, 3)])
def test_an_array_on_a_device_that_is_not_here(tessera, executor, device):
    called = {2: "cuda:1", 10: "rocm:0", 99: "type 99:3"}[int(device[0])]
    given = Producer(X, device)
    for call, where in ((lambda: executor.run({"x": given}), "input 'x'"),
                        (lambda: executor.bind_input("x", given), "input 'x'"),
                        (lambda: executor.bind_output("y", given), "output 'y'")):
        with pytest.raises(tessera.InvalidArgument) as caught:
            call()
        assert caught.value.where == where
        assert "expected an array in the host's memory" in caught.value.message
        assert f"on device '{called}'" in caught.value.message
    assert given.exports == 0


def test_what_dlpack_cannot_give_is_refused_with_its_reason(tessera, executor):
    class Broken(Producer):
        def __dlpack__(self, **wishes):
            raise RuntimeError("this array needs a gradient")

    with pytest.raises(tessera.InvalidArgument, match="input 'x': .*Broken .*needs a gradient"):
        executor.run({"x": Broken(X)})
    with pytest.raises(tessera.InvalidArgument, match="input 'x': expected an array of numbers or "
                                                      "bools, found .*type code 5 with 64 bits"):
        executor.run({"x": Producer(X.astype(np.complex64))})
    with pytest.raises(tessera.InvalidArgument, match="expected float32 2x3, found int64 2x3"):
        executor.run({"x": Producer(X.astype(np.int64))})


def test_the_buffer_protocol_is_read(executor):
    numbers = array.array("f", range(6))
    for given in (memoryview(X), memoryview(numbers).cast("B").cast("f", (2, 3))):
        (y,) = executor.run({"x": given})
        np.testing.assert_array_equal(y, X * 2)


def test_what_numpy_does_not_convert_is_named(tessera, executor):
    for given in ([[1, 2, 3], [4, 5]], object(), None, X.astype(object)):
        with pytest.raises(tessera.InvalidArgument, match="^input 'x': expected an array"):
            executor.run({"x": given})
    with pytest.raises(tessera.InvalidArgument, match="^input 'x': expected .*, found string"):
        executor.run({"x": "abc"})


@pytest.fixture
def pair(tessera, save_model):
    path = save_model([node("Add", "x x", "double"), node("Neg", "x", "negative")],
                      {"x": ["rows", 3]}, {"double": ["rows", 3], "negative": ["rows", 3]},
                      name="pair")
    return tessera.load(path).bind({"x": (2, 3)})


def test_outputs_are_chosen_by_name(tessera, pair):
    (negative,) = pair.run({"x": X}, outputs=["negative"])
    np.testing.assert_array_equal(negative, -X)
    again, double, negative = pair.run(X, outputs=["negative", "double", "negative"])
    np.testing.assert_array_equal(double, X * 2)
    again[:] = 0  # each array is the caller's own
    np.testing.assert_array_equal(negative, -X)
    assert pair.run(X, outputs=[]) == []
    with pytest.raises(tessera.InvalidArgument) as caught:
        pair.run(X, outputs=["double", "negativ"])
    assert str(caught.value).startswith(
        "output 'negativ': the model has no such output; it has 'double', 'negative'; did you mean "
        "'negative'?")
    with pytest.raises(TypeError, match=r"^Executor.run\(\): outputs: expected .*Sequence\[str\]"):
        pair.run(X, outputs="double")


def test_a_chosen_output_that_is_bound_is_the_callers_array(pair):
    mine = aligned((2, 3))
    pair.bind_output("negative", mine)
    double, negative = pair.run(X, outputs=["double", "negative"])
    assert negative is mine
    np.testing.assert_array_equal(mine, -X)
    np.testing.assert_array_equal(double, X * 2)


def test_a_mistyped_input_is_named_and_not_the_missing_one(tessera, pair):
    with pytest.raises(tessera.InvalidArgument) as caught:
        pair.run({"X1": X})
    assert caught.value.where == "input 'X1'"
    with pytest.raises(tessera.InvalidArgument, match="^input 'xx': .*did you mean 'x'"):
        pair.run({"xx": X})
    with pytest.raises(tessera.InvalidArgument, match="^input 'x': .*found none given"):
        pair.run({})


def test_overlapping_outputs_are_refused(tessera, pair):
    memory = np.zeros(12, np.float32)
    pair.bind_output("double", memory[:6].reshape(2, 3))
    pair.bind_output("negative", memory[3:9].reshape(2, 3))
    with pytest.raises(tessera.InvalidArgument, match="output 'negative': .*overlaps output "
                                                      "'double'"):
        pair.run(X)


class Float8Producer(OldProducer):
    """Bytes that are 8-bit floats for DLPack: `code` is that of its DLDataTypeCode."""

    def __init__(self, values, code):
        super().__init__(values)
        self.code = code

    def __dlpack__(self, stream=None):
        capsule = super().__dlpack__()
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        behind_data_device_and_rank = 20
        tensor = address(capsule, b"dltensor")
        ctypes.c_uint8.from_address(tensor + behind_data_device_and_rank).value = self.code
        return capsule


@pytest.mark.parametrize(("code", "name"), [
    (10, "FLOAT8E4M3FN"), (11, "FLOAT8E4M3FNUZ"), (12, "FLOAT8E5M2"), (13, "FLOAT8E5M2FNUZ"),
    (14, "FLOAT8E8M0")])
def test_8_bit_floats_come_by_dlpack(tessera, code, name):
    kind = tensor_type(TensorProto.DataType.Value(name), [2, 3])
    executor = tessera.load(model_bytes([node("Identity")], {"x": kind}, {"y": kind}, opset=25)).bind()
    bits = np.arange(6, dtype=np.uint8).reshape(2, 3)
    y, = executor.run({"x": Float8Producer(bits, code)})
    np.testing.assert_array_equal(y.view(np.uint8), bits)
    with pytest.raises(tessera.InvalidArgument, match="type code 9 with 8 bits"):
        executor.run({"x": Float8Producer(bits, 9)})
