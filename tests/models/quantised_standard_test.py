"""ONNX's quantised operators, and those of com.microsoft that have the same names, on random sizes,
types, versions and attributes, beside their definitions and ONNX Runtime."""

import numpy as np
import pytest
from quantised_cases import BYTES, Case, Draw, compare, run_ort
from quantised_definitions import dynamic_range, quantised

CASES_OF_OP = 12


def centred(integers, zeros, axis=None):
    """int64 numbers minus their zero points: one, or one for each index of an axis."""
    if zeros is None:
        return integers.astype(np.int64)
    zeros = zeros.astype(np.int64)
    if axis is not None and zeros.ndim == 1 and zeros.size > 1:
        zeros = along(zeros, integers.ndim, axis)
    return integers.astype(np.int64) - zeros


def is_exact_pair(left, right):
    """ONNX Runtime saturates sums of uint8 times int8 on some processors, and has no kernels for
    int8 times uint8."""
    return left.dtype == right.dtype


def along(values, rank, axis):
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


def convolution(x, w, *, strides, dilations, pads, group):
    """Sums of int64 numbers, tap by tap."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    kernel = w.shape[2:]
    output = [(x.shape[2 + axis] - (kernel[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
              for axis in range(rank)]
    sums = np.zeros((x.shape[0], w.shape[0], *output), np.int64)
    of_group, inputs = w.shape[0] // group, w.shape[1]
    for tap in np.ndindex(*kernel):
        places = tuple(slice(tap[axis] * dilations[axis],
                             tap[axis] * dilations[axis] + (output[axis] - 1) * strides[axis] + 1,
                             strides[axis]) for axis in range(rank))
        for which in range(group):
            part = x[(slice(None), slice(which * inputs, (which + 1) * inputs), *places)]
            weights = w[(slice(which * of_group, (which + 1) * of_group), slice(None), *tap)]
            sums[:, which * of_group:(which + 1) * of_group] += np.einsum(
                "nc...,mc->nm...", part, weights)
    return sums


def draw_convolution(draw):
    rank, group = draw.one_of(1, 2, 2, 3), draw.size(1, 3)
    kernel = [draw.size(1, 3) for _ in range(rank)]
    attributes = {"strides": [draw.size(1, 2) for _ in range(rank)],
                  "dilations": [draw.size(1, 2) for _ in range(rank)],
                  "pads": [draw.size(0, 2) for _ in range(2 * rank)], "group": group}
    spatial = [(size - 1) * 2 + draw.size(1, 5) for size in kernel]
    inputs, outputs = draw.size(1, 3), draw.size(1, 3) * group
    x = draw.integers(draw.one_of(*BYTES), (draw.size(1, 2), inputs * group, *spatial))
    w = draw.integers(draw.one_of(*BYTES), (outputs, inputs, *kernel))
    return x, w, attributes


def conv_integer(draw):
    x, w, attributes = draw_convolution(draw)
    by_channel = draw.one_of((), (len(w),))
    zeros = draw.zero(x.dtype.type), draw.one_of(None, draw.integers(w.dtype, by_channel))
    sums = convolution(centred(x, zeros[0]), centred(w, zeros[1], 0), **attributes)
    is_known = x.dtype == np.uint8 and (zeros[1] is None or by_channel == ())
    return Case("ConvInteger", [x, w, *zeros], sums.astype(np.int32), is_known, domain="",
                **attributes)


def quantised_conv(domain):
    def draw(draw):
        x, w, attributes = draw_convolution(draw)
        by_channel = draw.one_of((), (len(w),))
        w_scale = draw.scale(shape=by_channel)
        w_zero = draw.integers(w.dtype, by_channel)
        bias = draw.one_of(None, draw.random.integers(-9999, 9999, len(w)).astype(np.int32))
        x_zero, y_zero = draw.integers(x.dtype), draw.integers(x.dtype)
        x_scale, y_scale = draw.scale(), draw.scale(0.05, 5)
        sums = convolution(centred(x, x_zero), centred(w, w_zero, 0), **attributes)
        if bias is not None:
            sums = sums + along(bias, x.ndim, 1)
        factors = x_scale * (along(w_scale, x.ndim, 1) if w_scale.size > 1 else w_scale) / y_scale
        expected = quantised(sums * factors.astype(np.float64), np.float32(1), y_zero, x.dtype)
        # ONNX Runtime has one zero point for all channels, and not all pairs of types.
        is_known = (by_channel == () or not w_zero.any()) and is_exact_pair(x, w)
        if domain and draw.one_of(True, False):
            x, expected = np.moveaxis(x, 1, -1), np.moveaxis(expected, 1, -1)
            attributes["channels_last"] = 1
        inputs = [np.ascontiguousarray(x), x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero,
                  bias]
        return Case("QLinearConv", inputs, np.ascontiguousarray(expected), is_known, domain=domain,
                    **attributes)
    return draw


def draw_product(draw):
    batch = draw.one_of((), (draw.size(),), (2, draw.size()))
    rows, columns, depth = draw.size(1, 6), draw.size(1, 9), draw.one_of(draw.size(1, 40), 700)
    a = draw.integers(draw.one_of(*BYTES), (*batch, rows, depth))
    b = draw.integers(draw.one_of(*BYTES), (*draw.one_of((), batch), depth, columns))
    return a, b


def mat_mul_integer(draw):
    a, b = draw_product(draw)
    by_row, by_column = draw.one_of((), (a.shape[-2],)), draw.one_of((), (b.shape[-1],))
    zeros = (draw.one_of(None, draw.integers(a.dtype, by_row)),
             draw.one_of(None, draw.integers(b.dtype, by_column)))
    sums = centred(a, zeros[0], -2) @ centred(b, zeros[1], -1)
    # ONNX Runtime refuses zero points by row, and by column of several matrices.
    is_known = by_row == () and (by_column == () or b.ndim == 2) and is_exact_pair(a, b)
    return Case("MatMulInteger", [a, b, *zeros], sums.astype(np.int32), is_known, domain="")


def quantised_product(draw):
    a, b = draw_product(draw)
    version = draw.one_of(10, 21)
    kind = draw.one_of(np.float32, np.float16) if version == 21 else np.float32
    by_row, by_column = draw.one_of((), (a.shape[-2],)), draw.one_of((), (b.shape[-1],))
    a_scale, b_scale = draw.scale(shape=by_row), draw.scale(shape=by_column)
    a_scale, b_scale, y_scale = (each.astype(kind) for each in (a_scale, b_scale,
                                                               draw.scale(0.05, 5)))
    a_zero, b_zero = draw.integers(a.dtype, by_row), draw.integers(b.dtype, by_column)
    y_zero = draw.integers(a.dtype)
    sums = centred(a, a_zero, -2) @ centred(b, b_zero, -1)
    wide = [each.astype(np.float32) for each in (a_scale, b_scale, y_scale)]
    factors = ((along(wide[0], 2, -2) if a_scale.size > 1 else wide[0])
               * (along(wide[1], 2, -1) if b_scale.size > 1 else wide[1]) / wide[2])
    expected = quantised(sums * factors.astype(np.float64), np.float32(1), y_zero, a.dtype)
    is_known = (by_row == () and (by_column == () or b.ndim == 2) and kind == np.float32
                and is_exact_pair(a, b))
    return Case("QLinearMatMul", [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero],
                expected, is_known, domain="", version=version)


def draw_scales(draw, shape, kind, blocked):
    """(axis, block, shape of scales, the scale's index for each element along the axis)."""
    axis = int(draw.random.integers(len(shape)))
    form = draw.one_of("one", "axis", "blocks") if blocked else draw.one_of("one", "axis")
    if form == "one":
        return axis, 0, (), None
    if form == "axis":
        return axis, 0, (shape[axis],), None
    block = draw.size(1, 4)
    scales = [*shape]
    scales[axis] = -(-shape[axis] // block)
    return axis, block, tuple(scales), np.arange(shape[axis]) // block


def spread(values, shape, axis, indices):
    """Values for each element of `shape`."""
    if indices is not None:
        return np.take(values, indices, axis)
    return along(values, len(shape), axis) if values.ndim == 1 else values


def linear(op, domain):
    """QuantizeLinear or DequantizeLinear."""
    is_quantising = op == "QuantizeLinear"

    def draw(draw):
        version = draw.one_of(10, 13, 19, 21, 23, 24, 25) if not domain else 17
        types = [np.uint8, np.int8] + ([np.uint16, np.int16] if domain or version >= 21 else [])
        has_float16 = (domain or version >= 19) and draw.random.random() < 0.3
        kind = np.float16 if has_float16 else np.float32
        integers, shape = draw.one_of(*types), draw.shape()
        axis, block, scales, indices = draw_scales(draw, shape, kind, not domain and version >= 21)
        if not domain and version < 13:
            scales, block = (), 0
        scale = draw.scale(0.01, 0.5, scales).astype(kind)
        zeros = draw.one_of(None, draw.integers(integers, scales))
        attributes = {"axis": axis} if domain or version >= 13 else {}
        if domain and scales == ():
            attributes = {}
        if block:
            attributes["block_size"] = block
        # ONNX Runtime takes a list of one scale for that of a tensor, also beside a block size.
        is_readable = not block or scales != (1,)
        per_element = spread(scale, shape, axis, indices)
        shift = 0 if zeros is None else spread(zeros, shape, axis, indices).astype(np.int64)
        if not is_quantising:
            x = draw.integers(integers, shape)
            expected = (x.astype(np.float64) - shift) * per_element.astype(np.float64)
            return Case(op, [x, scale, zeros], expected.astype(kind), is_readable,
                        domain=domain, version=version, **attributes)
        x = (draw.normal(*shape) * 100).astype(kind)
        bounds = np.iinfo(np.uint8 if zeros is None else integers)
        # The quotient has the type of the scale; com.microsoft divides in float32.
        wide = np.float32 if domain else kind
        quotient = x.astype(wide) / per_element.astype(wide)
        expected = np.clip(np.rint(quotient.astype(np.float64)) + shift, bounds.min, bounds.max)
        is_known = kind == np.float32 and is_readable
        return Case(op, [x, scale, zeros], expected.astype(bounds.dtype), is_known, domain=domain,
                    version=version, **attributes)
    return draw


def dynamic(draw):
    x = draw.normal(*draw.shape(0)) * np.float32(draw.one_of(1, 50)) + np.float32(
        draw.one_of(0, 5, -5))
    x = np.asarray(x, np.float32)
    scale, zero = dynamic_range(x)
    y = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
    return Case("DynamicQuantizeLinear", [x], (y, np.asarray(scale), np.asarray(zero)), domain="")


GENERATORS = {
    "ConvInteger": conv_integer, "QLinearConv": quantised_conv(""),
    "QLinearConv of com.microsoft": quantised_conv("com.microsoft"),
    "MatMulInteger": mat_mul_integer, "QLinearMatMul": quantised_product,
    "QuantizeLinear": linear("QuantizeLinear", ""),
    "QuantizeLinear of com.microsoft": linear("QuantizeLinear", "com.microsoft"),
    "DequantizeLinear": linear("DequantizeLinear", ""),
    "DequantizeLinear of com.microsoft": linear("DequantizeLinear", "com.microsoft"),
    "DynamicQuantizeLinear": dynamic,
}


@pytest.mark.parametrize("op", GENERATORS)
def test_results_are_those_of_the_definition(tessera, op):
    for seed in range(CASES_OF_OP):
        case = GENERATORS[op](Draw(seed))
        model, feeds = case.model(), case.feeds()
        found = tessera.load(model).bind(optimize=False).run(feeds)
        compare(found, case.expected, 0, case)
        if case.is_known_to_ort:
            compare(found, run_ort(model, feeds), 1, case)
