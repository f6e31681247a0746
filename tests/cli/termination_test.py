"""SIGTERM and SIGHUP during measuring: the measurements are kept, no lock file is left behind, and
the process ends by the signal. Background work ends before the process does."""

import json
import os
import pathlib
import random
import re
import signal
import time

import pytest
from programs import end_of, json_of, start_program, start_python, wait_for
from small_models import save_products

# These tests send signals.
pytestmark = pytest.mark.alone

ENDING = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(scope="module")
def tunable(tmp_path_factory):
    return save_products(tmp_path_factory.mktemp("tunable") / "model.onnx", 24)


@pytest.fixture
def bench(tessera_binary, tunable):
    return [tessera_binary, "bench", tunable, "--optimize", "--json", "--threads", "1",
            "--seconds", "0.1"]


def start_measuring(work, *command):
    """A process that handles SIGINT and has a lock file is measuring."""
    process = start_program(*command)
    wait_for(process, lambda: list(work.glob(".*.lock")))
    time.sleep(0.2)
    return process


@pytest.fixture
def work():
    folder = pathlib.Path(os.environ["TESSERA_CACHE_DIR"])
    folder.mkdir(exist_ok=True)
    return folder


def lock_files():
    folders = [os.environ["TESSERA_CACHE_DIR"], os.environ["XDG_CACHE_HOME"]]
    return [path for folder in folders for path in pathlib.Path(folder).rglob(".*.lock")]


@pytest.mark.parametrize("number", ENDING)
def test_the_program_keeps_what_it_measured(bench, work, number):
    output, errors = end_of(start_measuring(work, *bench), -number, number)
    assert output == "" and "stopped early" in errors
    assert not lock_files()
    reason = json_of(*bench, "--tune-budget", "1")["cache"]["reason"]
    assert re.fullmatch(r"interrupted after \d+\.\d s; measuring continues", reason), reason


def test_tune_writes_its_table_before_it_ends(tessera_binary, tunable, work, tmp_path):
    process = start_measuring(work, tessera_binary, "tune", tunable, "--threads", "1", "--output",
                              tmp_path / "costs.json")
    end_of(process, -signal.SIGTERM, signal.SIGTERM)
    assert "kernels" in json.loads((tmp_path / "costs.json").read_text())


def test_a_second_one_ends_the_program_at_once(bench, work):
    process = start_measuring(work, *bench)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.01)
    end_of(process, -signal.SIGTERM, signal.SIGTERM)
    assert time.monotonic() - begin < 3


def test_what_nohup_ignores_stays_ignored(bench, work):
    process = start_measuring(work, "nohup", *bench, "--tune-budget", "1")
    output, _ = end_of(process, 0, signal.SIGHUP)
    assert json.loads(output)["run_count"] > 0


PYTHON_BIND = """
import sys
import tessera
model = tessera.load(sys.argv[1])
executor = model.bind(optimize=True, threads=1)
print("went on")
"""


@pytest.mark.parametrize("number", [*ENDING, signal.SIGINT])
def test_a_python_program_keeps_what_it_measured(tessera, tunable, bench, work, number):
    process = start_python(tessera, PYTHON_BIND, tunable)
    wait_for(process, lambda: list(work.glob(".*.lock")) and has_worker(process))
    time.sleep(1)
    output, errors = end_of(process, -number, number)
    assert output == "" and ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    assert not lock_files()
    kept = [path for path in work.glob("*.cache")]
    assert kept and kept[0].stat().st_size > 1000, "prices of what was measured"


def has_worker(process):
    """Whether a thread of the process has started one."""
    return any(path.read_text().split()
               for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children"))


# --- A signal at any moment
# ------------------------------------------------------------------------


RUNS = """
import sys
import numpy as np
import tessera
model = tessera.load(sys.argv[1])
executor = model.bind(optimize=True, threads=1, tune_budget_seconds=0.6, cache_dir=sys.argv[2])
x = np.ones((192, 64), np.float32)
for _ in range(400):
    executor.run(x)
"""


def ends_as_it_should(code, number, errors):
    if "went wrong" in errors or "Fatal" in errors or "terminate called" in errors:
        return False
    # The process may have ended before the signal. SIGINT may also end it, or stop only its current
    # work.
    ended = {-number, 0} | ({1, 3, 130} if number == signal.SIGINT else set())
    return code in ended


def test_any_moment_of_load_tune_and_run(tessera_binary, tessera, tmp_path, is_long):
    """At any moment, a signal soon ends the process, and the next process finds nothing in its way.
    """
    seed = random.SystemRandom().randrange(2**32) if is_long else 5
    print(f"seed {seed}")
    draw = random.Random(seed)
    model = save_products(tmp_path / "model.onnx", 6)
    work = tmp_path / "caches"
    work.mkdir()
    starts = [
        lambda: start_program(tessera_binary, "run", model, "--random", "1", "--optimize",
                              "--threads", "1", "--cache-dir", work, "--tune-budget", "0.6"),
        lambda: start_python(tessera, RUNS, model, work)]
    for moment in range(100 if is_long else 12):
        number = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT][moment % 3]
        delay = draw.uniform(0, 1.5)
        process = starts[moment % 2]()
        time.sleep(delay)
        process.send_signal(number)
        begin = time.monotonic()
        _, errors = process.communicate(timeout=60)
        what = f"moment {moment}: {number.name} after {delay:.3f} s"
        assert ends_as_it_should(process.returncode, number, errors), (
            what, process.returncode, errors)
        assert time.monotonic() - begin < 20, what
        if draw.random() < 0.3:
            for path in work.glob("*.cache"):
                path.unlink()
    end_of(starts[0](), timeout=120)
    assert not list(work.glob(".*.lock"))
