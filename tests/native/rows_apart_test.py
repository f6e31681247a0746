"""Rows of a product do not depend on each other."""

import numpy as np
import pytest
from small_models import model_bytes, node

ROWS, SIZE = 128, 384


def product(kind, weights):
    """y = x by weights, of rows or, for a Conv, of pixels."""
    if kind == "Conv":
        weights, shape = weights.T.reshape(SIZE, SIZE, 1, 1), [1, SIZE, 8, ROWS // 8]
    else:
        shape = [ROWS, SIZE]
    return shape, model_bytes([node(kind, "x w")], {"x": shape}, "y",
                              {"w": np.ascontiguousarray(weights)})


@pytest.mark.parametrize("optimize", ["off", "on"])
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Conv"])
def test_a_row_of_large_numbers_changes_no_other(tessera, kind, optimize):
    random = np.random.default_rng(3)
    weights = (random.standard_normal((SIZE, SIZE)) / 20).astype(np.float32)
    rows = random.standard_normal((ROWS, SIZE)).astype(np.float32)
    rows[5] *= 1e6
    shape, model = product(kind, weights)
    x = rows.T.reshape(shape) if kind == "Conv" else rows
    bound = tessera.load(model).bind(optimize=optimize == "on")
    y = bound.run({"x": np.ascontiguousarray(x)})[0]
    found = y.reshape(SIZE, ROWS).T if kind == "Conv" else y
    exact = rows.astype(np.float64) @ weights.astype(np.float64)
    others = np.arange(ROWS) != 5
    assert np.abs(found - exact)[others].max() < 1e-4


@pytest.mark.parametrize("kind", ["MatMul", "Conv"])
def test_strassens_algorithm_needs_a_lower_precision(tessera, needs_native, kind):
    _, model = product(kind, np.ones((SIZE, SIZE), np.float32))
    pins = [tessera.Pin("*", "native", "strassen")]
    tessera.load(model).bind(optimize=False, pins=pins, precision="bfloat16")
    with pytest.raises(tessera.Error, match="strassen"):
        tessera.load(model).bind(optimize=False, pins=pins)
