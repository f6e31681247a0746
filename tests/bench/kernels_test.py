"""bench/kernels.py: which layers it selects, and one short measurement from start to end."""

import json
import os
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
PROGRAM = ROOT / "bench" / "kernels.py"
sys.path.insert(0, str(ROOT / "bench"))

import kernels  # noqa: E402
from networks import layers  # noqa: E402


def run_program(*arguments):
    return subprocess.run(
        [sys.executable, PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )


@pytest.fixture
def model(tmp_path):
    """Two equal convolutions, a Relu, a Slice whose ends are constants, and a Reshape."""
    weight = np.random.default_rng(3).standard_normal((4, 4, 3, 3)).astype(np.float32)
    same = dict(pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "weight"], ["a"], **same),
            helper.make_node("Conv", ["a", "other"], ["b"], **same),
            helper.make_node("Relu", ["b"], ["c"]),
            helper.make_node("Slice", ["c", "starts", "ends"], ["d"]),
            helper.make_node("Reshape", ["d", "shape"], ["e"]),
            helper.make_node("Softmax", ["e"], ["f"], axis=1),
        ],
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 4, 12, 16])],
        [helper.make_tensor_value_info("f", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(-weight, "other"),
            numpy_helper.from_array(np.array([0, 1]), "starts"),
            numpy_helper.from_array(np.array([2, 3]), "ends"),
            numpy_helper.from_array(np.array([2, -1]), "shape"),
        ],
    )
    path = tmp_path / "small.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def test_equal_layers_are_one_and_those_that_move_nothing_none(model):
    found = layers.layers_of(model)
    assert {layer.op: count for layer, count in found.items()} == {
        "Conv": 2, "Relu": 1, "Slice": 1, "Softmax": 1,
    }


def test_a_layer_tells_its_sizes_and_bytes(model):
    found = {layer.op: layer for layer in layers.layers_of(model)}
    assert found["Conv"].text == "Conv 2x4x12x16, 4x4x3x3 kernel_shape 3 pads 1"
    assert found["Conv"].bytes == 4 * (2 * 2 * 4 * 12 * 16 + 4 * 4 * 3 * 3)
    # Slice reads only the part that it returns.
    assert found["Slice"].bytes == 2 * 4 * (2 * 2 * 12 * 16)


def test_a_layer_keeps_the_constants_that_decide(model):
    layer = next(layer for layer in layers.layers_of(model) if layer.op == "Slice")
    made = layers.one_node_model(layer)
    onnx.checker.check_model(made, full_check=True)
    kept = {each.name: numpy_helper.to_array(each).tolist() for each in made.graph.initializer}
    assert kept == {"x1": [0, 1], "x2": [2, 3]}


def _layer(op, *shape):
    operand = layers.Operand("float32", shape, False, None)
    return layers.Layer(op, 17, (), (operand,), (("float32", shape),))


def test_the_largest_of_each_op_is_chosen_and_one_that_is_odd():
    small, large = _layer("Relu", 1, 64, 8, 8), _layer("Relu", 1, 64, 80, 80)
    other, odd = _layer("Tanh", 1, 8), _layer("Relu", 1, 63, 31, 31)
    assert layers.choose([small, large, other, odd], 3) == [large, odd, other]


WRONG = [
    (["--threads", "100000"], "this process may use"),
    (["--most", "0"], "expected a whole number of at least 1, found '0'"),
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
def module_dir(bin_dir):
    folder = bin_dir.parent / "python"
    if not any(folder.glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    return folder


def test_unknown_names_are_told_with_the_known_ones(model, module_dir):
    done = run_program("--models", model, "--families", "abacus", "--module-dir", module_dir)
    assert done.returncode == 2
    assert "expected some of convolution, product" in done.stderr
    done = run_program("--models", "abacus", "--module-dir", module_dir)
    assert done.returncode == 2
    assert "'abacus' is neither a file nor a model of the zoo" in done.stderr


@pytest.mark.parametrize("percent", [None, 0.2, 99.6, 999.4, 999.6, 123456.0])
def test_a_share_fits_its_column(percent):
    assert len(kernels.share_text(percent)) <= 6


def test_a_measurement_from_end_to_end(model, choose_backends, module_dir, tmp_path):
    pytest.importorskip("onnxruntime")
    choose_backends("native")
    done = run_program(
        "--models", model, "--seconds", 0.01, "--contenders", "native,reference,onnxruntime",
        "--module-dir", module_dir, "--json", tmp_path / "results.json",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress line without a terminal
    # Only the first lines may be long: they have the processor and the command.
    assert max(len(line) for line in done.stdout.splitlines()[2:]) <= 100
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["failures"] == []
    rows = results["results"]
    assert [row["family"] for row in rows] == ["convolution", "elementwise", "softmax", "copies"]
    for row in rows:
        assert row["models"] == ["small"]
        assert {"reference", "onnxruntime"} <= row["contenders"].keys()
        # Every contender is either timed or refused with a reason.
        assert row["contenders"].keys() | row["refusals"].keys() == \
            {"native", "reference", "onnxruntime"}
        for entry in row["contenders"].values():
            assert entry["median_us"] > 0
            assert entry["runs"] >= 3
    assert rows[0]["flops"] == 2 * (2 * 4 * 12 * 16) * (4 * 3 * 3)
    if os.access(module_dir.parent / "bin" / "tessera_bench_native", os.X_OK):
        limits = results["limits"]["1"]
        assert limits["flops_per_second"] > 0
        assert rows[0]["limit_us"] >= rows[0]["flops"] / limits["flops_per_second"] * 1e6
