"""The messages that the logger "tessera" receives."""

import logging

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import node


@pytest.fixture
def messages(caplog):
    """A function that returns the messages since the last call: (level, text)."""
    caplog.set_level(logging.DEBUG, "tessera")

    def take():
        taken = [(record.levelno, record.getMessage()) for record in caplog.records
                 if record.name == "tessera"]
        caplog.clear()
        return taken

    return take


SHAPE = [1, 20, 34, 30]
# Small models of a process share a budget, of which other tests may have left nothing, unless they have
# one of their own.
MEASURED = {"optimize": True, "tune_budget_seconds": 20}


@pytest.fixture
def path(save_model):
    weight = np.full((20, 20, 3, 3), 0.01, np.float32)
    return save_model([node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": SHAPE}, {"y": SHAPE},
                      {"w": weight})


def debug(taken):
    return [text for level, text in taken if level == logging.DEBUG]


def one(texts, beginning):
    found = [text for text in texts if text.startswith(beginning)]
    assert len(found) == 1, texts
    return found[0]


def test_load_and_bind_tell_what_they_did(tessera, path, messages):
    model = tessera.load(path)
    told = one(debug(messages()), "load: ")
    assert str(path) in told and "1 nodes" in told and " ms" in told
    model.bind()
    texts = debug(messages())
    assert "x: float32 1x20x34x30" in one(texts, "bind: ")
    assert one(texts, "cache: ") == (
        "cache: not asked, because bind() does not measure (optimize)")
    assert "1 steps" in one(texts, "plan: ")
    assert not [text for text in texts if text.startswith("tune: ")]


def test_measuring_tells_what_won_and_the_cache_whether_it_knew(tessera, path, messages,
                                                               needs_a_library):
    tessera.load(path).bind(**MEASURED)
    texts = debug(messages())
    assert any(text.startswith("cache: no hit: ") for text in texts)
    assert any(text.startswith("cache: saved in ") for text in texts)
    assert any(text.startswith("tune: ") and " candidates measured in " in text for text in texts)
    chosen = [text for text in texts if text.startswith("tune: * ")]
    assert len(chosen) == 1 and "Conv" in chosen[0] and chosen[0].endswith(" us")
    tessera.load(path).bind(**MEASURED)
    texts = debug(messages())
    assert one(texts, "cache: hit").startswith("cache: hit: ")


def test_nothing_is_computed_if_nobody_listens(tessera, path, caplog):
    caplog.set_level(logging.INFO, "tessera")
    tessera.load(path).bind()
    assert [record for record in caplog.records if record.levelno == logging.DEBUG] == []


def test_warnings_have_the_level_of_warnings(tessera, save_model, messages):
    import onnx

    path = save_model([node("Add", "x x", "t"), node("Add", "t t", "y")], {"x": [2, 3]},
                      {"y": [2, 3]})
    model = onnx.load(path)
    model.graph.value_info.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, [7, 7]))
    onnx.save(model, path)
    tessera.load(path)
    levels = {level for level, text in messages() if "'t'" in text}
    assert levels == {logging.WARNING}
