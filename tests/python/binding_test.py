"""Runs on the caller's arrays: bind_input, bind_output, state pairs, and runs that end early."""

import threading

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import node

FLOAT = TensorProto.FLOAT


@pytest.fixture
def doubling(tessera, doubling_model):
    return tessera.load(doubling_model).bind({"x": (2, 3)}, threads=1)


@pytest.fixture
def counter(tessera, save_model):
    """total = past + x, and mean = past / 2, which reads the past too."""
    path = save_model([node("Add", "past x", "total"), node("Mul", "past past", "square")],
                      {"past": [4], "x": [4]}, {"total": [4], "square": [4]})
    model = tessera.load(path)
    return lambda **options: model.bind(threads=1, **options)


def test_runs_read_and_write_the_arrays_that_are_bound(doubling):
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    doubling.bind_input("x", x)
    doubling.bind_output("y", y)
    doubling.run_bound()
    assert (y == 2).all()
    x[:] = 5
    [given] = doubling.run()
    assert given is y and (y == 10).all()
    # An array passed to one run replaces the bound one for that run.
    [given] = doubling.run(np.full((2, 3), 7, np.float32))
    assert given is y and (y == 14).all()
    doubling.run_bound()
    assert (y == 10).all() and (x == 5).all()


def test_arrays_stay_alive_as_long_as_they_are_bound(doubling):
    doubling.bind_input("x", np.full((2, 3), 3, np.float32))
    doubling.bind_output("y", np.zeros((2, 3), np.float32))
    [given] = doubling.run()
    assert (given == 6).all()


def test_what_is_not_bound_is_the_callers_own(doubling):
    doubling.bind_input("x", np.ones((2, 3), np.float32))
    [first] = doubling.run()
    [second] = doubling.run(np.zeros((2, 3), np.float32))
    assert (first == 2).all() and (second == 0).all()
    doubling.clear_bindings()
    with pytest.raises(ValueError, match="expected one array for each of 1 inputs"):
        doubling.run()


@pytest.mark.parametrize("offset", (0, 4, 20))
def test_any_address_that_an_element_can_have_will_do(doubling, offset):
    memory = np.zeros(256, np.uint8)
    x = memory[offset : offset + 24].view(np.float32).reshape(2, 3)
    y = memory[128 + offset : 152 + offset].view(np.float32).reshape(2, 3)
    x[:] = 4
    doubling.bind_input("x", x)
    doubling.bind_output("y", y)
    doubling.run_bound()
    assert (y == 8).all() and memory[152 + offset :].sum() == 0


def test_wrong_arrays_are_refused(tessera, doubling):
    refused = pytest.raises(tessera.InvalidArgument, match="expected memory for float32 2x3")
    with refused:
        doubling.bind_output("y", np.zeros((3, 2), np.float32))
    with pytest.raises(tessera.InvalidArgument, match="expected float32 2x3, found float64 2x3"):
        doubling.bind_input("x", np.zeros((2, 3)))
    with pytest.raises(tessera.InvalidArgument, match="no such output; it has 'y'"):
        doubling.bind_output("z", np.zeros((2, 3), np.float32))
    with pytest.raises(tessera.InvalidArgument, match="dense row-major"):
        doubling.bind_input("x", np.zeros((3, 2), np.float32).T)
    constant = np.zeros((2, 3), np.float32)
    constant.flags.writeable = False
    with pytest.raises(tessera.InvalidArgument, match="may be written"):
        doubling.bind_output("y", constant)
    with pytest.raises(tessera.InvalidArgument, match="input 'x': expected all inputs to be bound"):
        doubling.run_bound()


def test_outputs_that_overlap_are_refused(tessera, counter):
    executor = counter()
    memory = np.zeros(64, np.float32)
    executor.bind_input("past", memory[:4])
    executor.bind_input("x", memory[16:20])
    executor.bind_output("square", memory[32:36])
    executor.bind_output("total", memory[34:38])
    with pytest.raises(tessera.InvalidArgument, match="overlaps output 'total'"):
        executor.run_bound()
    executor.bind_output("total", memory[48:52])
    executor.run_bound()


@pytest.mark.parametrize("backends", (("native",), ("reference",), ()))
@pytest.mark.parametrize(("past", "x", "total", "square"), [
    (0, 16, 0, 32), (0, 16, 16, 32), (0, 16, 0, 16), (0, 16, 16, 0), (0, 16, 2, 32), (4, 16, 1, 32),
    (0, 0, 0, 32), (0, 0, 32, 0), (0, 2, 1, 5), (1, 3, 33, 2),
])
def test_outputs_may_be_written_over_inputs(counter, backends, past, x, total, square, why_unusable):
    """As if the inputs had been copied before."""
    if backends and why_unusable.get(backends[0]):
        pytest.skip(why_unusable[backends[0]])
    executor = counter(backends=backends) if backends else counter()
    memory = np.zeros(64, np.float32)
    executor.bind_input("past", memory[past : past + 4])
    executor.bind_input("x", memory[x : x + 4])
    executor.bind_output("total", memory[total : total + 4])
    executor.bind_output("square", memory[square : square + 4])
    for _ in range(3):
        memory[:] = np.arange(64)
        before = memory.copy()
        executor.run_bound()
        expected = before.copy()
        expected[total : total + 4] = before[past : past + 4] + before[x : x + 4]
        expected[square : square + 4] = before[past : past + 4] ** 2
        np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("backends", (("native",), ("reference",)))
