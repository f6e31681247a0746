"""What OpenCL compiled is kept for later processes and other models. Skipped without a device."""

import json
import os
import subprocess
import sys

import pytest
from onnx import TensorProto, helper, save

# Binds and runs a model on OpenCL. Prints how many programs were built from source, whether PoCL was
# loaded just to describe the backends, and the first element of the result.
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
built = ctypes.CDLL(str(opencl.file)).tessera_opencl_built_programs
built.restype = ctypes.c_int64
print(json.dumps({"built": built(), "is_loaded": is_loaded, "y": float(y.flat[0])}))
"""


@pytest.fixture(autouse=True)
def needs_opencl(why_unusable):
    if why_unusable.get("opencl"):
        pytest.skip(f"opencl: {why_unusable['opencl']}")


@pytest.fixture
def run(bin_dir, tmp_path):
    """Runs PROCESS with the user's folder in `tmp_path`."""

    def call(model, optimize=True, rows=4):
        environment = {**os.environ, "PYTHONPATH": str(bin_dir.parent / "python"),
                       "XDG_CACHE_HOME": str(tmp_path / "user"),
                       "TESSERA_CACHE_DIR": str(tmp_path / "project"),
                       # PoCL's own cache must not help.
                       "POCL_KERNEL_CACHE": "0"}
        done = subprocess.run([sys.executable, "-c", PROCESS, model, str(int(optimize)),
                               str(rows)],
                              check=True, capture_output=True, text=True, env=environment,
                              timeout=300)
        return json.loads(done.stdout)

    return call


def save_chain(path, *ops, rows=4):
    """x -> each of `ops` -> y; a trailing op makes the model another one."""
    names = ["x", *(f"v{index}" for index in range(len(ops) - 1)), "y"]
    nodes = [helper.make_node(op, [names[index]], [names[index + 1]], name=f"{op}{index}")
             for index, op in enumerate(ops)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, path.stem, ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_later_processes_and_other_models_build_nothing(run, tmp_path):
    first = run(save_chain(tmp_path / "first.onnx", "Neg", "Abs"))
    assert first["built"] > 0 and first["is_loaded"] and first["y"] == 2
    second = run(tmp_path / "first.onnx")
    assert second == {"built": 0, "is_loaded": False, "y": 2}
    # Another model with the same fused group, of another size.
    other = run(save_chain(tmp_path / "other.onnx", "Neg", "Abs", rows=5), rows=5)
    assert other == {"built": 0, "is_loaded": False, "y": 2}
    # Reading what is there needs no leave to measure.
    assert run(tmp_path / "other.onnx", optimize=False, rows=5)["built"] == 0


def test_damaged_programs_are_built_again(run, tmp_path):
    model = save_chain(tmp_path / "model.onnx", "Neg", "Abs")
    run(model)
    for file in (tmp_path / "user").rglob("kernel.packs"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    again = run(model)
    assert again["built"] > 0 and again["y"] == 2
    assert run(model)["built"] == 0


def test_without_leave_to_measure_nothing_is_written(run, tmp_path):
    result = run(save_chain(tmp_path / "model.onnx", "Neg"), optimize=False)
    assert result["built"] > 0
    assert not list((tmp_path / "user").rglob("kernel.packs"))
