"""Every value of the project's own small networks equals ONNX Runtime's, and every fault put into a
Conv, Gemm or MatMul kernel is detected."""

import json

import onnx
import pytest

import self_made_models
from programs import run_program
from value_comparison import (
    differences,
    mutable_nodes,
    read_folder,
    run_onnxruntime,
    run_tessera,
)


@pytest.fixture(params=self_made_models.MODELS, ids=lambda make: make.__name__)
def model(request, tmp_path):
    path = tmp_path / f"{request.param.__name__}.onnx"
    onnx.save(request.param(), path)
    return path


def shape_arguments(model):
    shapes = self_made_models.SHAPES.get(model.stem, {})
    return [part for name, shape in shapes.items() for part in ("--shape", f"{name}={shape}")]


@pytest.mark.parametrize("backends", ["reference", "native", "onednn,native"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_value_equals_onnxruntime(
    tessera_binary, choose_backends, model, tmp_path, seed, backends
):
    inputs, actual = run_tessera(
        tessera_binary, model, seed, tmp_path, *shape_arguments(model), *choose_backends(backends))
    expected = run_onnxruntime(model, inputs, tmp_path)
    assert not differences(expected, actual)


@pytest.mark.parametrize("backends", ["reference", "native", "onednn,native"])
def test_outputs_stay_the_same_when_passes_may_remove_values(
    tessera_binary, choose_backends, model, tmp_path, backends
):
    shapes = shape_arguments(model)
    inputs, _ = run_tessera(tessera_binary, model, 1, tmp_path, *shapes)
    command = [tessera_binary, "run", model, "--random", "1", "--output", tmp_path / "plain"]
    choice = choose_backends(backends)
    run_program(*command, *shapes, *choice)
    outputs = read_folder(tmp_path / "plain", "outputs.json")
    expected = run_onnxruntime(model, inputs, tmp_path)
    assert not differences({name: expected[name] for name in outputs}, outputs)


def test_every_mutation_is_noticed(bin_dir, tessera_binary, model, tmp_path):
    inputs, _ = run_tessera(tessera_binary, model, 1, tmp_path, *shape_arguments(model))
    expected = run_onnxruntime(model, inputs, tmp_path)
    entries = json.loads((tmp_path / "inputs" / "inputs.json").read_text())
    files = [f"{entry['name']}={tmp_path / 'inputs' / entry['file']}" for entry in entries]
    run_program(bin_dir / "mutated_runs", model, tmp_path / "mutated", *files)

    mutated = sorted((tmp_path / "mutated").iterdir())
    # Two mutations for each node: all these models have at least two channels everywhere.
    assert len(mutated) == 2 * len(mutable_nodes(model))
    for folder in mutated:
        actual = read_folder(folder, "values.json")
        assert differences(expected, actual), (folder / "mutation.json").read_text()
