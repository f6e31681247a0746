"""Every value of the seventeen networks of ../shared/zoo equals ONNX Runtime's, and a mutated kernel
would be noticed. Skipped where that folder is not there; self_made_test.py does the same on small
models of the project's own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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

if not NAMES:
    pytest.skip(f"no models in {ZOO}", allow_module_level=True)


@pytest.fixture(scope="module")
def zoo_folder():
    """The models with their weights, made once for each checkout."""
    return ROOT / "build" / "zoo"


def model_with_weights(zoo_folder: Path, name: str) -> Path:
    model = zoo_folder / name / "model.onnx"
    if not (zoo_folder / name / "weights.bin").exists():
        unfinished = zoo_folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run(
            [sys.executable, ZOO / "make_weights.py", unfinished, name],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(zoo_folder / name, ignore_errors=True)
        (unfinished / name).rename(zoo_folder / name)
    return model


@pytest.mark.parametrize("name", NAMES)
def test_every_value_equals_onnxruntime(tessera_binary, zoo_folder, tmp_path, name):
    model = model_with_weights(zoo_folder, name)
    for seed in (1, 2, 3):
        folder = tmp_path / str(seed)
        inputs, actual = run_tessera(tessera_binary, model, seed, folder)
        expected = run_onnxruntime(model, inputs, tmp_path)
        lines = differences(expected, actual)
        assert not lines, f"{len(lines)} values differ:\n" + "\n".join(lines[:10])
        if seed == 1:
            unnoticed = unnoticed_mutations(model, expected, actual)
            assert not unnoticed, "mutations not noticed:\n" + "\n".join(unnoticed)
        # The same outputs when passes may remove values.
        subprocess.run(
            [tessera_binary, "run", model, "--random", str(seed), "--output", folder / "plain"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        outputs = read_folder(folder / "plain", "outputs.json")
        assert not differences({output: expected[output] for output in outputs}, outputs)
        shutil.rmtree(folder)
