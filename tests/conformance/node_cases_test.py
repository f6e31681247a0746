"""The single-node cases that the onnx package generates, for every op that Tessera supports.

Cases of other ops are skipped; cases that cannot pass yet are listed in node_not_yet.json."""

import json
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from programs import json_of, run_program

NOT_YET = json.loads((Path(__file__).parent / "node_not_yet.json").read_text())
# Their cases pass or fail by chance.
RANDOM_OPS = {("", "Bernoulli"), ("", "RandomUniformLike")}


def collect_cases():
    """Cases by name. Generating them prints intended overflow warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}


CASES = collect_cases()


@pytest.fixture(scope="session")
def known_ops(bin_dir):
    return {(op["domain"], op["name"]) for op in json_of(bin_dir / "print_op_table")}


def ops_of(model: onnx.ModelProto) -> set:
    return {(node.domain, node.op_type) for node in model.graph.node}


def has_tensors_only(case) -> bool:
    """Whether files of tensors can hold all its values; lists and empty optionals are tested by
    onnx_backend_test.py."""
    return all(isinstance(value, onnx.TensorProto)
               or (not isinstance(value, list) and np.asarray(value).dtype != object)
               for data_set in case.data_sets for values in data_set for value in values)


def save_tensor(path: Path, array) -> None:
    proto = array if isinstance(array, onnx.TensorProto) else numpy_helper.from_array(np.asarray(array))
    path.write_bytes(proto.SerializeToString())


def explain_failure(binary: Path, case, folder: Path, choice: list) -> str:
    model = folder / "model.onnx"
    onnx.save(case.model, model)
    for inputs, outputs in case.data_sets:
        command = [binary, "run", model, *choice, "--rtol", str(case.rtol), "--atol", str(case.atol)]
        # A case omits optional inputs from its list, like the graph.
        for index, array in enumerate(inputs):
            save_tensor(folder / f"input_{index}.pb", array)
            command += ["--input", f"#{index}={folder / f'input_{index}.pb'}"]
        for index, array in enumerate(outputs):
            save_tensor(folder / f"output_{index}.pb", array)
            command += ["--expect", f"#{index}={folder / f'output_{index}.pb'}"]
        result = run_program(*command, code=None)
        if result.returncode != 0:
            return f"exit code {result.returncode}: {result.stdout}{result.stderr}"
    return ""


@pytest.mark.parametrize("name", sorted(CASES))
def test_gives_the_generated_outputs(
    tessera_binary, choose_backends, known_ops, tmp_path, name, backends
):
    case = CASES[name]
    if not ops_of(case.model) <= known_ops:
        pytest.skip("an op that Tessera does not know")
    if not has_tensors_only(case):
        pytest.skip("a value that is no tensor")
    if ops_of(case.model) & RANDOM_OPS:
        pytest.skip("random numbers")
    failure = explain_failure(tessera_binary, case, tmp_path, choose_backends(backends))
    reason = NOT_YET.get(name)
    if reason is None:
        assert not failure, failure
    else:
        assert failure, f"passes now: take it out of node_not_yet.json ({reason})"
