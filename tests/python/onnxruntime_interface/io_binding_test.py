"""IOBinding and OrtValue of tessera.onnxruntime, where they refuse or share memory."""

import numpy as np
import pytest
from onnx import TensorProto
from onnxruntime_programs import classifier, rows
from small_models import model_bytes, node


@pytest.fixture
def session(ort):
    """c = a + b, d = a - b"""
    shape = ["rows", 3]
    return ort.InferenceSession(model_bytes([node("Add", "a b", "c"), node("Sub", "a b", "d")],
                                            {"a": shape, "b": shape}, {"c": shape, "d": shape}))


@pytest.fixture
def binding(session):
    binding = session.io_binding()
    binding.bind_cpu_input("a", np.full((2, 3), 5, np.float32))
    binding.bind_cpu_input("b", np.full((2, 3), 2, np.float32))
    binding.bind_output("c")
    return binding


def test_bound_memory_is_read_and_written_in_place(ort, session):
    a, b = (np.full((2, 3), value, np.float32) for value in (5, 2))
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_cpu_input("b", b)
    results = {name: ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
               for name in "cd"}
    for name, value in results.items():
        binding.bind_ortvalue_output(name, value)
    for value in (5, 6, 7):
        a[...] = value
        session.run_with_iobinding(binding)
        assert np.all(results["c"].numpy() == value + 2)
        assert np.all(results["d"].numpy() == value - 2)
    assert binding.get_outputs()[0].data_ptr() == results["c"].data_ptr()
    copied = binding.copy_outputs_to_cpu()
    # A run without the binding leaves its memory alone.
    session.run(None, {"a": b, "b": b})
    assert np.array_equal(copied[0], results["c"].numpy())


def test_other_shapes_and_other_bindings_take_turns(ort, session):
    bindings = []
    for count in (1, 4, 2):
        binding = session.io_binding()
        for name in "ab":
            binding.bind_cpu_input(name, np.full((count, 3), count, np.float32))
        binding.bind_output("d")
        memory = ort.OrtValue.ortvalue_from_shape_and_type([count, 3], np.float32)
        binding.bind_ortvalue_output("c", memory)
        bindings.append((count, binding, memory))
    for _ in range(3):
        for count, binding, memory in bindings:
            memory.numpy()[...] = 0
            session.run_with_iobinding(binding)
            assert np.all(memory.numpy() == 2 * count)
            d, c = binding.get_outputs()
            assert d.shape() == [count, 3] and not d.numpy().any()
            assert c.data_ptr() == memory.data_ptr()


def test_a_new_binding_of_a_name_replaces_the_old_one(session, binding):
    session.run_with_iobinding(binding)
    binding.bind_cpu_input("a", np.full((2, 3), 8, np.float32))
    session.run_with_iobinding(binding)
    assert np.all(binding.copy_outputs_to_cpu()[0] == 10)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    binding.bind_output("d", "cpu", 0, np.float32, [2, 3])
    assert binding.get_outputs() == [], "no run has written it"
    session.run_with_iobinding(binding)
    assert np.all(binding.get_outputs()[0].numpy() == 6)


def test_changes_of_a_binding_count_from_the_next_run_on(ort, session, binding):
    first, second, other = (
        ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32)) for _ in range(3))
    binding.bind_ortvalue_output("c", first)
    binding.bind_ortvalue_output("d", other)
    session.run_with_iobinding(binding)
    binding.bind_ortvalue_output("c", second)
    first.update_inplace(np.zeros((2, 3), np.float32))
    session.run_with_iobinding(binding)
    assert np.all(second.numpy() == 7) and not first.numpy().any()
    binding.bind_output("d")
    assert [value.shape() for value in binding.get_outputs()] == [[2, 3], [2, 3]]
    binding.bind_ortvalue_output("d", other)
    session.run_with_iobinding(binding)
    binding.clear_binding_inputs()
    with pytest.raises(RuntimeError, match="expected an array for each of a, b, found none"):
        session.run_with_iobinding(binding)


def test_a_binding_of_an_initializer_overrides_it(ort):
    session = ort.InferenceSession(classifier().SerializeToString())
    binding = session.io_binding()
    x, bias = rows(2), np.array([1, 2, 3], np.float32)
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("bias", bias)
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    expected, = session.run(["logits"], {"x": x, "bias": bias})
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], expected)
    binding.clear_binding_inputs()
    binding.bind_cpu_input("x", x)
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], session.run(["logits"], {"x": x})[0])


@pytest.mark.parametrize("outputs", ({"c": "a"}, {"c": "b"}, {"d": "a"}, {"c": "a", "d": "b"},
                                     {"c": "b", "d": "a"}))
@pytest.mark.parametrize("kind", ("ortvalue", "address"))
def test_one_memory_is_bound_as_input_and_output(ort, session, outputs, kind):
    """As if all inputs had been copied before the run."""
    values = {name: ort.OrtValue.ortvalue_from_numpy(rows(2)[:, :3] + number)
              for number, name in enumerate("ab")}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name in "cd":
        if name not in outputs:
            binding.bind_output(name)
        elif kind == "ortvalue":
            binding.bind_ortvalue_output(name, values[outputs[name]])
        else:
            value = values[outputs[name]]
            binding.bind_output(name, "cpu", 0, np.float32, value.shape(), value.data_ptr())
    for _ in range(3):
        a, b = (values[name].numpy().copy() for name in "ab")
        session.run_with_iobinding(binding)
        c, d = binding.copy_outputs_to_cpu()
        assert np.array_equal(c, a + b) and np.array_equal(d, a - b)
        for name, over in outputs.items():
            assert np.array_equal(values[over].numpy(), {"c": a + b, "d": a - b}[name])


