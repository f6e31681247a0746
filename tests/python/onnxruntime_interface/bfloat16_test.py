"""bfloat16 through the interface of onnxruntime: OrtValues, arrays of ml_dtypes, bound memory."""

import numpy as np
import pytest
from onnx import TensorProto
from small_models import model_of, node, tensor_type

ml_dtypes = pytest.importorskip("ml_dtypes")
BITS = np.array([[0x3F80, 0x4000, 0xC040], [0x0000, 0x8000, 0x7F80]], np.uint16)
VALUES = BITS.view(ml_dtypes.bfloat16)


@pytest.fixture
def session(ort):
    """y = x + x in bfloat16, z = x in float32."""
    model = model_of([node("Add", "x x", "y"), node("Cast", "x", "z", to=TensorProto.FLOAT)],
                     {"x": tensor_type(TensorProto.BFLOAT16, ["rows", 3])},
                     {"y": tensor_type(TensorProto.BFLOAT16, ["rows", 3]), "z": ["rows", 3]})
    return ort.InferenceSession(model.SerializeToString())


def from_bits(ort, bits=BITS):
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)


def check(y, z=None, factor=2):
    expected = VALUES.astype(np.float32) * factor
    assert y.dtype == ml_dtypes.bfloat16 and np.array_equal(y.astype(np.float32), expected)
    if z is not None:
        assert np.array_equal(z, VALUES.astype(np.float32) * factor / 2)


def test_ort_values_of_bits(ort, session):
    y, z = session.run_with_ort_values(None, {"x": from_bits(ort)})
    assert (y.data_type(), y.element_type()) == ("tensor(bfloat16)", TensorProto.BFLOAT16)
    assert (z.data_type(), z.element_type()) == ("tensor(float)", TensorProto.FLOAT)
    check(y.numpy(), z.numpy())


def test_an_output_is_fed_back(ort, session):
    y = from_bits(ort)
    for factor in (2, 4, 8):
        y, = session.run_with_ort_values(["y"], {"x": y})
        check(y.numpy(), factor=factor)


def test_run_takes_ort_values_and_arrays(ort, session):
    for x in (from_bits(ort), ort.OrtValue.ortvalue_from_numpy(VALUES), VALUES,
              np.asfortranarray(VALUES), VALUES[::-1][::-1]):
        check(*session.run(None, {"x": x}))
    y, = session.run(["y"], {"x": VALUES[:1]})
    check(np.concatenate([y, VALUES[1:] * VALUES.dtype.type(2)]))


def test_a_value_of_another_type_is_refused(ort, session):
    for wrong in (BITS, VALUES.astype(np.float16), ort.OrtValue.ortvalue_from_numpy(BITS)):
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="bfloat16"):
            session.run(None, {"x": wrong})


@pytest.mark.parametrize("kind", ("cpu", "ortvalue", "address"))
def test_bound_memory(ort, session, kind):
    x, y = VALUES.copy(), ort.OrtValue.ortvalue_from_shape_and_type([2, 3], TensorProto.BFLOAT16)
    binding = session.io_binding()
    if kind == "cpu":
        binding.bind_cpu_input("x", x)
    elif kind == "ortvalue":
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    else:
        binding.bind_input("x", "cpu", 0, TensorProto.BFLOAT16, x.shape, x.ctypes.data)
    if kind == "address":
        binding.bind_output("y", "cpu", 0, TensorProto.BFLOAT16, [2, 3], y.data_ptr())
    else:
        binding.bind_ortvalue_output("y", y)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    check(y.numpy(), binding.copy_outputs_to_cpu()[1])
    assert [value.data_type() for value in binding.get_outputs()] == ["tensor(bfloat16)",
                                                                      "tensor(float)"]


def test_one_value_is_bound_as_input_and_output(ort, session):
    state = from_bits(ort, BITS.copy())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", state)
    binding.bind_ortvalue_output("y", state)
    binding.bind_output("z")
    for factor in (2, 4, 8):
        session.run_with_iobinding(binding)
        check(state.numpy(), binding.copy_outputs_to_cpu()[1], factor=factor)
