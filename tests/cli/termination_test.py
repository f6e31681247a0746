"""SIGTERM and SIGHUP during measuring: the measurements are kept, no lock file is left behind, and
the process ends by the signal. Background work ends before the process does."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from programs import json_of
from small_models import node, normal, save_model

# These tests send signals.
pytestmark = pytest.mark.alone

ENDING = [signal.SIGTERM, signal.SIGHUP]
PRODUCTS = 24


def write_model(path, products):
    """Matrix products of many sizes, each of which is measured."""
    rng = np.random.default_rng(1)
    nodes, weights, rows = [], {}, 64
    for at in range(products):
        columns = 200 + 7 * at
        weights[f"w{at}"] = normal(rng, rows, columns) / 16
        nodes.append(node("MatMul", f"v{at} w{at}", f"v{at + 1}"))
        rows = columns
    return save_model(path, nodes, {"v0": [192, 64]}, {f"v{products}": [192, rows]}, weights)


@pytest.fixture(scope="module")
def tunable(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tunable") / "model.onnx", PRODUCTS)


@pytest.fixture
def bench(tessera_binary, tunable):
    return [tessera_binary, "bench", tunable, "--optimize", "--json", "--threads", "1",
            "--seconds", "0.1"]


def catches(process, number):
    """Whether the process has a handler for the signal, according to proc(5)."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return int(caught, 16) >> (number - 1) & 1 == 1


def wait_until_it_measures(process, work):
    """A process that handles SIGINT and has a lock file is measuring."""
    deadline = time.monotonic() + 60
    while not catches(process, signal.SIGINT) or not list(work.glob(".*.lock")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)
    time.sleep(0.2)


@pytest.fixture
def work():
    return pathlib.Path(os.environ["TESSERA_CACHE_DIR"])


def lock_files():
    folders = [os.environ["TESSERA_CACHE_DIR"], os.environ["XDG_CACHE_HOME"]]
    return [path for folder in folders for path in pathlib.Path(folder).rglob(".*.lock")]


def start(arguments):
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", ENDING)
def test_the_program_keeps_what_it_measured(bench, work, number):
    work.mkdir(exist_ok=True)
    process = start(bench)
    wait_until_it_measures(process, work)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == -number, errors
    assert output == "" and "stopped early" in errors
    assert not lock_files()
    reason = json_of(*bench, "--tune-budget", "1")["cache"]["reason"]
    assert re.fullmatch(r"interrupted after \d+\.\d s; measuring continues", reason), reason


def test_tune_writes_its_table_before_it_ends(tessera_binary, tunable, work, tmp_path):
    work.mkdir(exist_ok=True)
    process = start([tessera_binary, "tune", tunable, "--threads", "1", "--output",
                     tmp_path / "costs.json"])
    wait_until_it_measures(process, work)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM, errors
    assert "kernels" in json.loads((tmp_path / "costs.json").read_text())


def test_a_second_one_ends_the_program_at_once(bench, work):
    work.mkdir(exist_ok=True)
    process = start(bench)
    wait_until_it_measures(process, work)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM and time.monotonic() - begin < 3


def test_what_nohup_ignores_stays_ignored(bench, work):
    work.mkdir(exist_ok=True)
    process = start(["nohup", *bench, "--tune-budget", "1"])
    wait_until_it_measures(process, work)
    process.send_signal(signal.SIGHUP)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(output)["run_count"] > 0


PYTHON_BIND = """
import sys
sys.path.insert(0, {folder!r})
import tessera
model = tessera.load({model!r})
executor = model.bind(optimize=True, threads=1)
print("went on")
"""


@pytest.mark.parametrize("number", [*ENDING, signal.SIGINT])
def test_a_python_program_keeps_what_it_measured(tessera, tunable, bench, work, number):
    work.mkdir(exist_ok=True)
    folder = str(pathlib.Path(tessera.__file__).parent.parent)
    process = start([sys.executable, "-c", PYTHON_BIND.format(folder=folder, model=str(tunable))])
    deadline = time.monotonic() + 60
    while not list(work.glob(".*.lock")) or not has_worker(process):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)
    time.sleep(1)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == -number, (process.returncode, errors)
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
sys.path.insert(0, {folder!r})
import numpy as np
import tessera
model = tessera.load({model!r})
executor = model.bind(optimize=True, threads=1, tune_budget_seconds=0.6, cache_dir={work!r})
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
    model = str(write_model(tmp_path / "model.onnx", 6))
    folder = str(pathlib.Path(tessera.__file__).parent.parent)
    work = tmp_path / "caches"
    work.mkdir()
    programs = [
        [tessera_binary, "run", model, "--random", "1", "--optimize", "--threads", "1",
         "--cache-dir", work, "--tune-budget", "0.6"],
        [sys.executable, "-c", RUNS.format(folder=folder, model=model, work=str(work))]]
    for moment in range(100 if is_long else 12):
        program = programs[moment % 2]
        number = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT][moment % 3]
        delay = draw.uniform(0, 1.5)
        process = start(program)
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
    done = subprocess.run(programs[0], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not list(work.glob(".*.lock"))
