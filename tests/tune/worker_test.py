"""Measuring in another process: an error there loses only its candidate, and nothing there
outlives, reads or disturbs this process."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from programs import plain_environment, run_program, start_program
from small_models import save_relu_and_sigmoid

FAULT = "its process ended by signal 11 (segmentation fault) while running"
# Mischief -> why the hostile plug-in's Relu is refused.
LOSES = {
    "crashes_building": "its process ended by signal 11 (segmentation fault) while building",
    "exits_building": "its process ended with exit code 4 while building",
    "build_throws": "bad day",
    "crashes_running": FAULT,
    "hangs_running": "took longer than 1 s to run (--candidate-timeout)",
    "exits_running": "its process ended with exit code 3 while running",
    "aborts_running": "its process ended by signal 6 (aborted) while running",
    "run_fails": "it lost its way",
    "gives_nan": "nan",
    "wrong_numbers": "numbers",
    "random_numbers": "the same twice",
    "writes_before_output": "before its start",
    "writes_after_output": "writes up to byte",
    "writes_far_after_output": FAULT,
    "writes_after_workspace": FAULT,
    "writes_input": FAULT,
}
# Mischief without consequences: it is slow as announced, or only prints.
KEEPS = ["builds_slowly_as_announced", "talks"]


@pytest.fixture(scope="module")
def hostile(built_plugin):
    return built_plugin("hostile")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_relu_and_sigmoid(tmp_path_factory.mktemp("worker"))


def environment(mischief=None, **others):
    variables = {"TESSERA_TEST_MISCHIEF": mischief} if mischief else {}
    return plain_environment(TESSERA_CACHE_DIR=os.environ["TESSERA_CACHE_DIR"], **variables, **others)


@pytest.fixture
def call(tessera_binary, model):
    def run(*arguments, mischief=None, binary=tessera_binary, code=0, **others):
        return run_program(binary, *arguments, code=code, cwd=model.parent,
                           env=environment(mischief, **others))

    return run


def refusals(costs):
    """Why each candidate of the hostile plug-in is refused; "" if it is not."""
    return [kernel.get("refusal", "") for kernel in json.loads(costs.read_text())["kernels"]
            if kernel["backend"] == "hostile"]


@pytest.mark.parametrize("mischief", [*LOSES, *KEEPS])
def test_mischief_costs_its_candidate_and_nothing_else(call, model, hostile, tmp_path, mischief):
    costs = tmp_path / "costs.json"
    # Whole plans run in the caller's process, where a kernel that only talks may talk. With hostile
    # first, the choice by order is one of these plans.
    order = ("--backends", "native,hostile") if mischief == "talks" else ()
    result = call("tune", model, "--all", "--output", costs, "--backend-path", hostile, *order,
                  "--candidate-timeout", "1", "--threads", "1", mischief=mischief)
    assert "hostile speaks" not in result.stdout + result.stderr
    reasons = refusals(costs)
    assert reasons
    if mischief in KEEPS:
        assert set(reasons) == {""}
        return
    assert all(LOSES[mischief] in reason for reason in reasons), reasons
    # The candidate is not chosen, so the model runs and its result is right.
    call("run", model, "--input", "x=x.npy", "--expect", "y=y.npy", "--costs", costs,
         "--backend-path", hostile, "--threads", "1", mischief=mischief)


# --- The worker's lifetime
# -------------------------------------------------------------------------

def state_of(process):
    """The letter of /proc/<process>/stat; "" if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def wait_for_end(process):
    deadline = time.monotonic() + 120
    while state_of(process) not in ("", "Z"):
        assert time.monotonic() < deadline, f"process {process} lives on: {state_of(process)}"
        time.sleep(0.01)


@pytest.fixture
def holder(bin_dir):
    """A function that starts hold_worker and returns it with its worker's process id."""
    started = []

    def start(*arguments, **options):
        process = start_program(bin_dir / "hold_worker", *arguments, stderr=None, env=environment(),
                                **options)
        started.append(process)
        line = process.stdout.readline()
        assert line.startswith("worker "), line
        return process, int(line.split()[1])

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_worker_ends_with_its_parent(holder, end):
    parent, worker = holder()
    assert state_of(worker) not in ("", "Z")
    parent.send_signal(end)
    parent.wait()
    wait_for_end(worker)


