"""bench/streams.py: one short comparison from start to end, a wrong runtime, wrong arguments."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import streams  # noqa: E402

# With an onnxruntime or openvino that is missing, the others are compared.
INSTALLED = [name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name)]


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((32, 32)).astype(np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 32])], [weight])
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


def run_program(tessera, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / "bench" / "streams.py", "--module-dir",
         Path(tessera.__file__).parents[1], *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)


def test_a_short_comparison(tessera, model, tmp_path):
    runtimes = ["tessera", "tessera.Pool", *INSTALLED]
    done = run_program(tessera, "--models", model, "--shape", "x=4x32", "--streams", "2",
                       "--rounds", "2", "--seconds", "0.05", "--json", tmp_path / "streams.json",
                       "--runtimes", ",".join(runtimes[1:]))
    assert done.returncode == 0, done.stderr
    case, = json.loads((tmp_path / "streams.json").read_text())["results"]
    assert [row["runtime"] for row in case["rows"]] == runtimes
    for row in case["rows"]:
        assert len(row["rounds"]) == 2 and all(one["runs"] >= 2 for one in row["rounds"])
        assert 0 < row["median_s"] <= row["p90_s"] <= row["p99_s"] <= row["max_s"]
    own, pool = case["rows"][:2]
    assert own["ratio"] == 1
    expected = np.median([mine["requests_per_second"] / other["requests_per_second"]
                          for mine, other in zip(own["rounds"], pool["rounds"], strict=True)])
    assert pool["ratio"] == pytest.approx(expected)
    assert f"product, 2 streams on {case['cores']} cores" in done.stdout
    assert "2 streams: tessera.Pool" in done.stdout


def test_wrong_arguments(tessera, model):
    for arguments, error in ((["--runtimes", "frobnicator"], "expected some of tessera"),
                             (["--streams", "0"], "at least 1"),
                             (["--models", "absent.onnx"], "neither a file nor a model")):
        done = run_program(tessera, "--models", model, *arguments)
        assert done.returncode == 2 and error in done.stderr, done.stderr


def test_other_outputs_end_the_comparison(tmp_path):
    np.savez(tmp_path / "one.npz", np.zeros(3, np.float32))
    np.savez(tmp_path / "other.npz", np.ones(3, np.float32))
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    assert "off by up to 1" in streams.explain_difference_of_files(one, other)
    assert streams.explain_difference_of_files(one, one) == ""


def test_an_error_of_a_stream_is_an_error_of_the_process():
    calls = streams.CallingThreads([lambda: [1], lambda: [][0]])
    with pytest.raises(IndexError):
        calls.outputs()
