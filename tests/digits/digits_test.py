"""Every backend keeps the digits of results: of small ones, of long sums, behind large means.

Expected values are mathematics in float64, or exact fractions. Errors of functions are counted in
units in the last place of the result, errors of sums in units of the sum of magnitudes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from digits_models import op
from onnx import TensorProto

f32, f64 = np.float32, np.float64
RANDOM = np.random.default_rng(11)
erf = np.vectorize(math.erf, otypes=[f64])
erfc = np.vectorize(math.erfc, otypes=[f64])


def ulps(found, expected):
    """The largest error in units in the last place of float32; what is denormal counts as such."""
    found, expected = np.asarray(found, f64), np.asarray(expected, f64)
    assert found.shape == expected.shape
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    size = np.maximum(np.abs(expected), 2.0 ** -126)
    error = np.abs(found - expected) / np.ldexp(1.0, np.floor(np.log2(size)).astype(int) - 23)
    return float(np.nanmax(error))


# --- Functions -----------------------------------------------------------------------------------


def sigmoid(x):
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def expm1_below(x, alpha=1.0):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def gelu_by_tanh(x):
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))


SELU = float(f32(1.67326319217681884765625)), float(f32(1.05070102214813232421875))
TAIL = np.concatenate([-np.logspace(-30, -2, 57), np.linspace(-14, -0.01, 400)]).astype(f32)
SMALL = np.concatenate([s * np.logspace(-37, -1, 145) for s in (1, -1)]).astype(f32)
WIDE = np.concatenate([TAIL, -TAIL, SMALL, np.linspace(-80, -14, 200).astype(f32)])
POSITIVE = np.concatenate([np.logspace(-37, 38, 301), 1 + np.linspace(-1e-3, 1e-3, 201)]).astype(f32)
UNIT = np.concatenate([SMALL, np.linspace(-0.999, 0.999, 201).astype(f32)])

# Name -> attributes, inputs, mathematics, units in the last place.
FUNCTIONS = {
    "Softplus": ({}, WIDE, softplus, 6),
    "Mish": ({}, WIDE, lambda x: x * np.tanh(softplus(x)), 8),
    "Elu": ({}, WIDE, expm1_below, 6),
    "Elu alpha": ({"alpha": 0.5}, WIDE, lambda x: expm1_below(x, 0.5), 6),
    "Celu": ({}, WIDE, expm1_below, 6),
    "Selu": ({}, WIDE, lambda x: np.where(x < 0, SELU[0] * SELU[1] * np.expm1(np.minimum(x, 0)),
                                          SELU[1] * x), 6),
    "Gelu": ({}, np.concatenate([TAIL[TAIL > -12], SMALL]),
             lambda x: 0.5 * x * erfc(-x / math.sqrt(2)), 128),
    "Gelu tanh": ({"approximate": "tanh"}, np.concatenate([TAIL[TAIL > -9], SMALL]), gelu_by_tanh,
                  256),
    "Sigmoid": ({}, WIDE, sigmoid, 8),
    "Swish": ({}, WIDE, lambda x: x * sigmoid(x), 8),
    "Erf": ({}, UNIT, erf, 6),
    "Tanh": ({}, WIDE, np.tanh, 6),
    "Sinh": ({}, UNIT, np.sinh, 6),
    "Asinh": ({}, WIDE, np.arcsinh, 6),
    "Atanh": ({}, UNIT, np.arctanh, 6),
    "Atan": ({}, WIDE, np.arctan, 6),
    "Asin": ({}, UNIT, np.arcsin, 6),
    "Tan": ({}, UNIT, np.tan, 6),
    "Log": ({}, POSITIVE, np.log, 6),
    "Exp": ({}, np.linspace(-87, 88.7, 999).astype(f32), np.exp, 8),
    "Softsign": ({}, WIDE, lambda x: x / (1 + np.abs(x)), 6),
    "Reciprocal": ({}, POSITIVE[(POSITIVE > 1e-36) & (POSITIVE < 1e36)], lambda x: 1 / x, 2),
    "Sqrt": ({}, POSITIVE, np.sqrt, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_results_of_functions_keep_their_digits(run, name):
    attributes, x, function, bound = FUNCTIONS[name]
    found = run([op(name.split()[0], **attributes)], {"x": x})
    expected = function(x.astype(f64))
    assert ulps(found, expected) <= bound
    assert np.array_equal(np.signbit(found), np.signbit(expected.astype(f32)))


@pytest.mark.parametrize("name", ("Softplus", "Mish", "Elu", "Celu", "Selu", "Gelu", "Gelu tanh"))
@pytest.mark.parametrize("producer", ("Conv", "ConvTranspose", "MatMul", "Gemm", "Add", "Mul"))
def test_functions_behind_other_ops_keep_their_digits(run, name, producer):
    attributes, x, function, bound = FUNCTIONS[name]
    x = x[: x.size // 16 * 16]
    one = {"Conv": np.ones((1, 1, 1, 1), f32), "ConvTranspose": np.ones((1, 1, 1, 1), f32),
           "MatMul": np.ones((1, 1), f32), "Gemm": np.ones((1, 1), f32),
           "Add": np.zeros((1, 16), f32), "Mul": np.ones((1, 16), f32)}[producer]
    shape = {"Conv": (1, 1, -1, 16), "ConvTranspose": (1, 1, -1, 16), "MatMul": (-1, 1),
             "Gemm": (-1, 1)}.get(producer, (-1, 16))
    x = x.reshape(shape)
    nodes = [op(producer, ("x", "one"), "p"), op(name.split()[0], ("p",), **attributes)]
    found = run(nodes, {"x": x}, {"one": one})
    assert ulps(found, function(x.astype(f64))) <= bound


DECOMPOSED = {
    "Mish": ([op("Softplus", output="a"), op("Tanh", ("a",), "b"), op("Mul", ("x", "b"))],
             lambda x: x * np.tanh(softplus(x)), 10),
    "Swish": ([op("Sigmoid", output="a"), op("Mul", ("x", "a"))], lambda x: x * sigmoid(x), 10),
    "Log of Softplus": ([op("Softplus", output="a"), op("Log", ("a",))],
                        lambda x: np.log(softplus(x)), 1e5),
    "Elu, Neg": ([op("Elu", output="a"), op("Neg", ("a",))], lambda x: -expm1_below(x), 6),
    "Softplus, Mul": ([op("Softplus", output="a"), op("Mul", ("a", "two"))],
                      lambda x: 2 * softplus(x), 8),
}


@pytest.mark.parametrize("name", DECOMPOSED)
def test_functions_of_several_nodes_keep_their_digits(run, name):
    nodes, function, bound = DECOMPOSED[name]
    found = run(nodes, {"x": TAIL}, {"two": f32(2)})
    assert ulps(found, function(TAIL.astype(f64))) <= bound


# --- Sums ----------------------------------------------------------------------------------------

LONG = (1 << 20) + 7
SUMS = {
    "ReduceSum": lambda x, axes: x.sum(axes),
    "ReduceMean": lambda x, axes: x.mean(axes),
    "ReduceL1": lambda x, axes: np.abs(x).sum(axes),
    "ReduceL2": lambda x, axes: np.sqrt((x * x).sum(axes)),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes),
    "ReduceLogSum": lambda x, axes: np.log(x.sum(axes)),
    "ReduceLogSumExp": lambda x, axes: np.log(np.exp(x).sum(axes)),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("shape, axes", [
    ((LONG,), (0,)), ((2, LONG), (1,)), ((LONG, 3), (0,)), ((2, 3, 1024, 1031), (2, 3)),
    ((2, LONG // 5, 5), (1,))], ids=str)
def test_long_sums_do_not_stall(run, name, shape, axes):
    x = RANDOM.uniform(0, 1, shape).astype(f32)
    found = run([op(name, ("x", "axes"), keepdims=0)], {"x": x},
                {"axes": np.array(axes, np.int64)})
    assert ulps(found, SUMS[name](x.astype(f64), axes)) <= 8


CHAINS = [((4_000, 3), (0,)), ((23, 26, 2), (0, 1)), ((2, 5_000, 5), (1,)), ((3_000, 4, 3), (0, 2)),
          ((40, 3, 50, 7), (0, 2)), ((600, 64), (0,)), ((8, 1 << 20), (1,))]


@pytest.mark.parametrize("name", ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare"))
@pytest.mark.parametrize("shape, axes", CHAINS, ids=str)
@pytest.mark.parametrize("is_fused", [False, True])
def test_sums_of_many_elements_in_a_lane_keep_their_digits(run, name, shape, axes, is_fused):
    """One lane of a vector may meet all elements, or very many, one after the other."""
    x = RANDOM.uniform(0, 1, shape).astype(f32)
    nodes = [op(name, ("a" if is_fused else "x", "axes"), "s" if is_fused else "y", keepdims=0)]
    if is_fused:
        nodes = [op("Abs", ("x",), "a"), *nodes, op("Abs", ("s",))]
    found = run(nodes, {"x": x}, {"axes": np.array(axes, np.int64)})
    assert ulps(found, SUMS[name](x.astype(f64), axes)) <= 4


EXACT_SUMS = {
    "ReduceSum": lambda x: math.fsum(x), "ReduceMean": lambda x: math.fsum(x) / len(x),
    "ReduceL1": lambda x: math.fsum(x), "ReduceSumSquare": lambda x: math.fsum(x * x)}


@pytest.mark.parametrize("name", EXACT_SUMS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_fused", [False, True])
def test_long_sums_of_float64_keep_their_digits(run, name, axis, is_fused):
    """There is no wider type to add in."""
    x = RANDOM.uniform(0, 1, (3, 40_001) if axis else (40_001, 3))
    nodes = [op(name, ("a" if is_fused else "x", "axes"), "s" if is_fused else "y", keepdims=0)]
    if is_fused:
        nodes = [op("Abs", ("x",), "a"), *nodes, op("Abs", ("s",))]
    found = run(nodes, {"x": x}, {"axes": np.array([axis])}, TensorProto.DOUBLE)
    expected = [EXACT_SUMS[name](row) for row in (x if axis else x.T)]
    assert np.max(np.abs(found - expected) / np.spacing(expected)) <= 6


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_fused", [False, True])
def test_sums_of_float64_keep_what_is_not_finite(run, axis, is_fused):
    x = np.ones((50, 5))
    x[7, 0], x[8, 1], x[9, 2], x[9, 3], x[40, 3] = np.inf, -np.inf, np.nan, np.inf, -np.inf
    x[3:5, 4] = 1e308
    nodes = [op("ReduceSum", ("x", "axes"), "s" if is_fused else "y", keepdims=0)]
    if is_fused:
        nodes.append(op("Neg", ("s",)))
    found = run(nodes, {"x": np.ascontiguousarray(x.T) if axis else x}, {"axes": np.array([axis])},
                TensorProto.DOUBLE)
    expected = np.array([np.inf, -np.inf, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(found, -expected if is_fused else expected)


POOLS = {
    "GlobalAveragePool": {},
    "AveragePool": {"kernel_shape": [320, 331]},
    "AveragePool of rows": {"kernel_shape": [1, 331]},
    "AveragePool of columns": {"kernel_shape": [320, 1]},
    "AveragePool of many": {"kernel_shape": [100, 90], "strides": [50, 60]},
    "AveragePool with pads": {"kernel_shape": [33, 35], "strides": [64, 64], "pads": [3, 4, 5, 6]},
}


def pooled(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0)):
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel_shape, (2, 3))
    return np.nanmean(windows[:, :, ::strides[0], ::strides[1]], (4, 5))


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("channels", (1, 16, 3))
def test_wide_windows_are_averaged_exactly(run, name, channels):
    x = RANDOM.uniform(0, 1, (1, channels, 320, 331)).astype(f32)
    attributes = POOLS[name]
    found = run([op(name.split()[0], **attributes)], {"x": x})
    wide = x.astype(f64)
    expected = pooled(wide, **attributes) if attributes else wide.mean((2, 3), keepdims=True)
    assert ulps(found, expected) <= 8


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("shape, axis", [((LONG,), 0), ((3, LONG), 1), ((LONG, 2), 0)])
def test_running_sums_do_not_stall(run, shape, axis, reverse):
    x = RANDOM.uniform(0, 1, shape).astype(f32)
    found = run([op("CumSum", ("x", "axis"), reverse=reverse)], {"x": x}, {"axis": np.int64(axis)})
    wide = np.flip(x.astype(f64), axis) if reverse else x.astype(f64)
    expected = np.cumsum(wide, axis)
    assert ulps(found, np.flip(expected, axis) if reverse else expected) <= 4


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("shape, axis", [((70_000,), 0), ((3, 70_000), 1), ((70_000, 2), 0)])
def test_running_sums_of_float64_keep_their_digits(run, shape, axis, reverse):
    x = RANDOM.uniform(0, 1, shape)
    found = run([op("CumSum", ("x", "axis"), reverse=reverse)], {"x": x}, {"axis": np.int64(axis)},
                TensorProto.DOUBLE)
    wide = np.flip(x, axis).astype(np.longdouble) if reverse else x.astype(np.longdouble)
    expected = np.flip(np.cumsum(wide, axis), axis) if reverse else np.cumsum(wide, axis)
    assert np.max(np.abs(found - expected) / np.spacing(expected.astype(f64))) <= 2


@pytest.mark.parametrize("name", ("Neg", "Sin", "Tan", "Asin", "Atan", "Sinh", "Asinh", "Tanh", "Selu",
                                  "Gelu", "Erf", "Softsign", "Sqrt"))
def test_zeros_keep_their_signs(run, name):
    x = np.array([0.0, -0.0] * 20, f32)
    found = run([op(name)], {"x": x}, opset=20)
    assert not found.any()
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x) != (name == "Neg"))


@pytest.mark.parametrize("begin, end", ((-13, -3), (-3, -1.5), (-1.5, -1), (-1, -0.75), (-0.75, 0), (0, 6)))
def test_gelu_keeps_its_digits_everywhere(run, begin, end):
    x = np.linspace(begin, end, 50_001).astype(f32)
    wide = x.astype(f64)
    expected = wide * erfc(-wide / math.sqrt(2)) / 2
    # Its input is rounded, which the tail multiplies by x^2.
    moved = [y * erfc(-y / math.sqrt(2)) / 2 for y in (wide * (1 + 2.0 ** -22), wide * (1 - 2.0 ** -22))]
    of_input = np.maximum(*(np.abs(one - expected) for one in moved))
    found = run([op("Gelu")], {"x": x}, opset=20).astype(f64)
    unit = np.ldexp(1.0, np.floor(np.log2(np.maximum(np.abs(expected), 2.0 ** -126))).astype(int) - 23)
    # The bound is 4 units; native has 4.4 in places between -0.9 and -0.75.
    assert np.all(np.abs(found - expected) <= 4.5 * unit + of_input)


@pytest.mark.parametrize("length", (4096, 1 << 17, LONG))
def test_products_with_many_terms_are_exact(run, length):
    a = RANDOM.uniform(0, 1, (3, length)).astype(f32)
    b = RANDOM.uniform(0, 1, (length, 5)).astype(f32)
    found = run([op("MatMul", ("x", "b"))], {"x": a}, {"b": b})
    assert ulps(found, a.astype(f64) @ b.astype(f64)) <= 32


def test_sums_of_many_inputs_are_exact(run):
    inputs = {f"x{index}": RANDOM.uniform(0, 1, 999).astype(f32) for index in range(100)}
    total = sum(value.astype(f64) for value in inputs.values())
    assert ulps(run([op("Sum", inputs)], inputs), total) <= 32
    assert ulps(run([op("Mean", inputs)], inputs), total / 100) <= 32


# --- Normalizations ------------------------------------------------------------------------------

NORMALIZATIONS = {
    "LayerNormalization": op("LayerNormalization", ("x", "row"), axis=-1),
    "LayerNormalization with shift": op("LayerNormalization", ("x", "row", "zeros"), axis=-1),
    "InstanceNormalization": op("InstanceNormalization", ("x", "scale", "shift")),
    "GroupNormalization": op("GroupNormalization", ("x", "scale", "shift"), num_groups=2),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
@pytest.mark.parametrize("mean, spread", [(0, 1), (100, 1), (1e4, 1), (1e7, 4), (-3e5, 0.5)])
@pytest.mark.parametrize("length", (96, 5000, 70001))
def test_normalizations_keep_digits_behind_a_large_mean(run, name, mean, spread, length):
    x = (mean + RANDOM.uniform(-spread, spread, (1, 2, length))).astype(f32)
    node = NORMALIZATIONS[name]
    constants = {"row": np.ones(length, f32), "zeros": np.zeros(length, f32),
                 "scale": np.ones(2, f32), "shift": np.zeros(2, f32)}
    found = run([node], {"x": x}, {key: constants[key] for key in node[1] if key != "x"})
    wide = x.astype(f64)
    centred = wide - wide.mean(-1, keepdims=True)
    deviation = np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    # A unit in the last place of the input cannot be seen in the output of most libraries.
    bound = 2.0 ** -22 * (abs(mean) + 8 * spread) / float(deviation.min())
    assert np.abs(found - centred / deviation).max() <= bound


# --- Division and powers -------------------------------------------------------------------------

DIVIDENDS = np.arange(1, 3073, dtype=f32)
IDENTITY = np.ones((1, 1), f32)


@pytest.mark.parametrize("divisor", (0.3, 3, 49, 7, 10, 0.1, 1e-3))
@pytest.mark.parametrize("producer", ("", "MatMul", "Conv", "Gemm", "Mul", "Relu"))
def test_quotients_of_constants_are_rounded_once(run, divisor, producer):
    shape = {"Conv": (1, 1, 48, 64)}.get(producer, (3072, 1))
    x = DIVIDENDS.reshape(shape)
    one = np.ones((1, 1, 1, 1), f32) if producer == "Conv" else IDENTITY
    nodes = [op(producer, ("x",) if producer == "Relu" else ("x", "one"), "p")] if producer else []
    source = "p" if producer else "x"
    constants = {"one": one, "c": f32(divisor)}
    found = run([*nodes, op("Div", (source, "c"))], {"x": x}, constants)
    assert np.array_equal(found, x / f32(divisor))
    floors = run([*nodes, op("Div", (source, "c"), "q"), op("Floor", ("q",))], {"x": x}, constants)
    assert np.array_equal(floors, np.floor(x / f32(divisor)))
    found = run([*nodes, op("Div", ("c", source))], {"x": x}, constants)
    assert np.array_equal(found, f32(divisor) / x)


@pytest.mark.parametrize("shape", [(1, 48), (64, 1), (1, 1), (64, 48)], ids=str)
def test_quotients_of_tensors_are_rounded_once(run, shape):
    x = RANDOM.integers(1, 1000, (64, 48)).astype(f32)
    other = RANDOM.integers(1, 1000, shape).astype(f32)
    assert np.array_equal(run([op("Div", ("x", "c"))], {"x": x}, {"c": other}), x / other)
    assert np.array_equal(run([op("Div", ("c", "x"))], {"x": x}, {"c": other}), other / x)
    both = {"x": x, "c": other}
    assert np.array_equal(run([op("Div", ("c", "x"))], both), other / x)
    relu = [op("Relu", output="p"), op("Div", ("c", "p"), "q"), op("Relu", ("q",))]
    assert np.array_equal(run(relu, both), other / x)


BASES = np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.25, np.inf, -np.inf, np.nan], f32)
EXPONENTS = [f32(value) for value in (
    0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, 0.25, 5, 16777216, 33554434, np.inf, -np.inf, np.nan)]
EXPONENTS += [np.int64(value) for value in (
    2, 3, -1, 16777215, 16777217, -16777217, 33554433, (1 << 40) + 1, (1 << 53) - 1)]
EXPONENTS += [f64(16777217), f64(0.5), f64(0.1), np.int32(16777219), np.int32(-16777219)]


def power(base, exponent):
    """pow() of C99; Python raises errors where that is infinite or NaN."""
    is_odd = math.isfinite(exponent) and exponent % 2 == 1
    sign = math.copysign(1, base) if is_odd else 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return sign * math.inf
    except ValueError:
        return sign * math.inf if base == 0 else math.nan


@pytest.mark.parametrize("exponent", EXPONENTS, ids=lambda value: f"{value.dtype}-{value}")
@pytest.mark.parametrize("is_constant", (True, False))
def test_powers_are_those_of_c(run, exponent, is_constant):
    with np.errstate(all="ignore"):
        expected = np.array([power(float(base), float(exponent)) for base in BASES]).astype(f32)
    inputs = {"x": BASES} if is_constant else {"x": BASES, "e": np.full(BASES.shape, exponent)}
    found = run([op("Pow", ("x", "e"))], inputs, {"e": exponent} if is_constant else {})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known])


# --- Conversions ---------------------------------------------------------------------------------


def bits_of(fraction, digits, lowest):
    """The number in a binary format with `digits` digits and 2^lowest as smallest number, rounded
    to nearest, ties to even, as a fraction."""
    if fraction == 0:
        return fraction
    size = abs(fraction)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    return round(fraction / unit) * unit


def near_ties(digits, lowest):
    """Numbers of float64 beside the middles between numbers of the format, and in them."""
    result = []
    for exponent in range(-12, 15, 3):
        for step in (0, 1, 2, 5, 7):
            middle = math.ldexp((1 << (digits - 1)) + step + 0.5, exponent - digits + 1)
            result += [middle, math.nextafter(middle, math.inf), math.nextafter(middle, 0),
                       middle * (1 + 2.0 ** -30), middle * (1 - 2.0 ** -30)]
    if lowest > -126:  # denormals of float32 may be flushed
        smallest = math.ldexp(1.0, lowest)
        result += [smallest * share for share in (0.5, 0.5000000001, 1.5, 1.49999999999, 2.5)]
    return np.array([sign * value for value in result for sign in (1, -1)])


def near_integer_ties(digits, kind):
    limits = np.iinfo(kind)
    result = [0, 1, limits.max, limits.min]
    for bits in range(digits + 1, limits.bits):
        middle = (1 << bits) + (1 << (bits - digits))
        result += [value for value in (middle - 1, middle, middle + 1, middle * 3 // 2 + 1)
                   if value <= limits.max]
    if limits.min < 0:
        result += [-value for value in result if value > limits.min]
    return np.array(result, kind)


FORMATS = {"float16": (TensorProto.FLOAT16, 11, -24), "bfloat16": (TensorProto.BFLOAT16, 8, -133)}


def as_float(values):
    """Results of either format, as float64."""
    if values.dtype == np.float16:
        return values.astype(f64)
    return (values.view(np.uint16).astype(np.uint32) << 16).view(f32).astype(f64)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("source", ("float64", "int64", "uint64", "int32", "uint32", "float32"))
@pytest.mark.parametrize("kind", ("Cast", "CastLike", "Cast of a constant", "Cast between others"))
def test_conversions_round_once(run, to, source, kind):
    number, digits, lowest = FORMATS[to]
    source = np.dtype(source)
    x = (near_ties(digits, lowest).astype(source) if source.kind == "f"
         else near_integer_ties(digits, source))
    if kind == "Cast":
        found = run([op("Cast", to=number)], {"x": x}, output=number)
    elif kind == "CastLike":
        nodes = [op("Cast", ("one",), "like", to=number), op("CastLike", ("x", "like"))]
        found = run(nodes, {"x": x}, {"one": f32(1)}, output=number)
    elif kind == "Cast of a constant":
        unused = {"x": np.zeros(1, f32)}
        found = run([op("Cast", ("c",), "y", to=number)], unused, {"c": x}, output=number)
    else:
        nodes = [op("Mul", ("x", "one"), "m"), op("Cast", ("m",), "c", to=number),
                 op("Abs", ("c",))]
        found = run(nodes, {"x": x}, {"one": np.ones(1, source)}, output=number)
    exact = [bits_of(Fraction(float(value) if source.kind == "f" else int(value)), digits, lowest)
             for value in x]
    limit = 65504 if to == "float16" else 2.0 ** 127 * (2 - 2.0 ** -7)
    expected = np.array([float(value) if abs(value) <= limit else math.copysign(math.inf, value)
                         for value in exact])
    if kind == "Cast between others":
        expected = np.abs(expected)
    np.testing.assert_array_equal(as_float(found), expected)


# --- Resize --------------------------------------------------------------------------------------


def position(mode, source, target, index):
    if mode == "align_corners":
        return Fraction(index * (source - 1), target - 1) if target > 1 else Fraction(0)
    if mode == "asymmetric":
        return Fraction(index * source, target)
    if mode == "pytorch_half_pixel" and target == 1:
        return Fraction(0)
    return Fraction((2 * index + 1) * source, 2 * target) - Fraction(1, 2)


ROUND = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda value: math.ceil(value - Fraction(1, 2)),
    "round_prefer_ceil": lambda value: math.floor(value + Fraction(1, 2)),
}
MODES = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric")
PAIRS = [(49, 7), (26, 64), (80, 96), (7, 49), (96, 80), (1, 9), (9, 1), (10, 3), (100, 99), (99, 70),
         (58, 29), (29, 58), (63, 21), (41, 82), (33, 77), (64, 26), (5, 5), (97, 89)]


@pytest.mark.parametrize("rounding", ROUND)
@pytest.mark.parametrize("mode", MODES)
def test_positions_of_sizes_are_rational(run, mode, rounding):
    for source, target in PAIRS:
        x = np.arange(source, dtype=f32).reshape(1, 1, 1, source)
        found = run([op("Resize", ("x", "", "", "sizes"), mode="nearest", nearest_mode=rounding,
                        coordinate_transformation_mode=mode)],
                    {"x": x}, {"sizes": np.array([1, 1, 1, target], np.int64)})
        expected = [min(max(ROUND[rounding](position(mode, source, target, index)), 0), source - 1)
                    for index in range(target)]
        assert found.reshape(-1).tolist() == expected, (source, target)


@pytest.mark.parametrize("policy", ("not_larger", "not_smaller"))
def test_sizes_that_keep_the_aspect_ratio_are_rational(run, policy):
    for height, width, wanted in ((49, 21, (7, 9)), (30, 45, (20, 20)), (7, 9, (5, 3)),
                                  (100, 26, (64, 64)), (5, 10, (1, 1)), (6, 4, (3, 1))):
        ratios = Fraction(wanted[0], height), Fraction(wanted[1], width)
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = [math.floor(ratio * size + Fraction(1, 2)) for size in (height, width)]
        x = np.arange(height * width, dtype=f32).reshape(1, 1, height, width)
        found = run([op("Resize", ("x", "", "", "sizes"), mode="nearest", nearest_mode="floor",
                        axes=[2, 3], keep_aspect_ratio_policy=policy,
                        coordinate_transformation_mode="asymmetric")],
                    {"x": x}, {"sizes": np.array(wanted, np.int64)})
        rows, columns = ([min(math.floor(index / ratio), size - 1) for index in range(count)]
                         for count, size in zip(sizes, (height, width)))
        assert found.shape == (1, 1, *sizes)
        assert np.array_equal(found[0, 0], x[0, 0][np.ix_(rows, columns)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("antialias", (0, 1))
def test_positions_between_pixels_are_exact(run, mode, antialias):
    """The result for a ramp is the position itself, as far as the pixels around it exist."""
    for source, target in ((49, 64), (26, 96), (1000, 1333), (80, 100)):
        x = np.arange(source, dtype=f32).reshape(1, 1, 1, source)
        found = run([op("Resize", ("x", "", "", "sizes"), mode="linear", antialias=antialias,
                        coordinate_transformation_mode=mode)],
                    {"x": x}, {"sizes": np.array([1, 1, 1, target], np.int64)})
        expected = np.array([float(min(max(position(mode, source, target, index), 0), source - 1))
                             for index in range(target)])
        np.testing.assert_allclose(found.reshape(-1), expected, rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("rounding", ROUND)
def test_symmetric_positions_of_scales_are_exact(run, rounding):
    for source, scale in ((5, 0.7), (5, 1.1), (7, 4 / 3), (13, 5 / 3), (13, 1 / 3), (7, 1.6), (9, 3.4), (16, 0.3)):
        scales = np.array([1, 1, 1, scale], f32)
        target = int(f32(source) * scales[3])
        x = np.arange(source, dtype=f32).reshape(1, 1, 1, source)
        found = run([op("Resize", ("x", "", "scales"), mode="nearest", nearest_mode=rounding,
                        coordinate_transformation_mode="half_pixel_symmetric")],
                    {"x": x}, {"scales": scales})
        positions = [Fraction(source - 1, 2) + Fraction(2 * index + 1 - target, 2) / Fraction(float(scales[3]))
                     for index in range(target)]
        assert found.reshape(-1).tolist() == [min(max(ROUND[rounding](exact), 0), source - 1)
                                              for exact in positions], (source, scale)
