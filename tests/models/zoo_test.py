"""Every value of the seventeen networks of ../shared/zoo equals ONNX Runtime's, and a mutated
kernel would be detected. Skipped if that folder does not exist; self_made_test.py does the same for
the project's own small models. On native alone, only light networks run, with --long all."""

import shutil
import sys
from pathlib import Path

import pytest

from programs import run_program
from value_comparison import (
    differences,
    read_folder,
    run_onnxruntime,
    run_tessera,
    unnoticed_mutations,
)

ROOT = Path(__file__).resolve().parents[2]
ZOO = ROOT.parent / "shared" / "zoo"
NAMES = sorted(path.parent.name for path in ZOO.glob("*/model.onnx"))
LIGHT = ("bert_mini", "lstm_tagger", "shufflenet", "squeezenet")

if not NAMES:
    pytest.skip(f"no models in {ZOO}", allow_module_level=True)


@pytest.fixture(scope="module")
def zoo_folder():
    """The models with their weights, created once for each checkout."""
    return ROOT / "build" / "zoo"


def model_with_weights(zoo_folder: Path, name: str) -> Path:
    model = zoo_folder / name / "model.onnx"
    if not (zoo_folder / name / "weights.bin").exists():
        unfinished = zoo_folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        run_program(sys.executable, ZOO / "make_weights.py", unfinished, name)
        shutil.rmtree(zoo_folder / name, ignore_errors=True)
        (unfinished / name).rename(zoo_folder / name)
    return model


def values_of_steps(binary: Path, model: Path, seed: int, folder: Path, *arguments) -> dict:
    """The values that the steps of the plan compute if groups are fused, by name."""
    run_program(binary, "run", model, "--random", seed, "--fetch-steps", folder, *arguments)
    return read_folder(folder, "values.json")


def assert_mutations_noticed(model: Path, expected: dict, actual: dict):
    unnoticed = unnoticed_mutations(model, expected, actual)
    assert not unnoticed, "mutations not noticed:\n" + "\n".join(unnoticed)


def assert_equal(expected: dict, actual: dict, what: str):
    lines = differences(expected, actual)
    assert not lines, f"{what}: {len(lines)} values differ:\n" + "\n".join(lines[:10])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_value_of_the_reference_equals_onnxruntime(
    tessera_binary, is_long, zoo_folder, tmp_path, name, seed
):
    """One node at a time; then the outputs on all libraries if passes may remove values."""
    if seed > 1 and not is_long:
        pytest.skip("other inputs: --long")
    model = model_with_weights(zoo_folder, name)
    inputs, actual = run_tessera(
        tessera_binary, model, seed, tmp_path, "--backends", "reference")
    expected = run_onnxruntime(model, inputs, tmp_path)
    assert_equal(expected, actual, "reference")
    if seed == 1:
        assert_mutations_noticed(model, expected, actual)
    run_program(tessera_binary, "run", model, "--random", seed, "--output", tmp_path / "plain")
    outputs = read_folder(tmp_path / "plain", "outputs.json")
    assert_equal({output: expected[output] for output in outputs}, outputs, "outputs")
    shutil.rmtree(tmp_path)  # hundreds of megabytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backends", ["native", "onednn,native"])
def test_every_value_of_libraries_equals_onnxruntime(
    tessera_binary, choose_backends, is_long, zoo_folder, tmp_path, name, backends
):
    """First with every value kept, which prevents groups. Then with groups, comparing the values
    between them. The reference computes what the libraries refuse."""
    choice = choose_backends(backends)
    if backends == "native" and name not in LIGHT and not is_long:
        pytest.skip("not a light network: --long")
    model = model_with_weights(zoo_folder, name)
    for seed in (1, 2, 3) if is_long else (1,):
        folder = tmp_path / str(seed)
        threads = str(1 + seed % 2)
        inputs, actual = run_tessera(
            tessera_binary, model, seed, folder, "--threads", threads, *choice)
        expected = run_onnxruntime(model, inputs, tmp_path)
        assert_equal(expected, actual, f"{backends}, {threads} threads, values kept")
        assert_mutations_noticed(model, expected, actual)
        for threads in ("1", "2"):
            steps = values_of_steps(tessera_binary, model, seed, folder / f"steps_{threads}",
                                    "--threads", threads, *choice)
            compared = {value: expected[value] for value in steps if value in expected}
            assert len(compared) > len(steps) / 2
            assert_equal(compared, steps, f"{backends}, {threads} threads")
        shutil.rmtree(folder)
