"""Steps whose outputs get their sizes in the run: everything before them is planned as usual, and
one executor returns different sizes for different inputs."""

import json

import numpy as np
import pytest
from onnx import TensorProto
from programs import run_program
from small_models import node, save_model, tensor_type


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Doubles its input, finds the elements above 0, and returns the sum of each row of indices."""
    nodes = [node("Add", "x x", "double", "doubling"), node("Relu", "double", "positive", "relu"),
             node("NonZero", "positive", "indices", "finding"),
             node("ReduceSum", "indices axes", "sums", "adding", keepdims=0),
             node("Identity", "indices", "found", "giving")]
    return save_model(tmp_path_factory.mktemp("unknown") / "model.onnx", nodes, {"x": ["rows", 4]},
                      {"sums": tensor_type(TensorProto.INT64, [2]),
                       "found": tensor_type(TensorProto.INT64, [2, "count"])}, {"axes": [1]})


def scattered(density, rows=3):
    source = np.random.default_rng(2)
    return np.where(source.random((rows, 4)) < density, source.random((rows, 4)) + 1,
                    -1).astype(np.float32)


def check(x, sums, found):
    expected = np.array(np.nonzero(x > 0))
    assert found.dtype == np.int64 and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(sums, expected.sum(axis=1))


@pytest.mark.parametrize("backends", ((), ("reference",)))
@pytest.mark.parametrize("threads", (1, 2))
def test_sizes_follow_the_input(tessera, model, backends, threads):
    executor = tessera.load(model).bind({"x": (3, 4)}, threads=threads, backends=backends)
    for density in (0.5, 0.0, 1.0, 0.2, 0.8):
        check(scattered(density), *executor.run(scattered(density)))
    # Sizes that are known only in the run, together with sizes that are known before.
    for rows in (5, 3, 1):
        check(scattered(0.5, rows), *executor.run(scattered(0.5, rows)))


def test_what_comes_before_is_in_the_arena(tessera, model):
    plan = tessera.load(model).bind({"x": (3, 4)}, backends=["reference"]).plan()
    blocks = [block.name for block in plan.memory.blocks]
    assert "positive" in blocks and "indices" not in blocks
    [finding] = [step for step in plan.steps if step.op == "NonZero"]
    assert "?" in finding.outputs[0].type or "count" in finding.outputs[0].type


def test_such_an_output_cannot_be_bound(tessera, model):
    executor = tessera.load(model).bind({"x": (3, 4)})
    with pytest.raises(tessera.InvalidArgument, match="output 'found': expected an output whose size"):
        executor.bind_output("found", np.zeros((2, 5), np.int64))
    check(scattered(0.5), *executor.run(scattered(0.5)))


@pytest.mark.parametrize("density", (0.0, 0.4, 1.0))
def test_the_program_writes_what_was_found(tessera_binary, model, tmp_path, density):
    x = scattered(density, rows=6)
    np.save(tmp_path / "x.npy", x)
    done = run_program(tessera_binary, "run", model, "--input", f"x={tmp_path / 'x.npy'}",
                       "--output", tmp_path / "out", "--json")
    outputs = json.loads((tmp_path / "out/outputs.json").read_text())
    assert json.loads(done.stdout)["outputs"] and outputs
    check(x, np.load(tmp_path / "out/output_0.npy"), np.load(tmp_path / "out/output_1.npy"))
