"""A run on bound memory allocates nothing of Tessera's own; what libraries do is counted apart."""

import json
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 100
ZOO = ("chess", "squeezenet", "resnet50", "bert_mini")


@pytest.fixture(scope="session")
def count(bin_dir):
    program = bin_dir / "count_allocations"
    if not program.exists():
        pytest.skip(f"{program} is not built: sanitizers replace malloc themselves")

    def run(model, backends, threads=1, runs=RUNS):
        done = subprocess.run(
            [program, model, backends, str(threads), str(runs)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A convolution, sums in place, a view, a joint value, and an output that is a copy of an input."""
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "c"], ["s"]),
        helper.make_node("Concat", ["s", "r"], ["j"], axis=1),
        helper.make_node("GlobalAveragePool", ["j"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
        helper.make_node("Identity", ["x"], ["same"]),
    ]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16]),
         helper.make_tensor_value_info("same", TensorProto.FLOAT, [1, 3, 16, 16])],
        [numpy_helper.from_array(weight, "w")])
    path = tmp_path_factory.mktemp("allocations") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


@pytest.mark.parametrize("threads", (1, 2))
def test_plans_of_native_allocate_nothing(count, small_model, threads, why_unusable):
    if why_unusable.get("native"):
        pytest.skip(f"native is {why_unusable['native']}")
    counts = count(small_model, "native", threads)
    assert counts["total"] == counts["library"]
    # With several threads, their library has tasks to keep.
    assert threads > 1 or counts["total"] == 0


def test_the_host_allocates_nothing_for_reference_kernels(count, tmp_path):
    """Kernels of the reference allocate small vectors of their own; views of inputs need none."""
    nodes = [helper.make_node("Identity" if index % 2 else "Neg", [f"v{index}"], [f"v{index + 1}"])
             for index in range(20)]
    graph = helper.make_graph(
        nodes, "unary", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [64])],
        [helper.make_tensor_value_info("v20", TensorProto.FLOAT, [64])])
    path = tmp_path / "unary.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    assert count(path, "reference") == {"total": 0, "library": 0}


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("network", ZOO)
def test_networks_allocate_only_within_libraries(count, network, threads, why_unusable, capsys):
    model = ROOT / "build/zoo" / network / "model.onnx"
    if not model.exists():
        pytest.skip("the zoo is not here")
    # Kernels of the reference, which would do what these two lack, allocate small vectors.
    for name in ("onednn", "native"):
        if why_unusable.get(name):
            pytest.skip(f"{name} is {why_unusable[name]}")
    counts = count(model, "onednn,native", threads)
    with capsys.disabled():
        print(f"\n{network}, {threads} threads, {RUNS} runs: {counts['library']} allocations by "
              "libraries")
    assert counts["total"] == counts["library"]