def test_state_is_written_over_its_input(counter, backends, why_unusable):
    if why_unusable.get(backends[0]):
        pytest.skip(why_unusable[backends[0]])
    executor = counter(state_pairs=[("past", "total")], backends=backends)
    state, x = np.zeros(4, np.float32), np.arange(4, dtype=np.float32)
    square = np.zeros(4, np.float32)
    executor.bind_input("past", state)
    executor.bind_input("x", x)
    executor.bind_output("total", state)
    executor.bind_output("square", square)
    for run in range(1, 5):
        executor.run_bound()
        assert (state == run * x).all()
        assert (square == ((run - 1) * x) ** 2).all()


def test_state_pairs_must_be_alike(tessera, counter):
    with pytest.raises(tessera.InvalidArgument, match="has no input 'nobody'"):
        counter(state_pairs=[("nobody", "total")])


@pytest.mark.parametrize("backends", (("native",), ("reference",)))
def test_a_cache_with_space_is_written_in_place(tessera, save_model, backends, why_unusable):
    """The number of positions is known only in the run, so the node alone does not tell whether the
    cache grows."""
    if why_unusable.get(backends[0]):
        pytest.skip(why_unusable[backends[0]])
    heads, space, size = 2, 6, 4
    int32 = helper.make_tensor_type_proto(TensorProto.INT32, [1])
    attend = node("GroupQueryAttention", "query key value past_key past_value last total",
                  "y present_key present_value", domain="com.microsoft", num_heads=heads,
                  kv_num_heads=heads)
    cache = [1, heads, "past", size]
    grown = [1, heads, "present", size]
    path = save_model(
        [attend], {**dict.fromkeys(("query", "key", "value"), [1, 1, heads * size]),
                   "past_key": cache, "past_value": cache, "last": int32, "total": int32},
        {"y": [1, 1, heads * size], "present_key": grown, "present_value": grown},
        domains={"com.microsoft": 1})
    pairs = [(f"past_{kind}", f"present_{kind}") for kind in ("key", "value")]
    shape = (1, heads, space, size)
    executor = tessera.load(path).bind({"past_key": shape, "past_value": shape}, threads=1,
                                       state_pairs=pairs, backends=backends)
    caches = [np.full(shape, np.nan, np.float32) for _ in pairs]
    for memory, (past, present) in zip(caches, pairs, strict=True):
        executor.bind_input(past, memory)
        executor.bind_output(present, memory)
    random = np.random.default_rng(1)
    keys, values = [], []
    for position in range(space):
        query, key, value = random.standard_normal((3, 1, 1, heads * size)).astype(np.float32)
        y = executor.run({"query": query, "key": key, "value": value,
                          "last": np.array([position], np.int32),
                          "total": np.array([position + 1], np.int32)})[0]
        keys.append(key.reshape(heads, size))
        values.append(value.reshape(heads, size))
        for memory, rows in zip(caches, (keys, values), strict=True):
            np.testing.assert_array_equal(memory[0, :, :position + 1], np.stack(rows, axis=1))
            assert np.isnan(memory[0, :, position + 1:]).all()
        scores = np.einsum("hd,phd->hp", query.reshape(heads, size), np.stack(keys)) / 2
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        expected = np.einsum("hp,phd->hd", weights, np.stack(values)).reshape(y.shape)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_a_run_has_a_time_limit(tessera, doubling):
    doubling.set_time_limit(1e-9)
    with pytest.raises(tessera.Cancelled, match="expected the run to end within"):
        doubling.run(np.ones((2, 3), np.float32))
    doubling.set_time_limit(0)
    [y] = doubling.run(np.ones((2, 3), np.float32))
    assert (y == 2).all()
    with pytest.raises(tessera.InvalidArgument, match="expected 0"):
        doubling.set_time_limit(-1)


def test_a_run_is_cancelled_from_another_thread(tessera, save_model):
    # About a second of matrix products on the reference.
    size, steps = 96, 400
    path = save_model([node("MatMul", f"v{at} v0", f"v{at + 1}") for at in range(steps)],
                      {"v0": [size, size]}, {f"v{steps}": [size, size]})
    executor = tessera.load(path).bind(threads=1, backends=["reference"])
    outcome = []

    def run():
        try:
            executor.run(np.zeros((size, size), np.float32))
            outcome.append("done")
        except tessera.Cancelled as error:
            outcome.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        executor.cancel()
    assert outcome != ["done"] and "the run was cancelled" in outcome[0]
    [result] = executor.run(np.zeros((size, size), np.float32))
    assert (result == 0).all()


def test_denormals_are_zero_unless_they_are_kept(doubling_model, tessera, needs_native):
    least = np.full((2, 3), np.finfo(np.float32).tiny / 4, np.float32)
    model = tessera.load(doubling_model)
    for backends in (["native"], ["reference"]):
        flushing = model.bind({"x": (2, 3)}, backends=backends)
        keeping = model.bind({"x": (2, 3)}, backends=backends, keep_denormals=True)
        assert (flushing.run(least)[0] == 0).all()
        assert (keeping.run(least)[0] == 2 * least).all()
    assert least[0, 0] * np.float32(2) != 0


def test_dispatch_is_measured(doubling):
    assert 0 < doubling.measure_dispatch_ns() < 5000
