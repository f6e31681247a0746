"""optimize="behind": bind() returns at once, measuring follows behind the runs, and the result is
swapped in and kept."""

import time

import numpy
import pytest
from programs import run_program, run_python
from small_models import node, normal, save_model

SIZE = 384


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Products that take some milliseconds, so that whole plans are measured."""
    random = numpy.random.default_rng(1)
    nodes, weights, name = [], {}, "x"
    for index in range(8):
        weights[f"w{index}"] = normal(random, SIZE, SIZE) / SIZE ** 0.5
        nodes.append(node("MatMul", [name, f"w{index}"], f"m{index}"))
        nodes.append(node("Relu", f"m{index}", f"r{index}"))
        name = f"r{index}"
    return save_model(tmp_path_factory.mktemp("behind") / "model.onnx", nodes, {"x": [SIZE, SIZE]},
                      {name: [SIZE, SIZE]}, weights)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("TESSERA_OPTIMIZE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def loaded(tessera, model):
    """Knows no measurements of other tests in this process."""
    return lambda: tessera.load(model, backends=tessera.Backends())


def feeds():
    return {"x": numpy.ones((SIZE, SIZE), numpy.float32)}


def test_the_plan_is_that_without_measuring_then_the_measured_one(loaded, folder):
    fresh = loaded()
    off = fresh.bind(threads=1, optimize="off")
    executor = fresh.bind(threads=1, optimize="behind", cache_dir=folder)
    steps = [(step.name, step.backend) for step in executor.plan().steps]
    assert steps == [(step.name, step.backend) for step in off.plan().steps]
    before = executor.run(feeds())[0]
    executor.wait_for_swap()
    assert "swap" in [stage.name for stage in executor.stages]
    after = executor.run(feeds())[0]
    numpy.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)
    contenders = executor.plan().placement.contenders
    assert contenders
    for one in contenders:
        assert one.kind in one.name and one.backend in one.name and one.round >= 1
        assert bool(one.backend) == (one.kind in ("alone", "unsplit"))
    assert list(folder.glob("*.cache"))
    again = loaded().bind(threads=1, optimize="behind", cache_dir=folder, frozen=True)
    assert again.cache_report().is_hit


def test_runs_start_it_and_take_the_result(loaded, folder):
    executor = loaded().bind(threads=1, optimize="behind", cache_dir=folder)
    deadline = time.monotonic() + 300  # measuring has low priority
    while "swap" not in [stage.name for stage in executor.stages]:
        executor.run(feeds())
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("retune", [False, True])
def test_retune_measures_again_behind_the_runs_too(loaded, folder, retune):
    model = loaded()
    model.bind(threads=1, optimize="now", cache_dir=folder)
    executor = model.bind(threads=1, optimize="behind", cache_dir=folder, retune=retune)
    executor.wait_for_swap()
    assert executor.cache_report().is_hit != retune
    if retune:
        tuning = executor.plan().tuning
        assert tuning.measured > 0 and tuning.reused == 0


def test_a_known_plan_is_used_at_once(loaded, folder):
    loaded().bind(threads=1, optimize="now", cache_dir=folder)
    executor = loaded().bind(threads=1, optimize="behind", cache_dir=folder)
    assert executor.cache_report().is_hit
    executor.wait_for_swap()


def test_without_swap_nothing_is_measured(loaded, folder):
    executor = loaded().bind(threads=1, optimize="behind", cache_dir=folder, swap=False)
    executor.wait_for_swap()
    executor.run(feeds())
    assert not list(folder.glob("*.cache"))


@pytest.mark.parametrize("given, known", [(True, "now"), ("now", "now"), (False, "off"),
                                          ("off", "off")])
def test_truth_values_keep_their_meaning(loaded, folder, given, known):
    executor = loaded().bind(threads=1, optimize=given, cache_dir=folder)
    assert bool(list(folder.glob("*.cache"))) == (known == "now")
    assert (executor.plan().placement is not None) == (known == "now")


@pytest.mark.parametrize("given, text", [
    ("later", "optimize: expected 'off' or 'now' or 'behind', found 'later'"),
])
def test_other_words_are_refused(tessera, loaded, given, text):
    with pytest.raises(tessera.Error) as caught:
        loaded().bind(optimize=given)
    assert text in str(caught.value)


def test_nothing_is_left_when_the_process_ends_while_it_measures(tessera, model, folder):
    program = """
        import os, sys, time
        import numpy, tessera
        executor = tessera.load(sys.argv[1]).bind(threads=1, optimize="behind",
                                                  cache_dir=sys.argv[2])
        feeds = {"x": numpy.ones((%d, %d), numpy.float32)}
        executor.run(feeds)
        executor.run(feeds)
        time.sleep(0.3)
        print(os.getpid(), flush=True)
    """ % (SIZE, SIZE)
    start = time.monotonic()
    done = run_python(tessera, program, model, folder)
    assert done.stderr == ""
    assert time.monotonic() - start < 30
    # The measuring process is called with the number of its parent.
    listed = run_program("ps", "-eo", "stat,args")
    worker = "tessera-worker " + done.stdout.strip()
    assert not [line for line in listed.stdout.splitlines()
                if line.rstrip().endswith(worker) and not line.startswith("Z")]
