"""Rotary embeddings in all forms are groups of backends that compile, equal to ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from rotary_models import FORMS

TOLERANCES = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-14}


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
@pytest.mark.parametrize("compiler, threads", (("jit", 1), ("jit", 2), ("opencl", 1)))
def test_a_form_is_one_group_with_equal_results(tessera, need_backend, name, compiler, threads):
    need_backend(compiler)
    make, groups = FORMS[name]
    model = make()
    feeds = feeds_of(model)
    executor = tessera.load(model.SerializeToString()).bind(
        backends=[compiler, "reference"], optimize=False, threads=threads)
    found, = executor.run(feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected, = session.run(None, feeds)
    tolerance = TOLERANCES[found.dtype.type]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    steps = [{node.split("_")[0] for node in step.nodes} for step in executor.plan().steps]
    borders = {"Transpose", "Reshape", "Unsqueeze", "y"}
    assert len([ops for ops in steps if not ops <= borders]) == groups, steps
