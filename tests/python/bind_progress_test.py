"""The values that a progress callback receives during bind(), and the effect of its return
value."""

import gc
import time
import weakref

import numpy
import pytest
from small_models import node

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

SHAPE = [1, 16, 32, 32]


@pytest.fixture
def path(save_model):
    nodes, weights = [], {}
    for at in range(3):
        weight = numpy.full((16, 16, 3, 3), 0.01, numpy.float32)
        weights[f"w{at}"] = weight
        nodes.append(node("Conv", f"x{at} w{at}", f"x{at + 1}", pads=[1, 1, 1, 1]))
    return save_model(nodes, {"x0": SHAPE}, {"x3": SHAPE}, weights)


def test_a_callback_is_told_of_phases(tessera, path):
    told = []
    tessera.load(path).bind(optimize=True, retune=True, threads=1, on_progress=told.append)
    assert {"preparing the model", "measuring candidates", "choosing a plan",
            "packing weights"} <= {progress.phase for progress in told}
    for progress in told:
        assert progress.done <= progress.total or progress.total == 0
        assert progress.seconds_left is None or progress.seconds_left > 0
        if progress.phase == "measuring candidates":
            assert progress.total > 0 and progress.can_stop and progress.what
        if progress.contender:
            assert progress.phase == "comparing whole plans"
            assert progress.what == progress.contender.name
    assert not told[0].can_stop


def test_what_stops_once_stays_stopped(tessera, path):
    told = []

    def stop_when_measuring(progress):
        told.append(progress)
        return progress.phase != "measuring candidates"

    executor = tessera.load(path).bind(optimize=True, retune=True, threads=1,
                                       on_progress=stop_when_measuring)
    assert executor.plan().tuning.is_stopped
    measuring = [progress for progress in told if progress.phase == "measuring candidates"]
    assert len(measuring) == 1
    assert executor.run(numpy.ones(SHAPE, numpy.float32))[0].shape == tuple(SHAPE)


def test_what_was_stopped_keeps_prices_and_no_packs(tessera, path, tmp_path, monkeypatch):
    """A user who stops waits for the end, so large packs, which take long, are not written. A
    complete search writes them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("TESSERA_OPTIMIZE")

    def take_time(progress, goes_on):
        if progress.phase != "measuring candidates" or progress.done > 0:
            return True
        time.sleep(1.1)  # so that it is worth saving
        return goes_on

    packs = {}
    for goes_on in (False, True):
        executor = tessera.load(path).bind(
            optimize=True, retune=True, threads=1, tune_budget_seconds=60,
            on_progress=lambda progress, goes_on=goes_on: take_time(progress, goes_on))
        assert executor.plan().tuning.is_stopped == (not goes_on)
        assert executor.cache_report().saved
        packs[goes_on] = list((tmp_path / "user").rglob("*.packs"))
    assert packs[False] == [] and packs[True] != []


def test_a_callback_is_released(tessera, path):
    """Also one that stopped the search, whose results stay in the process."""

    class Watcher:
        def __init__(self, answer):
            self.answer = answer

        def __call__(self, progress):
            if self.answer is None:
                raise ValueError("enough")
            return self.answer

    model = tessera.load(path)
    for answer in (True, False, None):
        watcher = Watcher(answer)
        released = weakref.ref(watcher)
        try:
            model.bind(optimize=True, retune=True, threads=1, on_progress=watcher)
        except ValueError:
            assert answer is None
        del watcher
        gc.collect()
        assert released() is None


def test_a_budget_bounds_what_is_told(tessera, path):
    told = []
    tessera.load(path).bind(optimize=True, retune=True, threads=1, tune_budget_seconds=1.0,
                            tune_all=True, on_progress=told.append)
    allowed = [progress.seconds_allowed for progress in told
               if progress.phase == "measuring candidates"]
    assert allowed and all(seconds is not None and 0 <= seconds <= 1 for seconds in allowed)
