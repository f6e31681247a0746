"""The nine models of the onnx wheel's `light` folder give their stored outputs.

All their weights are equal, so this test only shows that real files load and run. tests/models
shows that the numbers are correct."""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from programs import run_program

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
CASES = sorted((DATA / "real").glob("*/data.json"))
RUNS_ON_ALL_LISTS = True  # conftest.py


def input_of(model_file: Path) -> tuple[str, np.ndarray]:
    """The only input without a value in the file, filled as the stored outputs require."""
    graph = onnx.load(model_file).graph
    constants = {tensor.name for tensor in graph.initializer}
    (value,) = [entry for entry in graph.input if entry.name not in constants]
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return value.name, (np.arange(count, dtype=np.float32) / count).reshape(shape)


# Equal weights make this network's logits as large as 1e10, where neighbouring float32 numbers
# differ by 1024. After softmax, differences in rounding become arbitrarily large, so libraries are
# compared by the logits.
LOGITS = {"test_squeezenet": "r65"}


def compare_logits(binary, backends, folder, model, input_name, logits):
    found = {}
    for kind, options in (("reference", ["--backends", "reference"]), ("libraries", backends)):
        run_program(binary, "run", model, "--input", f"{input_name}={folder / 'input.npy'}",
                    "--dump-values", folder / kind, *options)
        [entry] = [entry for entry in json.loads((folder / kind / "values.json").read_text())
                   if entry["name"] == logits]
        found[kind] = np.load(folder / kind / entry["file"])
    np.testing.assert_allclose(found["libraries"], found["reference"], rtol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_gives_its_stored_output(tessera_binary, choose_backends, tmp_path, case, backends):
    facts = json.loads(case.read_text())
    model = DATA / "light" / Path(facts["url"]).name
    name, array = input_of(model)
    np.save(tmp_path / "input.npy", array)
    if case.parent.name in LOGITS and backends != "reference":
        return compare_logits(tessera_binary, choose_backends(backends), tmp_path, model, name,
                              LOGITS[case.parent.name])
    expected = DATA / "light" / f"{model.stem}_output_0.pb"
    result = subprocess.run(
        [tessera_binary, "run", model, "--input", f"{name}={tmp_path / 'input.npy'}",
         "--expect", f"#0={expected}", "--rtol", str(facts["rtol"]), "--atol", str(facts["atol"]),
         *choose_backends(backends)],
        capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
