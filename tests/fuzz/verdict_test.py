"""Tests the fuzzers themselves: they detect wrong results, and attribute a crash to its case."""

import sys
import textwrap

import numpy as np
import onnx
import pytest

from findings import Collector
from fuzz_case import load_case
from judges import Reference, Undefined, fault_of_reference
from runner import Runner, Worker
from seeds import case_of
from small_models import model_bytes, node, tensor_type
from verdict import explain_difference, find_problem

ONE = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize(("found", "expected", "part"), (
    (ONE, ONE, ""),
    (ONE, ONE * np.float32(1.00001), ""),
    (ONE, ONE * np.float32(1.1), "3 of 3 elements differ"),
    (ONE, ONE.astype(np.float64), "expected float64, found float32"),
    (ONE, ONE[:2], "expected shape (2,), found (3,)"),
    (np.array([np.inf]), np.array([np.nan]), ""),
    (np.array([1.0]), np.array([np.nan]), "expected nan, found 1.0"),
    (np.array([np.nan]), np.array([1.0]), "expected 1.0, found nan"),
    (np.array([1, 2]), np.array([1, 3]), "at [1] expected 3, found 2"),
))
def test_differences_are_seen(found, expected, part):
    text = explain_difference(found, expected)
    assert part in text if part else not text


REFUSED = {"kind": "InvalidArgument", "where": "node 'target' (Add)", "message": "no"}
RESULT = {"kind": "", "arrays": [ONE]}
SAME, OTHER, NONE = {"arrays": [ONE]}, {"arrays": [ONE + 1]}, {"error": "INVALID_ARGUMENT"}


@pytest.mark.parametrize(("run", "onnxruntime", "reference", "kind"), (
    (RESULT, SAME, SAME, None),
    (RESULT, SAME, OTHER, None),
    (RESULT, OTHER, OTHER, "differs"),
    (RESULT, NONE, OTHER, None),
    (RESULT, {"error": "NOT_IMPLEMENTED"}, OTHER, "differs"),
    (RESULT, OTHER, {"error": "Undefined: a conversion"}, None),
    (RESULT, {"arrays": [ONE[:2]]}, {"error": "Undefined: a conversion"}, "differs"),
    (RESULT, NONE, NONE, "accepts"),
    (REFUSED, NONE, SAME, None),
    (REFUSED, SAME, SAME, "refuses"),
    ({**REFUSED, "where": "somewhere"}, NONE, NONE, "names nothing"),
    ({**REFUSED, "kind": "Internal"}, NONE, NONE, "Internal"),
    ({"kind": "crash", "message": "SIGSEGV"}, SAME, SAME, "crash"),
))
def test_problems_are_found(run, onnxruntime, reference, kind):
    problem = find_problem(run, {"onnxruntime": onnxruntime, "reference": reference}, ["target"])
    assert (problem and problem.kind) == kind


FAKE = """
    import json, os, sys
    for line in sys.stdin:
        runs = json.loads(line)["runs"]
        if any("bad" in run for run in runs):
            os.abort()
        run = {"kind": "Unsupported", "where": "node 'target'", "message": ""}
        print(json.dumps({"runs": [run] * len(runs)}), flush=True)
"""


def test_a_crash_is_laid_to_its_run(tmp_path, seeds):
    program = tmp_path / "fake.py"
    program.write_text(textwrap.dedent(FAKE))
    case = case_of(seeds["", "Relu", 14][0], [[ONE], [ONE], [ONE]], ["fed"])
    case.runs[1]["bad"] = ONE
    with Runner(tmp_path, ()) as runner:
        runner.workers["fake"] = Worker([sys.executable, program], 30)
        answers, _ = runner.run(case, judges=())
        assert [run["kind"] for run in answers["fake"]] == ["Unsupported", "crash", "Unsupported"]
        assert "SIGABRT" in answers["fake"][1]["message"]
        collector = Collector(runner)
        [finding] = collector.check("Relu", "case", case, ["", "spoilt", ""], judges=())
    assert finding.kind == "crash" and "spoilt" in finding.where and len(finding.case.runs) == 1


def test_a_hang_is_ended(tmp_path, seeds):
    case = case_of(seeds["", "Relu", 14][0], [[ONE]], ["fed"])
    with Runner(tmp_path, ()) as runner:
        runner.workers["fake"] = Worker(
            [sys.executable, "-c", "import time; time.sleep(600)"], 0.2)
        answers, _ = runner.run(case, judges=())
    assert answers["fake"][0]["kind"] == "hang"


def test_a_case_survives_its_file(tmp_path, seeds):
    case = case_of(seeds["", "Relu", 14][0], [[ONE], [ONE * 2]], ["rows"])
    case.note, case.is_refused = "why", True
    case.save(tmp_path / "case.onnx")
    again = load_case(tmp_path / "case.onnx")
    assert (again.note, again.is_refused, again.keeps_denormals) == ("why", True, False)
    assert again.model.SerializeToString() == case.model.SerializeToString()
    assert repr(again.runs) == repr(case.runs)


@pytest.mark.parametrize("op, inputs, attributes, fault", [
    ("LRN", 1, {"size": 3}, "normalises"),
    ("MaxPool", 1, {"auto_pad": "SAME_LOWER"}, "another operator"),
    ("MaxPool", 1, {"auto_pad": "SAME_UPPER"}, None),
    ("AveragePool", 1, {"auto_pad": "SAME_LOWER"}, None),
    ("GRU", 5, {}, "sequence_lens"),
    ("GRU", 3, {"clip": 0.3, "activations": ["Relu", "Tanh"]}, "does not read activations, clip"),
    ("RNN", 3, {"activations": ["Relu"]}, None),
    ("LSTM", 3, {"hidden_size": 2}, None),
])
def test_onnx_reference_is_not_asked_where_it_is_wrong(op, inputs, attributes, fault):
    node = onnx.helper.make_node(op, [f"i{index}" for index in range(inputs)], ["o"], **attributes)
    found = fault_of_reference(node)
    assert found is None if fault is None else fault in found


@pytest.mark.parametrize("base, is_defined", [(2, True), (2**31 - 1, False)])
def test_results_that_leave_their_type_are_undefined(base, is_defined):
    """Pow computes in floating point and converts; the sum behind it hides what came of that."""
    integer = tensor_type(onnx.TensorProto.INT32, [1])
    judge = Reference(model_bytes([node("Pow", "x y", "power"), node("Add", "power power", "sum")],
                                  {"x": integer, "y": [1]}, {"sum": integer}, opset=15))
    fed = {"x": np.array([base], np.int32), "y": np.array([3], np.float32)}
    if is_defined:
        assert judge.run(fed)[0] == [16]
    else:
        with pytest.raises(Undefined):
            judge.run(fed)
