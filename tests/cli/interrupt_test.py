"""Ctrl-C while a model runs: it ends before its next step."""

import json
import pathlib
import signal
import subprocess
import time

import onnx
import pytest
from onnx import TensorProto, helper

SIZE = 192
STEPS = 3000


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Many seconds of products on the reference, milliseconds each."""
    shape = [SIZE, SIZE]
    graph = helper.make_graph(
        [helper.make_node("MatMul", [f"v{at}", "v0"], [f"v{at + 1}"]) for at in range(STEPS)],
        "long", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"v{STEPS}", TensorProto.FLOAT, shape)])
    path = tmp_path_factory.mktemp("long") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


def catches_interrupts(process):
    """Whether the process has a handler for SIGINT, as proc(5) tells."""
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
    assert error["kind"] == "Cancelled" and error["where"].startswith("node ")
    assert "the run was cancelled before this step" in errors
