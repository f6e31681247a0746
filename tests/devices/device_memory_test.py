"""Arrays in memory of a device, from Python and from the command line, with the fake device of
tests/backends/fake."""

import os

import numpy as np
import pytest
from programs import json_of, run_program
from small_models import model_bytes, node

ON_FAKE = {"x": "row_major@fake", "y": "row_major@fake"}


@pytest.fixture(scope="module")
def backends(tessera, built_plugin):
    backends = tessera.Backends()
    backends.load_backend(built_plugin("fake"))
    return backends


def small_model(*nodes, dims=(2, 3)):
    return model_bytes(nodes, {"x": dims}, {"y": dims})


@pytest.fixture
def relu(tessera, backends):
    """y = -|x|: two steps."""
    nodes = (node("Abs", "x", "a"), node("Neg", "a", "y"))
    return tessera.load(small_model(*nodes), backends=backends)


@pytest.fixture
def x():
    return np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def bind(model, **options):
    return model.bind(backends=["fake", "reference"], optimize=False, **options)


def test_arrays_go_to_a_device_and_back(backends, x):
    array = backends.to_device(x, "fake")
    assert (array.device, array.shape, array.dtype, array.nbytes) == ("fake", (2, 3), x.dtype, 24)
    assert (array.ndim, array.size) == (2, 6)
    assert repr(array) == "<tessera.DeviceArray float32 2x3 on fake>"
    np.testing.assert_array_equal(array.to_host(), x)
    np.testing.assert_array_equal(array, x)
    assert np.asarray(array, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        array.__array__(copy=False)
    again = backends.to_device(array, "fake")
    np.testing.assert_array_equal(again.to_host(), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "int64", "float64"])
def test_every_element_type_can_be_there(backends, dtype):
    values = np.array([0, 1, 1, 0]).astype(dtype)
    array = backends.to_device(values, "fake")
    assert array.dtype == dtype
    np.testing.assert_array_equal(array.to_host(), values)
    again = backends.from_dlpack(array)
    assert again.dtype == dtype
    np.testing.assert_array_equal(again.to_host(), values)


def test_sizes_at_the_edges(backends):
    for shape in ((), (0, 3), (1,)):
        values = np.ones(shape, np.float32)
        np.testing.assert_array_equal(backends.to_device(values, "fake").to_host(), values)
        np.testing.assert_array_equal(
            backends.from_dlpack(backends.to_device(values, "fake")).to_host(), values)


def test_results_stay_on_the_device(relu, backends, x):
    executor = bind(relu, layouts=ON_FAKE)
    assert executor.inputs[0].layout == executor.outputs[0].layout == "row_major@fake"
    assert not [step for step in executor.plan().steps if step.op == "convert+copy"]
    y, = executor.run(backends.to_device(x, "fake"))
    assert y.device == "fake"
    z, = executor.run({"x": y})
    np.testing.assert_array_equal(y, -abs(x))
    np.testing.assert_array_equal(z, -abs(x))


def test_only_the_end_on_the_device_is_no_copy(relu, backends, x):
    executor = bind(relu, layouts={"y": "row_major@fake"})
    y, = executor.run(x)
    assert y.device == "fake"
    copies = [step for step in executor.plan().steps if step.op == "convert+copy"]
    assert [step.outputs[0].layout for step in copies] == ["row_major@fake"]
    np.testing.assert_array_equal(y, -abs(x))


def test_the_host_computes_for_a_device_too(tessera, relu, backends, x):
    executor = bind(relu, layouts=ON_FAKE, pins=[tessera.Pin("*", "reference")])
    copies = [step for step in executor.plan().steps if step.op == "convert+copy"]
    assert [step.outputs[0].device for step in copies] == ["cpu", "fake"]
    y, = executor.run(backends.to_device(x, "fake"))
    np.testing.assert_array_equal(y, -abs(x))


def test_bound_memory(relu, backends, x):
    executor = bind(relu, layouts=ON_FAKE)
    given, result = backends.to_device(x, "fake"), backends.new_array((2, 3), np.float32, "fake")
    executor.bind_input("x", given)
    executor.bind_output("y", result)
    y, = executor.run()
    assert y is result
    np.testing.assert_array_equal(result, -abs(x))
    # The output overwrites the input, as if that had been copied before the run.
    executor.bind_output("y", given)
    executor.run()
    np.testing.assert_array_equal(given, -abs(x))


def test_state_is_written_over_its_input(tessera, backends, x):
    model = tessera.load(small_model(node("Add", "x x", "y")), backends=backends)
    executor = bind(model, layouts=ON_FAKE, state_pairs=[("x", "y")])
    state = backends.to_device(x, "fake")
    executor.bind_input("x", state)
    executor.bind_output("y", state)
    for _ in range(3):
        executor.run()
    np.testing.assert_array_equal(state, 8 * x)
    with pytest.raises(tessera.InvalidArgument, match="one type, shape and memory"):
        bind(model, layouts={"x": "row_major@fake"}, state_pairs=[("x", "y")])


