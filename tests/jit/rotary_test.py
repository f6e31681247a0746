"""Rotary embeddings in all forms are groups of jit, equal to ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from rotary_models import FORMS

TOLERANCES = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-14}


@pytest.fixture(autouse=True)
def needs_jit(why_unusable):
    if why_unusable.get("jit", "unknown"):
        pytest.skip(f"jit: {why_unusable.get('jit', 'unknown')}")


def feeds_of(model):
    random = np.random.default_rng(7)
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = random.standard_normal(shape).astype(dtype)
    return feeds


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("threads", (1, 2))
def test_a_form_is_one_group_with_equal_results(tessera, name, threads):
    make, groups = FORMS[name]
    model = make()
    feeds = feeds_of(model)
    executor = tessera.load(model.SerializeToString()).bind(
        backends=["jit", "reference"], optimize=False, threads=threads)
    found, = executor.run(feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected, = session.run(None, feeds)
    tolerance = TOLERANCES[found.dtype.type]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    kernels = [step for step in executor.plan().steps if step.backend == "jit"]
    assert len(kernels) == groups
    others = {node.split("_")[0] for step in executor.plan().steps if step.backend != "jit"
              for node in step.nodes}
    assert others <= {"Transpose", "Reshape", "Unsqueeze", "y"}, "only views and borders are left"
