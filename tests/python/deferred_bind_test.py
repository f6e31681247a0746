"""bind() without shapes: the first run decides."""

import numpy as np
import pytest
from small_models import node


@pytest.fixture
def open_model(save_model):
    return save_model([node("Relu", "x", "y")], {"x": ["batch", 3]}, {"y": ["batch", 3]})


def test_the_first_run_decides(tessera, open_model):
    executor = tessera.load(open_model).bind(threads=1)
    assert not executor.has_shapes and executor.inputs[0].shape == ("batch", 3)
    assert executor.threads == 1 and "batchx3" in repr(executor)
    for count in (5, 2, 1, 40):
        x = np.arange(3 * count, dtype=np.float32).reshape(count, 3) - 4
        np.testing.assert_array_equal(executor.run(x)[0], np.maximum(x, 0))
        assert executor.has_shapes and executor.inputs[0].shape == (count, 3)
    assert executor.plan().steps


def test_what_needs_a_plan_says_what_to_do(tessera, open_model):
    executor = tessera.load(open_model).bind(threads=1)
    for call in (executor.plan, executor.memory, executor.cache_report):
        with pytest.raises(tessera.InvalidArgument, match="run it once, or give bind"):
            call()
    with pytest.raises(tessera.InvalidArgument, match="float32 batchx3.*found none given"):
        executor.run({})
    with pytest.raises(tessera.InvalidArgument, match="the model declares float32 batchx3"):
        executor.run(np.zeros((2, 4), np.float32))
    assert not executor.has_shapes
    assert executor.run(np.ones((2, 3), np.float32))[0].shape == (2, 3)


def test_mistakes_are_told_at_once(tessera, open_model):
    model = tessera.load(open_model)
    for options, text in (({"backends": ["abacus"]}, "abacus"), ({"threads": -1}, "threads"),
                          ({"shapes": {"z": (1,)}}, "no such input"),
                          ({"shapes": {"x": (2, 4)}}, "the model declares float32 batchx3")):
        with pytest.raises(tessera.InvalidArgument, match=text):
            model.bind(**options)


def test_some_shapes_may_be_given(tessera, save_model):
    path = save_model([node("MatMul", "a b", "y")], {"a": ["m", "k"], "b": ["k", "n"]},
                      {"y": ["m", "n"]})
    executor = tessera.load(path).bind({"a": (2, 5)}, threads=1)
    assert not executor.has_shapes
    a, b = np.ones((2, 5), np.float32), np.ones((5, 7), np.float32)
    np.testing.assert_array_equal(executor.run(a, b)[0], np.full((2, 7), 5, np.float32))
    executor.run(np.ones((3, 4), np.float32), np.ones((4, 6), np.float32))
