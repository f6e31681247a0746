"""Ctrl-C during a run: the run ends before its next step."""

import json
import re
import signal
import time

import pytest
from programs import end_of, json_of, start_program, wait_for
from small_models import node, save_model, save_products

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


@pytest.mark.parametrize("command", (["run", "--random", "1"], ["bench", "--seconds", "100"]))
def test_a_run_ends_before_its_next_step(tessera_binary, model, command):
    process = start_program(tessera_binary, command[0], model, *command[1:], "--json",
                            "--no-optimize", "--backends", "reference", "--threads", "1")
    wait_for(process)
    time.sleep(0.5)
    start = time.monotonic()
    output, errors = end_of(process, 3, signal.SIGINT)
    assert time.monotonic() - start < 3
    error = json.loads(output)["error"]
    assert error["kind"] == "cancelled" and error["where"].startswith("node ")
    assert "the run was cancelled before this step" in errors


@pytest.fixture(scope="module")
def tunable(tmp_path_factory):
    """It takes seconds to measure."""
    return save_products(tmp_path_factory.mktemp("tunable") / "model.onnx", 24)


BRIEF = ["--optimize", "--json", "--threads", "1", "--seconds", "0.1"]


def start_tuning(tessera_binary, tunable):
    """Starts a process that measures."""
    process = start_program(tessera_binary, "bench", tunable, *BRIEF)
    wait_for(process)
    return process


def test_measuring_stops_early_and_the_next_process_goes_on(tessera_binary, tunable):
    process = start_tuning(tessera_binary, tunable)
    time.sleep(0.2)
    output, errors = end_of(process, 0, signal.SIGINT)
    assert errors == "stopped early; using what is known\n"
    assert json.loads(output)["run_count"] > 0
    again = tessera_binary, "bench", tunable, *BRIEF, "--tune-budget", "2"
    reason = json_of(*again)["cache"]["reason"]
    assert re.fullmatch(r"interrupted after \d+\.\d s; measuring continues", reason), reason
    # The results of the second process are used although the first one was interrupted. Without a
    # budget, a process with more time would go on.
    assert json_of(*again)["cache"]["is_hit"] is True


def test_a_second_ctrl_c_ends_the_program_at_once(tessera_binary, tunable):
    process = start_tuning(tessera_binary, tunable)
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    start = time.monotonic()
    # The process ended by the signal; a shell reports this as 130.
    end_of(process, -signal.SIGINT)
    assert time.monotonic() - start < 3
