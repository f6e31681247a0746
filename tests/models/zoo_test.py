"""Every value of the seventeen networks of ../shared/zoo equals ONNX Runtime's, and a mutated kernel
would be noticed. Skipped where that folder is not there; self_made_test.py does the same on small
models of the project's own."""

import json
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


def is_usable(binary: Path, backend: str) -> bool:
    listed = json.loads(subprocess.run(
        [binary, "backends", "--json"], check=True, capture_output=True, text=True).stdout)
    return any(entry["name"] == backend and entry["is_usable"] for entry in listed["backends"])


def values_of_steps(binary: Path, model: Path, seed: int, folder: Path, *arguments) -> dict:
    """What the steps of the plan make when groups are fused, by name."""
    subprocess.run(
        [binary, "run", model, "--random", str(seed), "--fetch-steps", folder, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return read_folder(folder, "values.json")


def assert_equal(expected: dict, actual: dict, what: str):
    lines = differences(expected, actual)
    assert not lines, f"{what}: {len(lines)} values differ:\n" + "\n".join(lines[:10])


@pytest.mark.parametrize("name", NAMES)
def test_every_value_equals_onnxruntime(tessera_binary, zoo_folder, tmp_path, name):
    """The reference, one node at a time; then every library together, first with every value kept,
    which forbids groups, then with groups, of which the outputs are compared."""
    model = model_with_weights(zoo_folder, name)
    has_libraries = is_usable(tessera_binary, "onednn")
    for seed in (1, 2, 3):
        folder = tmp_path / str(seed)
        inputs, actual = run_tessera(
            tessera_binary, model, seed, folder, "--backends", "reference")
        expected = run_onnxruntime(model, inputs, tmp_path)
        assert_equal(expected, actual, "reference")
        if seed == 1:
            unnoticed = unnoticed_mutations(model, expected, actual)
            assert not unnoticed, "mutations not noticed:\n" + "\n".join(unnoticed)
        for threads in ("1", "2") if has_libraries else ():
            if seed == int(threads):
                _, actual = run_tessera(
                    tessera_binary, model, seed, folder / threads, "--threads", threads)
                assert_equal(expected, actual, f"all libraries, {threads} threads, values kept")
                unnoticed = unnoticed_mutations(model, expected, actual)
                assert not unnoticed, "mutations not noticed:\n" + "\n".join(unnoticed)
            steps = values_of_steps(
                tessera_binary, model, seed, folder / f"steps_{threads}", "--threads", threads)
            compared = {value: expected[value] for value in steps if value in expected}
            assert len(compared) > len(steps) / 2
            assert_equal(compared, steps, f"all libraries, {threads} threads")
        # The same outputs when passes may remove values.
        subprocess.run(
            [tessera_binary, "run", model, "--random", str(seed), "--output", folder / "plain"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        outputs = read_folder(folder / "plain", "outputs.json")
        assert_equal({output: expected[output] for output in outputs}, outputs, "outputs")
        shutil.rmtree(folder)