WRONG = {
    "read-only output": (
        lambda ort, b, a: b.bind_ortvalue_output("c", ort.OrtValue.ortvalue_from_numpy(a)),
        "output 'c': expected .* that may be written"),
    "size of an output": (
        lambda ort, b, a: b.bind_output("c", "cpu", 0, np.float32, [3, 3]),
        "output 'c': expected memory for float32 2x3.*found float32 3x3"),
    "type of an output": (
        lambda ort, b, a: b.bind_output("c", "cpu", 0, np.float64, [2, 3]),
        "output 'c': .*float32.*float64"),
    "type of an input": (
        lambda ort, b, a: b.bind_cpu_input("a", a.astype(np.float64)),
        "input 'a': .*float32.*float64"),
    "size of an input": (
        lambda ort, b, a: b.bind_cpu_input("a", np.concatenate([a, a])), "'rows'"),
    "name of an input": (
        lambda ort, b, a: b.bind_cpu_input("aa", a), "input 'aa': expected one of a, b"),
    "name of an output": (
        lambda ort, b, a: b.bind_output("a"), "output 'a': expected one of c, d"),
    "no array": (
        lambda ort, b, a: b.bind_cpu_input("a", [1.0]), "input 'a': expected a NumPy array"),
    "no OrtValue": (
        lambda ort, b, a: b.bind_ortvalue_input("a", a), "input 'a': expected an OrtValue"),
    "null address": (
        lambda ort, b, a: b.bind_input("a", "cpu", 0, np.float32, [2, 3], 0),
        "input 'a': expected the address of 24 bytes, found 0"),
    "negative size": (
        lambda ort, b, a: b.bind_input("a", "cpu", 0, np.float32, [-2, 3], a.ctypes.data),
        "input 'a': expected a list of sizes of 0 or more, found .-2, 3."),
    "unknown dtype": (
        lambda ort, b, a: b.bind_input("a", "cpu", 0, "floaty", [2, 3], a.ctypes.data),
        "input 'a': expected a dtype of numbers or bools"),
    "device": (
        lambda ort, b, a: b.bind_output("c", "cuda"), "device: expected 'cpu', found 'cuda'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_refused(ort, session, binding, wrong):
    action, message = WRONG[wrong]
    a = np.ones((2, 3), np.float32)
    a.flags.writeable = False
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=message) as error:
        action(ort, binding, a)
        session.run_with_iobinding(binding)
    assert isinstance(error.value, RuntimeError), "as onnxruntime raises"
    sums, differences = session.run(None, {"a": a, "b": a})
    assert np.all(sums == 2) and not differences.any()


@pytest.mark.parametrize("first", ["c", "d"])
def test_a_binding_that_failed_fails_again(ort, session, first):
    """It does not pass for another binding with as many calls."""
    def bind(**outputs):
        binding = session.io_binding()
        for name in "ab":
            binding.bind_cpu_input(name, np.full((2, 3), 5, np.float32))
        for name in (first, "d" if first == "c" else "c"):
            binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(outputs[name]))
        return binding

    read_only = np.zeros((2, 3), np.float32)
    read_only.flags.writeable = False
    session.run_with_iobinding(bind(c=np.empty((2, 3), np.float32), d=np.empty((2, 3), np.float32)))
    sums = np.full((2, 3), -7, np.float32)
    wrong = bind(c=sums, d=read_only)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="output 'd'"):
            session.run_with_iobinding(wrong)
    assert np.all(session.run(["c"], dict.fromkeys("ab", np.ones((2, 3), np.float32)))[0] == 2)
    assert np.all(sums == -7) and not read_only.any()
    session.run_with_iobinding(bind(c=sums, d=np.empty((2, 3), np.float32)))
    assert np.all(sums == 10)


TYPES = [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint16, np.bool_]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 2)])
def test_values_share_memory_in_all_directions(ort, dtype, shape):
    array = np.ones(shape, dtype)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.shape() == list(shape) and value.has_value() and not value.is_sparse_tensor()
    for other in (value.numpy(), np.asarray(value), np.from_dlpack(value)):
        assert other.dtype == dtype and other.shape == shape
        assert other.ctypes.data == array.ctypes.data or array.size == 0
    value.update_inplace(np.zeros(shape, dtype))
    assert not array.any()
    again = ort.OrtValue.from_dlpack(array)
    assert again.data_type() == value.data_type() and again.element_type() == value.element_type()
    assert again.tensor_size_in_bytes() == array.nbytes
    assert value.__dlpack_device__() == (1, 0)
    with pytest.raises(RuntimeError, match="expected an array of"):
        value.update_inplace(np.zeros((7, 7), dtype))


def test_other_ways_to_make_a_value(ort):
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value.numpy().astype(np.float32).tolist() == [1, 2]
    made = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], TensorProto.INT32)
    assert made.numpy().dtype == np.int32 and made.data_ptr() % 64 == 0
    columns = np.asfortranarray(rows(2))
    dense = ort.OrtValue.ortvalue_from_numpy(columns)
    assert np.array_equal(dense.numpy(), columns) and dense.data_ptr() != columns.ctypes.data
    assert np.asarray(dense, np.float64).dtype == np.float64
    for wrong in ([1.0], np.array(["text"]), np.array([{}]), None):
        with pytest.raises(RuntimeError, match="OrtValue: expected a NumPy array"):
            ort.OrtValue.ortvalue_from_numpy(wrong)
    assert ort.OrtDevice.make("cpu", 0).device_type() == ort.OrtDevice.cpu()
