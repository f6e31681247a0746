"""`--memory-budget`: plans that need less memory are chosen if necessary; if none fits, the error
says so."""

import json
import re

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two convolutions with a ReLU between: most libraries can compute them in more than one way.
    """
    source = np.random.default_rng(1)
    weights = [source.standard_normal((32, 32, 3, 3), np.float32) / 16 for _ in range(2)]
    nodes = [node("Conv", "x w0", "a", "conv0", pads=[1, 1, 1, 1]), node("Relu", "a", "b", "relu"),
             node("Conv", "b w1", "y", "conv1", pads=[1, 1, 1, 1])]
    shape = [1, 32, 20, 20]
    return save_model(tmp_path_factory.mktemp("budget") / "model.onnx", nodes, {"x": shape},
                      {"y": shape}, {f"w{index}": weight for index, weight in enumerate(weights)})


@pytest.fixture
def inspect(tessera_binary, model):
    """The memory of the plan within a budget, or the error that says why there is none."""

    def call(budget=None, *options):
        budgets = [] if budget is None else ["--memory-budget", str(budget)]
        done = run_program(tessera_binary, "inspect", model, "--memory", "--json", "--threads", "1",
                           *budgets, *options, code=None)
        assert done.returncode in (0, 3), done.stderr
        report = json.loads(done.stdout)
        assert ("error" in report) == (done.returncode == 3)
        return report.get("error") or report

    return call


OPTIMIZED = ("--optimize", "--tune-budget", "10")


@pytest.mark.parametrize("options", [(), OPTIMIZED], ids=["in order", "optimized"])
def test_a_plan_fits_or_the_smallest_is_named(inspect, options):
    free = inspect(None, *options)
    assert free["total_bytes"] == (free["arena_bytes"] + free["weight_bytes"] +
                                   free["output_bytes"] + free["library_bytes"])
    assert free["output_bytes"] == 32 * 20 * 20 * 4
    error = inspect(1, *options)
    assert error["kind"] == "out_of_memory" and error["where"] == "memory budget"
    assert "at most 1 bytes" in error["message"]
    least = int(re.search(r"takes (\d+) bytes", error["message"]).group(1))
    assert least <= free["total_bytes"]
    fitting = inspect(least, *options)
    assert fitting["total_bytes"] == least
    error = inspect(least - 1, *options)
    assert f"takes {least} bytes" in error["message"]
    assert "none is smaller" in error["message"] or "not proven" in error["message"]


def test_what_fits_changes_nothing(inspect):
    free = inspect()
    fitting = inspect(free["total_bytes"])
    for report in (free, fitting):
        report.pop("plan_us")
    assert fitting == free


def test_it_runs_within_the_budget(tessera_binary, inspect, model, tmp_path):
    least = int(re.search(r"takes (\d+) bytes", inspect(1)["message"]).group(1))
    outputs = []
    for options in (["--backends", "reference"], ["--memory-budget", str(least)]):
        folder = tmp_path / str(len(outputs))
        run_program(tessera_binary, "run", model, "--random", "3", "--threads", "1", "--output",
                    folder, *options)
        outputs.append(np.load(next(folder.glob("*.npy"))))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1e6", "9223372036854775808"])
def test_a_budget_that_is_none(tessera_binary, model, text):
    for command in (["run"], ["bench"], ["tune"], ["explain"], ["inspect", "--memory"]):
        done = run_program(tessera_binary, *command, model, f"--memory-budget={text}", code=2)
        assert "--memory-budget" in done.stderr


def test_python_says_the_same(tessera, model):
    loaded = tessera.load(model)
    memory = loaded.bind(threads=1).plan().memory
    assert memory.total_bytes == (memory.arena_bytes + memory.weight_bytes + memory.output_bytes +
                                  memory.library_bytes)
    assert memory.lower_bound_bytes <= memory.arena_bytes <= memory.naive_bytes
    for block in memory.blocks:
        assert 0 <= block.offset and block.offset + block.bytes <= memory.arena_bytes
        assert block.lower < block.upper
    with pytest.raises(tessera.OutOfMemory, match="memory budget"):
        loaded.bind(threads=1, memory_budget_bytes=1)
    with pytest.raises(tessera.InvalidArgument, match="memory_budget_bytes"):
        loaded.bind(threads=1, memory_budget_bytes=-1)
