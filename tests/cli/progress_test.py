"""The progress line: only on a terminal, updated at least once a second, and correct."""

import itertools
import re
import subprocess
import time

import numpy as np
import pytest
from programs import run_program
from small_models import node, normal, save_model
from terminal import run_on_terminal

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

ERASE = "\r\x1b[K"
BUDGET = 3
# The texts that may appear while a model is tuned, in the order in which each may first appear.
PHASES = ["computing expected values", "measuring candidates", "comparing whole plans"]
OTHERS = ["loading", "preparing the model", "starting to measure", "choosing a plan",
          "building kernels", "packing weights", "timing the steps of a plan", "computing margins",
          "storing what was found", "preparing inputs", "waiting until other processes"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Convolutions of many shapes, so that measuring takes some seconds."""
    rng = np.random.default_rng(1)
    nodes, weights = [], {}
    channels = [24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 24]
    for at, (from_channels, to_channels) in enumerate(itertools.pairwise(channels)):
        weights[f"w{at}"] = normal(rng, to_channels, from_channels, 3, 3) / 15
        nodes += [node("Conv", f"x{at} w{at}", f"c{at}", pads=[1, 1, 1, 1]),
                  node("Relu" if at % 2 else "Sigmoid", f"c{at}", f"x{at + 1}")]
    shape = [1, 24, 40, 40]
    return save_model(tmp_path_factory.mktemp("progress") / "model.onnx", nodes, {"x0": shape},
                      {"x12": shape}, weights)


def watch(command, columns=100):
    """Runs `command` with a terminal as stderr; returns everything that it wrote there, and each
    line as (seconds since the start, text)."""
    pieces = []
    start = time.monotonic()
    done = run_on_terminal(
        command, "stderr", columns, stdout=subprocess.PIPE,
        on_piece=lambda piece: pieces.append((time.monotonic() - start, piece.decode())))
    assert done.returncode == 0, done.stdout
    lines = [(when, line) for when, text in pieces for line in text.split(ERASE) if line]
    return "".join(text for _, text in pieces), lines, time.monotonic() - start


def tune(tessera_binary, model):
    return [tessera_binary, "tune", model, "--tune-budget", str(BUDGET), "--all", "--threads", "1"]


@pytest.fixture(scope="module")
def tuned(tessera_binary, model):
    return watch(tune(tessera_binary, model))


def test_no_line_stands_for_long(tuned):
    _, lines, seconds = tuned
    assert lines and lines[0][0] < 2.5, lines[:3]
    since, text = lines[0]
    for when, line in [*lines, (seconds, "")]:
        if line != text:
            assert when - since < 2.5, (text, when - since)
            since, text = when, line
    assert not any(re.search(r"\b0 s left", line) for _, line in lines)


def test_phases_come_in_order_and_have_names(tuned):
    _, lines, _ = tuned
    first = {}
    for index, (_, line) in enumerate(lines):
        phase = next((phase for phase in PHASES + OTHERS if line.startswith(phase)), None)
        assert phase, line
        first.setdefault(phase, index)
    seen = [phase for phase in PHASES if phase in first]
    assert "measuring candidates" in seen, first
    assert [first[phase] for phase in seen] == sorted(first[phase] for phase in seen), first


def test_measuring_counts_and_is_bound_by_the_budget(tuned):
    _, lines, _ = tuned
    measuring = [line for _, line in lines if line.startswith("measuring candidates")]
    counts = [re.match(r"measuring candidates, (\d+) of (\d+)", line) for line in measuring]
    assert all(counts), measuring
    done = [int(count[1]) for count in counts]
    assert done == sorted(done)
    assert all(int(count[1]) <= int(count[2]) for count in counts)
    left = [int(seconds) for line in measuring
            for seconds in re.findall(r"(?:about|at most) (\d+) s left", line)]
    assert left and max(left) <= BUDGET, measuring


def test_the_line_is_erased_and_nothing_else_is_written(tuned):
    written, lines, _ = tuned
    assert written.endswith(ERASE) and "\n" not in written
    assert all(len(line) < 100 for _, line in lines)


def test_a_narrow_terminal_is_not_overrun(tessera_binary, model):
    command = [tessera_binary, "bench", model, "--no-optimize", "--seconds", "2", "--threads", "1"]
    written, lines, _ = watch(command, columns=30)
    assert lines and all(len(line) < 30 for _, line in lines)
    assert written.endswith(ERASE)


def test_a_pipe_gets_no_progress(tessera_binary, model):
    result = run_program(*tune(tessera_binary, model))
    assert result.stderr == ""


def test_a_long_step_is_heard_of(tessera_binary, tmp_path):
    """A run reports only its start, so the line shows how long it has taken so far."""
    nodes = [node("MatMul", f"v{at} v0", f"v{at + 1}") for at in range(1200)]
    path = save_model(tmp_path / "model.onnx", nodes, {"v0": [192, 192]}, {"v1200": [192, 192]})
    _, lines, seconds = watch([tessera_binary, "run", path, "--random", "1", "--no-optimize",
                               "--backends", "reference", "--threads", "1"])
    if seconds < 4:
        pytest.skip("this machine runs it too fast")
    running = [line for _, line in lines if line.startswith("running")]
    assert [line for line in running if re.search(r"running, [2-9] s so far", line)], lines