@pytest.mark.alone
def test_a_worker_that_is_busy_ends_with_its_parent(tessera_binary, model, hostile):
    """The worker is in a kernel that never returns."""
    parent = start_program(tessera_binary, "tune", model, "--all", "--backend-path", hostile,
                           "--candidate-timeout", "100", env=environment("hangs_running"))
    children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.monotonic() + 120
    while not children.read_text().split():
        assert time.monotonic() < deadline, "no worker was started"
        time.sleep(0.01)
    [worker] = children.read_text().split()
    time.sleep(0.3)
    assert state_of(worker) not in ("", "Z")
    parent.kill()
    parent.wait()
    wait_for_end(worker)


def test_the_worker_reads_nothing_and_holds_nothing_of_its_parent(holder, tmp_path):
    with open(tmp_path / "secret", "w") as secret:
        _, worker = holder(stdin=subprocess.PIPE, pass_fds=[secret.fileno()])
        folder = pathlib.Path(f"/proc/{worker}/fd")
        files = {int(link.name): os.readlink(link) for link in folder.iterdir()}
    assert [files[number] for number in (0, 1, 2)] == ["/dev/null"] * 3
    assert files[3].startswith("socket:")
    others = {target for number, target in files.items() if number > 3}
    assert all(target.startswith("/memfd:tessera") for target in others), files


def test_an_interrupt_of_the_terminal_is_not_the_workers(holder):
    parent, worker = holder()
    assert os.getpgid(worker) == worker != os.getpgid(parent.pid)


def test_the_worker_is_of_no_use_by_hand(bin_dir):
    result = run_program(bin_dir / "tessera-worker", code=2, timeout=20)
    assert "Tessera starts it" in result.stderr
    run_program(bin_dir / "tessera-worker", os.getpid(), code=2, timeout=20)


# --- The search for the worker's program
# -----------------------------------------------------------

def test_a_missing_worker_is_said_once_and_not_searched_in_path(call, tessera_binary, model,
                                                                tmp_path):
    """The program is alone in a folder, and PATH has a worker that would print something."""
    alone = tmp_path / "alone"
    trap = tmp_path / "trap"
    alone.mkdir()
    trap.mkdir()
    shutil.copy(tessera_binary, alone / "tessera")
    (trap / "tessera-worker").write_text(f"#!/bin/sh\ntouch {tmp_path}/trapped\n")
    (trap / "tessera-worker").chmod(0o755)
    result = call("tune", model, "--all", binary=alone / "tessera",
                  PATH=f"{trap}:{os.environ['PATH']}")
    assert not (tmp_path / "trapped").exists()
    assert result.stderr.count("tessera-worker") == 1 and str(alone) in result.stderr
    assert "measured" in result.stdout


def test_in_process_starts_none(call, tessera_binary, model, tmp_path):
    shutil.copy(tessera_binary, tmp_path / "tessera")
    result = call("tune", model, "--all", "--in-process", binary=tmp_path / "tessera")
    assert "tessera-worker" not in result.stderr


def test_an_installed_program_finds_its_worker(call, bin_dir, model, tmp_path):
    build = bin_dir.parent
    run_program("cmake", "--install", build, "--prefix", tmp_path)
    assert (tmp_path / "bin" / "tessera-worker").exists()
    result = call("tune", model, "--all", binary=tmp_path / "bin" / "tessera")
    assert "tessera-worker" not in result.stderr


HOST = """
import sys, tessera
model = tessera.load(sys.argv[1])
executor = model.bind(optimize=True, threads=1)
sys.stdout.write("done")
"""


def test_a_python_host_has_its_worker(bin_dir, model):
    folder = bin_dir.parent / "python"
    if not any(folder.glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    result = run_program(sys.executable, "-c", HOST, model, env=environment(PYTHONPATH=str(folder)))
    assert result.stdout == "done" and "tessera-worker" not in result.stderr
    assert os.access(folder / "tessera" / "tessera-worker", os.X_OK)
