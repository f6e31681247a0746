"""The onnx wheel's stored cases: pytorch-converted, pytorch-operator and simple.

Cases that cannot pass yet are listed in not_yet.json with a reason each. A listed case that passes
fails the test."""

import json
from pathlib import Path

import onnx
import pytest
from programs import run_program

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
NOT_YET = json.loads((Path(__file__).parent / "not_yet.json").read_text())
FOLDERS = ("pytorch-converted", "pytorch-operator", "simple")
CASES = sorted(path for folder in FOLDERS for path in (DATA / folder).glob("*/model.onnx"))


def case_name(model: Path) -> str:
    return f"{model.parents[1].name}/{model.parent.name}"


def numbered(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))


def explain_failure(binary: Path, model: Path, choice: list) -> str:
    """Describes the first data set that fails, or ""."""
    folders = sorted(model.parent.glob("test_data_set_*"))
    assert folders, "a case has data"
    for folder in folders:
        inputs = [
            part
            for index, path in enumerate(numbered(folder, "input"))
            for part in ("--input", f"#{index}={path}")
        ]
        outputs = [
            part
            for index, path in enumerate(numbered(folder, "output"))
            for part in ("--expect", f"#{index}={path}")
        ]
        assert outputs, "a data set has outputs"
        command = [binary, "run", model, *inputs, *outputs, *choice, "--rtol", "1e-3", "--atol", "1e-7"]
        result = run_program(*command, code=None)
        if result.returncode != 0:
            return f"exit code {result.returncode}: {result.stdout}{result.stderr}"
    return ""


@pytest.mark.parametrize("model", CASES, ids=case_name)
def test_gives_its_stored_outputs(tessera_binary, choose_backends, model, backends):
    failure = explain_failure(tessera_binary, model, choose_backends(backends))
    reason = NOT_YET.get(case_name(model))
    if reason is None:
        assert not failure, failure
    else:
        assert failure, f"passes now: take it out of not_yet.json ({reason})"


def test_not_yet_lists_only_cases_that_exist():
    assert set(NOT_YET) <= {case_name(model) for model in CASES}
