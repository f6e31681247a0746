"""bench/reference_share.py lists the steps that run on the reference and says which of them are
expensive."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

PROGRAM = Path(__file__).resolve().parents[2] / "bench" / "reference_share.py"


@pytest.fixture
def share(tessera_binary, tmp_path):
    """Runs the script on a model with a Relu and an op that native refuses."""
    random = np.random.default_rng(2)
    weights = {name: random.standard_normal((1, 48, 16)).astype(np.float32) for name in "wr"}
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["positive"], name="relu"),
         helper.make_node("GRU", ["positive", "w", "r"], ["y"], name="memory", hidden_size=16)],
        "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [10, 4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [10, 1, 4, 16])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    model = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              model)

    def call(*options):
        return subprocess.run(
            [sys.executable, PROGRAM, "--tessera", tessera_binary, "--models", model,
             *map(str, options)], text=True, capture_output=True, timeout=120, check=False)

    return call


def test_a_dear_step_is_named_and_fails(share, choose_backends, tmp_path):
    choose_backends("native")
    done = share("--backends", "native", "--json", tmp_path / "figures.json")
    assert done.returncode == 1, done.stderr
    assert "memory (GRU) takes" in done.stderr and "more than 1 %" in done.stderr
    [row] = json.loads((tmp_path / "figures.json").read_text())["results"]
    assert [step["name"] for step in row["on_reference"]] == ["memory"]
    assert 1 < row["on_reference"][0]["percent"] <= 100


def test_what_stays_below_the_limit_passes(share):
    done = share("--backends", "reference", "--most", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2" in done.stdout and done.stderr == ""


def test_a_model_that_does_not_run_fails(share, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_text("no model")
    done = share("--models", broken)
    assert done.returncode == 1 and "broken, 1 thread: " in done.stderr


def test_wrong_names_are_refused_with_help(share):
    done = share("--models", "abacus")
    assert done.returncode == 2 and "'abacus' is neither a file nor a model" in done.stderr
