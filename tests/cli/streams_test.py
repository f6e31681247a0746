"""tessera bench --streams: executors that run at the same time. No test compares times with limits,
because other processes may use the machine."""

import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from onnx import TensorProto
from programs import end_of, run_program, start_program, wait_for
from small_models import node, save_model, tensor_type
from terminal import run_on_terminal

SIZE = 192
QUICK = ("--seconds", "0.1")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Matrix products, as many as take some milliseconds on the reference."""
    rng = np.random.default_rng(0)
    weights = {f"w{at}": (rng.standard_normal((SIZE, SIZE)) / np.sqrt(SIZE)).astype(np.float32)
               for at in range(6)}
    nodes = [node("MatMul", f"v{at} w{at}", f"v{at + 1}") for at in range(6)]
    return save_model(tmp_path_factory.mktemp("streams") / "model.onnx", nodes,
                      {"v0": ["rows", SIZE]}, {"v6": ["rows", SIZE]}, weights)


def bench(tessera_binary, model, *options, rows=16):
    return [tessera_binary, "bench", model, "--shape", f"v0={rows}x{SIZE}", "--backends",
            "reference", *map(str, options)]


@pytest.fixture
def run(tessera_binary, model):
    return lambda *options, code=0: run_program(
        *bench(tessera_binary, model, *options), code=code)


@pytest.fixture
def ask(run):
    return lambda *options: json.loads(run(*options, "--json").stdout)


@pytest.mark.parametrize("streams", [1, 3])
def test_the_figures_agree_with_each_other(ask, streams):
    report = ask("--streams", streams, "--seconds", "0.4")
    assert (report["stream_count"], report["thread_count"]) == (streams, streams)
    assert report["run_count"] >= streams
    assert 0 < report["median_us"] <= report["p90_us"] <= report["p99_us"] <= report["max_us"]
    # All runs lie in the measured time, with at most `streams` at a time.
    elapsed_us = report["run_count"] / report["requests_per_second"] * 1e6
    assert elapsed_us >= 0.4e6
    assert report["max_us"] <= elapsed_us * 1.001
    assert report["median_us"] * report["run_count"] / 2 <= streams * elapsed_us


def test_each_stream_runs_at_least_once(ask):
    report = ask("--streams", 4, "--seconds", "1e-9", "--warmup", "0")
    assert report["run_count"] == 4


@pytest.mark.parametrize(("threads", "each"), [("5", 2), ("4", 2), ("3", 1)])
def test_threads_are_those_of_all_streams_together(ask, threads, each):
    report = ask("--streams", 2, "--threads", threads, *QUICK)
    assert report["thread_count"] == 2 * each


def test_all_cores_are_shared_out(ask):
    cores = len(os.sched_getaffinity(0))
    assert ask("--streams", 1, "--threads", 0, *QUICK)["thread_count"] == cores


def test_the_text_is_one_line_of_figures(run):
    done = run("--streams", 2, *QUICK, code=None)
    assert (done.returncode, done.stderr) == (0, "")
    title, figures, counts = done.stdout.splitlines()
    assert re.split(" {2,}", title.strip()) == [
        "load", "bind", "requests/s", "median", "p90", "p99", "max", "requests"]
    assert len(re.split(" {2,}", figures.strip())) == 8
    assert counts == "2 streams, 2 threads together; 6 steps: 6 on reference"


@pytest.mark.parametrize(("options", "error"), [
    (["--streams", "0"], "--streams '0': expected a whole number from 1 to 1024"),
    (["--streams", "two"], "--streams 'two': expected a whole number"),
    (["--streams", "4", "--threads", "3"], "expected a thread for each of the 4 streams"),
    (["--streams", "2", "--trace", "trace.json"], "--trace: expected no --streams beside it"),
    (["--streams", "2", "--seconds", "0"], "--seconds"),
])
def test_wrong_options(run, options, error):
    done = run(*options, code=2)
    assert error in done.stderr, done.stderr


def test_an_error_of_a_stream_ends_all(tessera_binary, tmp_path):
    """An index that is known only in the run and that does not exist."""
    path = tmp_path / "gather.onnx"
    save_model(path, [node("Gather", "table index", "y")],
               {"index": tensor_type(TensorProto.INT64, [1])}, "y",
               {"table": np.zeros((3, 2), np.float32)})
    np.save(tmp_path / "index.npy", np.array([7]))
    done = run_program(tessera_binary, "bench", path, "--streams", "3", "--input",
                       f"index={tmp_path / 'index.npy'}", code=2)
    assert "7" in done.stderr and done.stdout == ""


def start(command):
    """A process that has begun to run the model."""
    process = start_program(*command)
    wait_for(process)
    return process


@pytest.mark.alone
def test_ctrl_c_prints_what_was_measured(tessera_binary, model):
    process = start(bench(tessera_binary, model, "--streams", 3, "--seconds", 1000, "--json"))
    time.sleep(2)
    report = json.loads(end_of(process, 0, signal.SIGINT)[0])
    assert report["run_count"] >= 1
    assert report["run_count"] / report["requests_per_second"] < 100


@pytest.mark.alone
def test_ctrl_c_before_the_first_run_has_ended(tessera_binary, model):
    """Runs of seconds are cancelled before their next step."""
    process = start(bench(tessera_binary, model, "--streams", 2, "--json", rows=20_000))
    output, _ = end_of(process, 3, signal.SIGINT, timeout=120)
    assert json.loads(output)["error"]["kind"] == "cancelled"


@pytest.mark.alone
def test_a_terminal_shows_progress(tessera_binary, model):
    command = bench(tessera_binary, model, "--streams", 2, "--seconds", 2.5)
    done = run_on_terminal(command, "stderr", stdout=subprocess.PIPE)
    assert done.returncode == 0
    shown = done.stderr
    assert re.search(rb"measuring: [12]\.\d of 2\.5 s, \d+ runs? \(Ctrl-C: stop\)", shown), shown
