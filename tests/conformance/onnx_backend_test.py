"""All cases of onnx.backend.test.runner on tessera.backend: the test counts those that pass.

The whole run takes about 10 seconds, so no part of it is left out. The other files of this folder
run the same cases by the command line, with each list of backends."""

import importlib
import json
import unittest
import warnings
from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest
from small_models import model_of, node

# Numbers of cases for the processor; the runner skips those for CUDA.
PASSED = 2006
# The runner takes the length of each element of a list, and a scalar has none.
LISTS_WITH_SCALARS = {"test_loop16_seq_none"}
# Why cases cannot pass yet, for all that compute something.
NOT_YET = json.loads((Path(__file__).parent / "node_not_yet.json").read_text())


class Outcomes(unittest.TestResult):
    """The outcome of each case, by its name without the device."""

    def __init__(self):
        super().__init__()
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(name_of(test))


def name_of(test):
    return test.id().rpartition(".")[2].removesuffix("_cpu")


@pytest.fixture(scope="module")
def backend(tessera):
    return importlib.import_module("tessera.backend")


@pytest.fixture(scope="module")
def outcomes(backend, tmp_path_factory):
    found = Outcomes()
    with (warnings.catch_warnings(), np.errstate(all="ignore"),
          pytest.MonkeyPatch.context() as environment):
        # The runner copies the models of the wheel there.
        environment.setenv("ONNX_HOME", str(tmp_path_factory.mktemp("onnx")))
        warnings.simplefilter("ignore")
        onnx.backend.test.BackendTest(backend, __name__).test_suite.run(found)
    return found


def test_as_many_cases_pass_as_before(outcomes):
    assert len(outcomes.passed) >= PASSED
    assert {"test_add", "test_conv_with_strides_padding", "test_resnet50", "test_Conv2d",
            "test_operator_mm", "test_sign_model"} <= set(outcomes.passed)


def test_a_case_that_does_not_pass_is_refused_or_listed(outcomes):
    wrong = {name_of(test) for test, _ in outcomes.failures}
    assert wrong <= set(NOT_YET), "an op computes something else than ONNX says"
    others = [(name_of(test), text.strip().splitlines()[-1]) for test, text in outcomes.errors
              if "tessera.errors.Unsupported: " not in text
              and name_of(test) not in LISTS_WITH_SCALARS]
    assert not others


def test_lists_with_scalars_are_right(backend):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = {case.name: case for case in collect_testcases(None)}
    for name in LISTS_WITH_SCALARS:
        for inputs, (expected,) in cases[name].data_sets:
            found, = backend.run_model(cases[name].model, inputs)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)


def test_nothing_but_other_devices_is_skipped(outcomes):
    reasons = {reason for _, reason in outcomes.skipped}
    assert reasons <= {"Backend doesn't support device CUDA", "Not compatible with backend"}
    incompatible = [test for test, reason in outcomes.skipped if reason.startswith("Not")]
    assert len(incompatible) < 30


def add(shape):
    return model_of([node("Add", "x y", "z")], {"x": shape, "y": shape}, {"z": shape})


def test_a_model_runs_by_order_and_by_name(backend):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    prepared = backend.prepare(add(["rows", 3]), "CPU:0")
    for count in (2, 1):
        outputs = prepared.run([x[:count], x[:count]])
        np.testing.assert_array_equal(outputs.z, 2 * x[:count])
        np.testing.assert_array_equal(prepared.run({"y": x[:count], "x": x[:count]})[0], outputs[0])
    np.testing.assert_array_equal(backend.run_model(add([2, 3]), [x, x])[0], 2 * x)
    clip = node("Clip", ["x", "", "most"])
    clipped, = backend.run_node(clip, [x, np.array(3, np.float32)], opset_version=13)
    np.testing.assert_array_equal(clipped, np.minimum(x, 3))


def test_what_cannot_run_is_refused(tessera, backend):
    unknown = add([2])
    unknown.graph.node[0].op_type = "Plus"
    assert not backend.is_compatible(unknown)
    assert not backend.is_compatible(add([2]), "CUDA")
    assert backend.is_compatible(add([2])) and backend.supports_device("CPU")
    with pytest.raises(tessera.Unsupported, match="expected 'CPU', found 'CUDA'"):
        backend.prepare(add([2]), "CUDA")
    with pytest.raises(TypeError, match="expected an onnx.ModelProto, found bytes"):
        backend.prepare(b"")
    with pytest.raises(tessera.InvalidArgument, match="expected 2 arrays, found 1"):
        backend.run_model(add([2]), [np.ones(2, np.float32)])
    with pytest.raises(TypeError, match="did you mean 'threads'"):
        backend.run_model(add([2]), [np.ones(2, np.float32)] * 2, thread=1)
