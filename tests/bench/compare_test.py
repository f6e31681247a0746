"""bench/compare.py: its arithmetic, its arguments, and one short comparison from start to end."""

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

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "bench" / "compare.py"
sys.path.insert(0, str(ROOT / "bench"))

from harness import ratios, runtimes  # noqa: E402


def run_program(*arguments):
    return subprocess.run(
        [sys.executable, PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )


def test_a_ratio_is_taken_within_each_process():
    """The second process was slowed to half its speed, which must not change the ratio."""
    ratio = ratios.ratio_of([3.0, 6.0, 3.3], [2.0, 4.0, 2.0])
    assert ratio.value == pytest.approx(1.5)
    assert (ratio.low, ratio.high) == (pytest.approx(1.5), pytest.approx(1.65))


def test_one_process_gives_no_interval():
    assert ratios.ratio_of([3.0], [2.0]) == ratios.Estimate(1.5)
    assert ratios.geometric_mean([([4.0], [1.0]), ([1.0], [1.0])]).low is None


def test_the_geometric_mean_weighs_models_alike():
    pairs = [([4.0] * 3, [1.0] * 3), ([500.0] * 3, [500.0] * 3)]
    assert ratios.geometric_mean(pairs) == ratios.Estimate(2.0, 2.0, 2.0)


def test_an_interval_covers_what_it_should():
    """Of 200 experiments with a true ratio of 1.2, most intervals must contain it; if the
    confidence level is right, some do not."""
    generator = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        own = generator.lognormal(0, 0.05, 9)
        ratio = ratios.ratio_of(1.2 * own * generator.lognormal(0, 0.05, 9), own)
        hits += ratio.low <= 1.2 <= ratio.high
    assert 170 <= hits <= 199


ROWS = [
    ("equal", [1, 2, 3], [1, 2, 3], ""),
    ("rounding", [1, 2, 3], [1.0005, 2, 3], ""),
    ("another value", [1, 2, 3], [1, 2, 3.1], "off by up to 0.1"),
    ("not a number", [1, 2, 3], [1, np.nan, 3], "off by"),
    ("another shape", [1, 2, 3], [1, 2], "expected float32 (3,)"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_differences_are_told(row):
    _, expected, actual, text = row
    found = runtimes.explain_difference(
        [np.array(expected, np.float32)], [np.array(actual, np.float32)]
    )
    assert (found == "") == (text == "")
    assert text in found


WRONG = [
    (["--threads", "0"], "expected a whole number of at least 1, found '0'"),
    (["--threads", "100000"], "this process may use"),
    (["--processes", "many"], "found 'many'"),
    (["--seconds", "-1"], "expected a number above 0"),
    (["--peers", "onnxruntime,abacus"], "expected some of onnxruntime, openvino, found 'abacus'"),
    (["--shape", "tokens"], "expected NAME=DIMxDIM"),
    (["--frobnicate"], "--frobnicate"),
]


@pytest.mark.parametrize("row", WRONG, ids=lambda row: " ".join(row[0]))
def test_wrong_arguments_are_refused_with_help(row):
    arguments, text = row
    done = run_program(*arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert "usage:" in done.stderr


@pytest.fixture
def model(tmp_path):
    """A small convolution over images of any size."""
    weight = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "weight"], ["a"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["a"], ["b"]),
        ],
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, "height", 16])],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "weight")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def test_prices_are_measured_first_where_that_is_asked_for(bin_dir, model, tmp_path):
    if not any((bin_dir.parent / "python").glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    done = run_program(
        "--models", model, "--threads", 1, "--processes", 1, "--seconds", 0.05, "--peers", "",
        "--backends", "reference", "--shape", "image=1x3x12x16", "--optimize", "--tune-budget", 20,
        "--module-dir", bin_dir.parent / "python", "--json", tmp_path / "results.json",
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "results.json").read_text())["results"]
    assert row["tuning"].keys() == {"tessera", "tessera:reference"}
    for told in row["tuning"].values():
        assert 0 < told["measured"] and told["offered"] > 0 and told["predicted_ms"] > 0


def test_a_comparison_from_end_to_end(bin_dir, model, tmp_path):
    pytest.importorskip("openvino")
    if not any((bin_dir.parent / "python").glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    done = run_program(
        "--models", model, "--threads", 1, "--processes", 2, "--seconds", 0.05,
        "--backends", "reference", "--shape", "image=1x3x12x16",
        "--module-dir", bin_dir.parent / "python", "--json", tmp_path / "results.json",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress line without a terminal
    lines = done.stdout.splitlines()
    assert any(line.startswith("small ") for line in lines)
    # Only the first lines may be long: they have versions and the command.
    assert max(len(line) for line in lines[2:]) <= 100
    results = json.loads((tmp_path / "results.json").read_text())
    (row,) = results["results"]
    assert list(row["runtimes"]) == ["tessera", "tessera:reference", "onnxruntime", "openvino"]
    for entry in row["runtimes"].values():
        assert len(entry["process_median_ms"]) == 2
        assert entry["median_ms"] > 0
        assert min(entry["runs"]) >= 3
        assert entry["ratio_interval"][0] <= entry["ratio"] <= entry["ratio_interval"][1]
    assert [mean["runtime"] for mean in results["geometric_means"]][-1] == "the better peer"
    assert results["versions"].keys() == {"tessera", "onnxruntime", "openvino"}


def test_an_open_shape_is_asked_for(bin_dir, model):
    if not any((bin_dir.parent / "python").glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    done = run_program(
        "--models", model, "--threads", 1, "--processes", 1, "--peers", "",
        "--module-dir", bin_dir.parent / "python",
    )
    assert done.returncode == 1
    assert "--shape 'image=DIMxDIM" in done.stderr


def test_an_unknown_model_lists_the_known_ones(bin_dir):
    done = run_program("--models", "abacus", "--module-dir", bin_dir.parent / "python")
    assert done.returncode == 2
    assert "'abacus' is neither a file nor a model of the zoo" in done.stderr \
        or "no Python module" in done.stderr