def test_other_memory_is_refused_with_the_step(tessera, relu, backends, x):
    executor = bind(relu, layouts=ON_FAKE)
    with pytest.raises(tessera.InvalidArgument) as error:
        executor.run(x)
    for text in ("input 'x'", "node 'a' (Abs)", "device 'fake'", "to_device()"):
        assert text in str(error.value)
    host = bind(relu)
    with pytest.raises(tessera.InvalidArgument, match="'row_major@fake'"):
        host.run(backends.to_device(x, "fake"))
    np.testing.assert_array_equal(host.run(x)[0], -abs(x))
    with pytest.raises(tessera.InvalidArgument, match="expected a device that has memory"):
        tessera.Backends().to_device(x, "fake")


@pytest.mark.parametrize("layout, text", [
    ("row_major@", "expected 'row_major', perhaps with '@'"),
    ("nhwc@fake", "found 'nhwc@fake'"),
    ("row_major@fak", "did you mean 'fake'"),
    ("row_major@fake:7", r"\(one of 'fake'"),
])
def test_layouts_that_cannot_be(tessera, relu, layout, text):
    with pytest.raises(tessera.InvalidArgument, match=text):
        bind(relu, layouts={"x": layout})


def test_the_host_is_a_device_by_name(relu, x):
    np.testing.assert_array_equal(bind(relu, layouts={"x": "row_major@cpu"}).run(x)[0], -abs(x))


def test_a_device_that_was_not_chosen_has_no_inputs(tessera, relu):
    with pytest.raises(tessera.InvalidArgument, match="there is none"):
        bind(relu, layouts=ON_FAKE, devices=["cpu"])
    with pytest.raises(tessera.InvalidArgument, match="there is none"):
        relu.bind(backends=["reference"], optimize=False, layouts=ON_FAKE)


@pytest.mark.parametrize("device", ["cpu", "", "fake:9", "nothing", ":", "opencl:999"])
def test_devices_that_are_not_there(tessera, backends, x, device):
    with pytest.raises((tessera.InvalidArgument, tessera.Unsupported), match="device '"):
        backends.to_device(x, device)


def test_what_cannot_be_on_a_device(tessera, backends, x):
    with pytest.raises(tessera.InvalidArgument):
        backends.to_device(np.array(["text"]), "fake")
    with pytest.raises(tessera.InvalidArgument, match="at least 0, found -1"):
        backends.new_array((-1,), np.float32, "fake")
    with pytest.raises(tessera.InvalidArgument, match="64 bits"):
        backends.new_array((1 << 40, 1 << 40), np.float32, "fake")
    with pytest.raises(tessera.InvalidArgument, match="found one in the host's memory"):
        backends.from_dlpack(x)
    with pytest.raises(tessera.InvalidArgument, match="found int"):
        backends.from_dlpack(3)


def test_shapes_change_on_the_device(tessera, backends):
    model = tessera.load(small_model(node("Neg", "x", "y"), dims=("rows", 2)), backends=backends)
    executor = bind(model, shapes={"x": (1, 2)}, layouts=ON_FAKE)
    for rows in (1, 4, 0, 2, 4):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        y, = executor.run(backends.to_device(x, "fake"))
        assert y.device == "fake"
        np.testing.assert_array_equal(y, -x)


def test_an_array_outlives_everything_else(tessera, bin_dir, x):
    backends = tessera.Backends()
    backends.load_backend(bin_dir.parent / "tests" / "backends" / "fake.so")
    model = tessera.load(small_model(node("Neg", "x", "y")), backends=backends)
    y, = bind(model, layouts=ON_FAKE).run(backends.to_device(x, "fake"))
    shared = backends.from_dlpack(y)
    del backends, model, y
    np.testing.assert_array_equal(shared, -x)


def test_a_saved_plan_keeps_inputs_on_the_device(relu, backends, x, tmp_path):
    options = {"backends": ["fake", "reference"], "layouts": ON_FAKE, "optimize": True,
               "cache_dir": tmp_path, "tune_budget_seconds": 1}
    for _ in range(2):
        executor = relu.bind(**options)
        np.testing.assert_array_equal(executor.run(backends.to_device(x, "fake"))[0], -abs(x))
    executor = relu.bind(**{**options, "layouts": {}})
    np.testing.assert_array_equal(executor.run(x)[0], -abs(x))


def test_the_command_line_copies_inputs_and_outputs(tessera_binary, bin_dir, x, tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(small_model(node("Neg", "x", "y")))
    np.save(tmp_path / "x.npy", x)
    call = [tessera_binary, "run", model, "--input", "x=x.npy", "--output", "out",
            "--backend-path", bin_dir.parent / "tests" / "backends" / "fake.so", "--backends",
            "fake,reference", "--layout", "x=row_major@fake", "--layout", "y=row_major@fake"]
    run_program(*call, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), -x)
    explained = json_of(*call[:1], "explain", model, "--json", *call[7:], cwd=tmp_path)
    assert [step["op"] for step in explained["steps"]] == ["Neg"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_a_forked_child_cannot_read_it(tessera, backends, x):
    array = backends.to_device(x, "fake")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            array.to_host()
            text = "read it"
        except tessera.DeviceFailed as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert "device 'fake'" in text and "forked" in text
    np.testing.assert_array_equal(array, x)
