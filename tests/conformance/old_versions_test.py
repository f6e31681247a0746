"""Models of operator sets 1 to 5, and of ONNX's first experiments."""

import importlib
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from old_versions import random_case
from programs import json_of
from small_models import chain, model_of, node

COUNT = 400


@pytest.fixture(scope="module")
def backend(tessera):
    return importlib.import_module("tessera.backend")


@pytest.fixture(scope="module")
def known_ops(bin_dir):
    return {op["name"] for op in json_of(bin_dir / "print_op_table") if op["domain"] == ""}


def explain_difference(backend, case):
    """What is wrong with the outputs of a case, or ""."""
    found = backend.run_model(case.model(), case.fed())
    for mine, right in zip(found, case.expected, strict=True):
        right = np.asarray(right)
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"{mine.dtype} {mine.shape} instead of {right.dtype} {right.shape}"
        if not np.allclose(mine, right, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"{mine} instead of {right}"
    return ""


def test_random_nodes_of_old_versions(backend, known_ops):
    needs_own_op = {"LpPool", "GlobalLpPool", "MeanVarianceNormalization"} - known_ops
    wrong = []
    for seed in range(COUNT):
        case = random_case(seed)
        if case.op in needs_own_op:
            continue
        difference = explain_difference(backend, case)
        if difference:
            wrong.append(f"case {seed}: {case.op} in operator set {case.opset}, "
                         f"{case.attributes}: {difference}")
    assert not wrong, "\n".join(wrong[:5])


def test_a_network_of_operator_set_1_is_what_onnx_converts_it_to(backend):
    rng = np.random.default_rng(5)
    shapes = {"w": (4, 3, 3, 3), "scale": (4,), "shift": (4,), "mean": (4,), "m": (4, 6),
              "bias": (6,)}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights["variance"] = np.abs(rng.normal(size=4)).astype(np.float32) + 0.5
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale shift mean variance", "b", is_test=1,
             consumed_inputs=[0, 0, 0, 1, 1]),
        node("Relu", "b", "r", consumed_inputs=[0]),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "p p", "q"),
        node("GlobalAveragePool", "q", "g"),
        node("Reshape", "g", "f", shape=[0, -1, 4]),
        node("Sum", "f f", "s", consumed_inputs=[0, 0]),
        node("Reshape", "s", "t", shape=[-1, 4]),
        node("Gemm", "t m bias", "u", broadcast=1),
        node("Dropout", "u", "d", is_test=1),
        node("Softmax", "d", "y")]
    model = model_of(nodes, {"x": (2, 3, 8, 8), **{name: weights[name].shape for name in weights}},
                     {"y": (4, 6)}, weights, opset=1, ir_version=3, value_info={"t": (4, 4)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        newer = onnx.version_converter.convert_version(model, 13)
    x = rng.normal(size=(2, 3, 8, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(newer.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected, = session.run(None, {"x": x})
    found, = backend.run_model(model, [x])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ir_version", [1, 2])
def test_models_before_operator_sets_mean_the_first(tessera, tmp_path, ir_version):
    model = model_of(chain("Relu", "Tanh"), {"x": (2,)}, {"y": (2,)}, opset=1,
                     ir_version=ir_version)
    del model.opset_import[:]
    onnx.save(model, tmp_path / "old.onnx")
    description = tessera.load(tmp_path / "old.onnx").describe()
    assert description.opsets == {"": 1}
    assert [entry.version for entry in description.nodes] == [6, 6]
