"""Sums of equal elements keep their digits on every backend: each addition rounds in the same
direction, which is the worst case."""

import numpy as np
import pytest
from digits_models import op

f32, f64 = np.float32, np.float64
RANDOM = np.random.default_rng(12)
SUMS = {
    "ReduceSum": lambda x, axes: x.sum(axes),
    "ReduceMean": lambda x, axes: x.mean(axes),
    "ReduceL1": lambda x, axes: np.abs(x).sum(axes),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes),
}
# Equal along all axes of the sum, different along the others.
EQUAL = [((1, 24, 31), (2,)), ((24, 63), (1,)), ((63, 24), (0,)), ((24, 196), (1,)), ((24, 1_024), (1,)),
         ((1_024, 24), (0,)), ((24, 257, 1, 1), (1,)), ((24, 100, 2, 2), (1, 2, 3)), ((36,), (0,)),
         ((4_095,), (0,)), ((6, 40, 4, 50), (1, 3)), ((4, 1 << 18), (1,))]


def of_equal_elements(shape, axes):
    kept = [1 if axis in axes else length for axis, length in enumerate(shape)]
    return np.broadcast_to(RANDOM.uniform(0.5, 1, kept).astype(f32), shape).copy()


def is_within_bound_of_sums(found, expected):
    """1 ulp + 4 epsilon of the sum of magnitudes (docs/accuracy.md)."""
    return np.all(np.abs(found - expected) <= np.spacing(expected.astype(f32)) + 2.0**-21 * expected)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("shape, axes", EQUAL, ids=str)
@pytest.mark.parametrize("is_fused", [False, True])
def test_sums_of_equal_elements_are_within_their_bound(run, name, shape, axes, is_fused):
    nodes = [op(name, ("a" if is_fused else "x", "axes"), "s" if is_fused else "y", keepdims=0)]
    if is_fused:
        nodes = [op("Abs", ("x",), "a"), *nodes, op("Abs", ("s",))]
    for _ in range(4):
        x = of_equal_elements(shape, axes)
        found = run(nodes, {"x": x}, {"axes": np.array(axes, np.int64)})
        expected = SUMS[name](x.astype(f64), axes)
        assert is_within_bound_of_sums(found, expected)
        if name in ("ReduceL1", "ReduceSumSquare"):  # the bound of these
            assert np.all(np.abs(found - expected) <= 5 * np.spacing(expected.astype(f32)))


# The numbers with the largest errors among thousands.
@pytest.mark.parametrize("number", (0.96626925468, 0.67551499605, 0.68292117118, 0.94960373640, 0.71740561723,
                                    0.73861926794, 0.79676026105, 0.66764038801, 0.66811341047))
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_the_worst_numbers_are_within_their_bound(run, name, number):
    for shape, axes in (((24, 17), (1,)), ((17, 24), (0,)), ((24, 25), (1,)), ((24, 169), (1,)), ((24, 200), (1,))):
        x = np.full(shape, number, f32)
        found = run([op(name, ("x", "axes"), keepdims=0)], {"x": x}, {"axes": np.array(axes, np.int64)})
        expected = SUMS[name](x.astype(f64), axes)
        assert is_within_bound_of_sums(found, expected), shape
        if name in ("ReduceL1", "ReduceSumSquare"):
            assert np.all(np.abs(found - expected) <= 5 * np.spacing(expected.astype(f32))), shape


@pytest.mark.parametrize("number", (0.94910001755, 0.98855924606, 0.79676026105))
@pytest.mark.parametrize("kernel", ((15, 15), (14, 15), (15, 16), (13, 13), (12, 12)), ids=str)
def test_averages_of_the_worst_numbers_are_within_their_bound(run, kernel, number):
    x = np.full((1, 8, *kernel), number, f32)
    found = run([op("AveragePool", kernel_shape=list(kernel))], {"x": x})
    assert is_within_bound_of_sums(found, np.broadcast_to(x[:, :, :1, :1], found.shape).astype(f64))


@pytest.mark.parametrize("side", (5, 7, 14, 28, 112))
@pytest.mark.parametrize("name", ("GlobalAveragePool", "AveragePool"))
def test_averages_of_equal_elements_are_within_their_bound(run, name, side):
    for _ in range(4):
        x = of_equal_elements((2, 24, side + 3, side + 3), (2, 3))
        attributes = {"kernel_shape": [side, side]} if name == "AveragePool" else {}
        found = run([op(name, **attributes)], {"x": x})
        assert is_within_bound_of_sums(found, np.broadcast_to(x[:, :, :1, :1], found.shape).astype(f64))
