"""Compiled programs of OpenCL are kept for later processes and other models. Skipped without a
device."""

import json
import sys

import pytest
from programs import end_of, start_program
from small_models import chain, save_model

pytestmark = pytest.mark.usefixtures("needs_opencl")

# Binds and runs a model on OpenCL. Prints how many programs this process has built from source, and
# how many with those of the process that measures; whether PoCL was loaded just to describe the
# backends; and the first element of the result.
PROCESS = """
import ctypes, json, sys
import numpy as np
import tessera
model_path, optimize, rows = sys.argv[1], sys.argv[2] == "1", int(sys.argv[3])
backends = tessera.Backends()
[opencl] = [backend for backend in backends.describe() if backend.name == "opencl"]
is_loaded = "libpocl" in open("/proc/self/maps").read()
model = tessera.load(model_path, backends=backends)
executor = model.bind(backends=["opencl", "reference"], optimize=optimize,
                      pins=[tessera.Pin("*", "opencl")], tune_budget_seconds=5)
y, = executor.run(np.full((rows, 8), 2, np.float32))
[counts] = executor.compiled
built = ctypes.CDLL(str(opencl.file)).tessera_opencl_built_programs
built.restype = ctypes.c_int64
print(json.dumps({"built": built(), "all_built": counts.compiled, "is_loaded": is_loaded, "y": float(y.flat[0])}))
"""


@pytest.fixture
def run(start):
    """Runs PROCESS with the user's folder in `tmp_path`."""
    return lambda *arguments, **options: result_of(start(*arguments, **options))


def result_of(process):
    return json.loads(end_of(process, timeout=300)[0])


@pytest.fixture
def start(bin_dir, tmp_path):
    """Starts PROCESS, or another text."""

    def call(model, optimize=True, rows=4, text=PROCESS):
        variables = {"PYTHONPATH": bin_dir.parent / "python", "XDG_CACHE_HOME": tmp_path / "user",
                     "TESSERA_CACHE_DIR": tmp_path / "project",
                     # PoCL's own cache must not help.
                     "POCL_KERNEL_CACHE": 0}
        return start_program(sys.executable, "-c", text, model, int(optimize), rows,
                             variables=variables)

    return call


def save_chain(path, *ops, rows=4):
    """x -> each of `ops` -> y; a trailing op makes the model another one."""
    return save_model(path, chain(*ops), {"x": [rows, 8]}, {"y": [rows, 8]})


def programs_in(folder):
    """The number of programs that are kept there."""
    return sum(b"/program/" in path.read_bytes() for path in folder.rglob("kernel.packs"))


def test_later_processes_and_other_models_build_nothing(run, tmp_path):
    first = run(save_chain(tmp_path / "first.onnx", "Neg", "Abs"))
    assert first["all_built"] > 0 and first["is_loaded"] and first["y"] == 2
    assert first["all_built"] == programs_in(tmp_path), "none was built twice"
    nothing = {"built": 0, "is_loaded": False, "y": 2}
    assert run(tmp_path / "first.onnx") == {**nothing, "all_built": 0}
    # Another model with the same fused group, of another size. Other candidates may be measured.
    assert run(save_chain(tmp_path / "other.onnx", "Neg", "Abs", rows=5), rows=5).items() >= (
        nothing.items())
    # Reading kept programs does not need the permission to measure.
    assert run(tmp_path / "other.onnx", optimize=False, rows=5)["built"] == 0


def test_damaged_programs_are_built_again(run, tmp_path):
    model = save_chain(tmp_path / "model.onnx", "Neg", "Abs")
    run(model)
    for file in (tmp_path / "user").rglob("kernel.packs"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    again = run(model)
    assert again["all_built"] > 0 and again["y"] == 2
    assert run(model)["built"] == 0


def test_without_leave_to_measure_nothing_is_written(run, tmp_path):
    result = run(save_chain(tmp_path / "model.onnx", "Neg"), optimize=False)
    assert result["built"] > 0
    assert not list((tmp_path / "user").rglob("kernel.packs"))


@pytest.mark.alone
def test_processes_that_bind_at_once_build_once(run, start, tmp_path):
    # Models of their own: of one model, the second process would wait for the plan.
    models = [save_chain(tmp_path / f"{rows}.onnx", "Neg", "Abs", rows=rows) for rows in (5, 6, 7)]
    started = [start(model, rows=rows) for model, rows in zip(models, (5, 6, 7))]
    assert sum(result_of(process)["all_built"] for process in started) == programs_in(tmp_path)


THREADS = PROCESS[:PROCESS.index("model = ")] + """
import threading
models = [tessera.load(model_path, backends=backends) for _ in range(4)]
executors = [None] * 4
def bind(at):
    executors[at] = models[at].bind(backends=["opencl", "reference"], optimize=False,
                                    pins=[tessera.Pin("*", "opencl")])
threads = [threading.Thread(target=bind, args=[at]) for at in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
[counts] = executors[0].compiled
print(json.dumps({"built": counts.compiled, "asked": counts.kernels}))
"""


def test_threads_that_bind_at_once_build_once(run, start, tmp_path):
    model = save_chain(tmp_path / "model.onnx", "Neg", "Abs")
    alone = run(model, optimize=False)["built"]
    assert result_of(start(model, optimize=False, text=THREADS))["built"] == alone > 0
