"""Processes that are forked while threads are at work: prefork.py tries the calls that are
allowed."""

import pathlib

import pytest
from programs import end_of, run_python, start_python

PREFORK = pathlib.Path(__file__).with_name("prefork.py")
ACTIVITIES = ("nothing", "bind", "replan", "load", "measure", "behind", "run", "pool", "session",
              "binding", "mixed")


def prefork(tessera, folder, *arguments):
    result = run_python(tessera, PREFORK, folder, *arguments, timeout=1200)
    assert "wrong: none" in result.stderr, result.stderr[-5000:]


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_workers_of_a_prefork_server(tessera, tmp_path, activity, pytestconfig):
    is_long = pytestconfig.getoption("--long")
    prefork(tessera, tmp_path, activity, "--rounds", 50 if is_long else 1,
            "--workers", 8 if is_long else 4)


def test_forks_while_threads_become_known_to_the_interpreter(tessera, pytestconfig):
    """Several processes at once, because a thread must be interrupted at one instruction: of 3,600
    forks on two cores, two met it."""
    forks = 2400 if pytestconfig.getoption("--long") else 100
    running = [start_python(tessera, PREFORK.with_name("fork_often.py"), forks) for _ in range(6)]
    for process in running:
        printed, errors = end_of(process, timeout=1200)
        assert printed == "hung: 0\n", printed + errors[-2000:]


@pytest.mark.parametrize("activity", ("bind", "pool"))
def test_workers_of_multiprocessing(tessera, tmp_path, activity):
    prefork(tessera, tmp_path, activity, "--rounds", 1, "--workers", 4, "--start",
            "multiprocessing")


@pytest.mark.parametrize("backend", ("native", "onednn", "openvino", "jit"))
def test_workers_that_use_a_library(tessera, tmp_path, backend, need_backend):
    need_backend(backend)
    prefork(tessera, tmp_path, "bind", "--rounds", 1, "--workers", 4, "--backends", backend)
