"""Ctrl-C during a run: the run ends before its next step."""

import json
import pathlib
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from programs import json_of
from small_models import node, normal, save_model

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

SIZE = 192
STEPS = 3000


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Matrix products that take many seconds on the reference, each some milliseconds."""
    shape = [SIZE, SIZE]
    return save_model(tmp_path_factory.mktemp("long") / "model.onnx",
                      [node("MatMul", f"v{at} v0", f"v{at + 1}") for at in range(STEPS)],
                      {"v0": shape}, {f"v{STEPS}": shape})


def catches_interrupts(process):
    """Whether the process has a handler for SIGINT, according to proc(5)."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return int(caught, 16) >> (signal.SIGINT - 1) & 1 == 1


@pytest.mark.parametrize("command", (["run", "--random", "1"], ["bench", "--seconds", "100"]))
def test_a_run_ends_before_its_next_step(tessera_binary, model, command):
    process = subprocess.Popen(
        [tessera_binary, command[0], model, *command[1:], "--json", "--no-optimize",
         "--backends", "reference", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not catches_interrupts(process):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert time.monotonic() - start < 3
    assert process.returncode == 3
    error = json.loads(output)["error"]
    assert error["kind"] == "cancelled" and error["where"].startswith("node ")
    assert "the run was cancelled before this step" in errors


@pytest.fixture(scope="module")
def tunable(tmp_path_factory):
    """Matrix products of many sizes, which take seconds to measure."""
    rng = np.random.default_rng(1)
    nodes, weights, rows = [], {}, 64
    for at in range(24):
        columns = 200 + 7 * at
        weights[f"w{at}"] = normal(rng, rows, columns) / 16
        nodes.append(node("MatMul", f"v{at} w{at}", f"v{at + 1}"))
        rows = columns
    return save_model(tmp_path_factory.mktemp("tunable") / "model.onnx", nodes, {"v0": [192, 64]},
                      {"v24": [192, rows]}, weights)


def start_tuning(tessera_binary, tunable):
    """Starts a process that measures."""
    process = subprocess.Popen(
        [tessera_binary, "bench", tunable, "--optimize", "--json", "--threads", "1", "--seconds",
         "0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not catches_interrupts(process):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)
    return process


def test_measuring_stops_early_and_the_next_process_goes_on(tessera_binary, tunable):
    process = start_tuning(tessera_binary, tunable)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors == "stopped early; using what is known\n"
    assert json.loads(output)["run_count"] > 0
    reason = json_of(tessera_binary, "bench", tunable, "--optimize", "--json", "--threads", "1", "--seconds", "0.1", "--tune-budget", "2")["cache"]["reason"]
    assert re.fullmatch(r"interrupted after \d+\.\d s; measuring continues", reason), reason
    # The results of the second process are used although the first one was interrupted. Without a
    # budget, a process with more time would go on.
    assert json_of(tessera_binary, "bench", tunable, "--optimize", "--json", "--threads", "1",
                   "--seconds", "0.1", "--tune-budget", "2")["cache"]["is_hit"] is True


def test_a_second_ctrl_c_ends_the_program_at_once(tessera_binary, tunable):
    process = start_tuning(tessera_binary, tunable)
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    start = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - start < 3
    # The process ended by the signal; a shell reports this as 130.
    assert process.returncode == -signal.SIGINT
