"""Floats of 8 and 4 bits and integers of 4 and 2 bits through the interface of onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import model_of, node, tensor_type

ml_dtypes = pytest.importorskip("ml_dtypes")
BITS = np.array([[0, 1, 1], [1, 0, 1]], np.uint8)  # elements of every type
TYPES = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0",
         "FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2")


@pytest.fixture(params=TYPES)
def number(request):
    return TensorProto.DataType.Value(request.param)


@pytest.fixture
def name(number):
    return f"tensor({TensorProto.DataType.Name(number).lower()})"


@pytest.fixture
def values(number):
    return BITS.view(helper.tensor_dtype_to_np_dtype(number))


@pytest.fixture
def session(ort, number):
    """y = the transposed x, z = x in float32."""
    model = model_of([node("Transpose", "x", "y"), node("Cast", "x", "z", to=TensorProto.FLOAT)],
                     {"x": tensor_type(number, ["rows", 3])},
                     {"y": tensor_type(number, [3, "rows"]), "z": ["rows", 3]}, opset=25,
                     ir_version=13)
    return ort.InferenceSession(model.SerializeToString())


def check(found, values):
    assert found.dtype == values.dtype and found.shape == (3, 2)
    np.testing.assert_array_equal(np.ascontiguousarray(found).view(np.uint8), BITS.T)


def test_arrays_go_in_and_come_out(session, values, name):
    assert [each.type for each in session.get_inputs()] == [name]
    assert [each.type for each in session.get_outputs()] == [name, "tensor(float)"]
    for x in (values, np.asfortranarray(values)):
        y, z = session.run(None, {"x": x})
        check(y, values)
        np.testing.assert_array_equal(z, values.astype(np.float32))


def test_ort_values(ort, session, values, number, name):
    for x in (ort.OrtValue.ortvalue_from_numpy(values),
              ort.OrtValue.ortvalue_from_numpy_with_onnx_type(BITS, number)):
        y, _ = session.run_with_ort_values(None, {"x": x})
        assert (y.data_type(), y.element_type()) == (name, number)
        check(y.numpy(), values)


def test_bound_memory(ort, session, values, number, name):
    y = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], number)
    binding = session.io_binding()
    binding.bind_cpu_input("x", values)
    binding.bind_ortvalue_output("y", y)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    check(y.numpy(), values)
    assert binding.get_outputs()[0].data_type() == name


def test_another_type_is_refused(ort, session):
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="uint8"):
        session.run(None, {"x": BITS})
