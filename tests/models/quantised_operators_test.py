"""The quantised operators of com.microsoft on random sizes, types and attributes, beside their
definitions (quantised_definitions.py), which they equal, and beside ONNX Runtime, which rounds in
float32 and may be one quantum away."""

import pathlib

import numpy as np
import pytest
import quantised_definitions as definitions
from quantised_cases import BYTES, Case, Draw, compare, run_ort

CASES_OF_OP = 12
# ONNX Runtime adds the products of bytes of these in pairs of 16 bits, which saturate, on processors
# without dot products of bytes.
SATURATING = ("DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention",
              "QGemm")
HAS_DOT_PRODUCTS = "vnni" in pathlib.Path("/proc/cpuinfo").read_text()


def pair(op, function):
    def draw(draw):
        dtype, (left, right) = draw.one_of(*BYTES), draw.broadcast_pair()
        inputs = [draw.integers(dtype, left), draw.scale(), draw.zero(dtype),
                  draw.integers(dtype, right), draw.scale(), draw.zero(dtype),
                  draw.scale(), draw.zero(dtype)]
        return Case(op, inputs, function(*inputs))
    return draw


def integer_pair(draw):
    dtype, (left, right) = draw.one_of(*BYTES), draw.broadcast_pair()
    a, b = draw.integers(dtype, left), draw.integers(dtype, right)
    zeros = draw.zero(dtype), draw.zero(dtype)
    numbers = [each.astype(np.int32) - (0 if zero is None else int(zero))
               for each, zero in zip((a, b), zeros)]
    return Case("MulInteger", [a, zeros[0], b, zeros[1]], np.asarray(numbers[0] * numbers[1]))


def function(op, of_reals, **settings):
    def draw(draw):
        dtype = draw.one_of(*BYTES)
        attributes = {key: choose(draw) for key, choose in settings.items()}
        inputs = [draw.integers(dtype, draw.shape(0)), draw.scale(), draw.zero(dtype),
                  draw.scale(), draw.zero(dtype)]
        return Case(op, inputs, definitions.unary(of_reals)(*inputs, **attributes), **attributes)
    return draw


def softmax(draw):
    dtype = draw.one_of(*BYTES)
    x, opset = draw.integers(dtype, draw.shape()), draw.one_of(11, 12, 13, 17)
    axis = int(draw.random.integers(-x.ndim, x.ndim))
    inputs = [x, draw.scale(), draw.zero(dtype), draw.scale(1 / 512, 1 / 64), draw.integers(dtype)]
    is_usual = draw.one_of(True, False)
    if is_usual:
        inputs[3:] = [np.float32(1 / 256), dtype(np.iinfo(dtype).min)]
    expected = definitions.unary(definitions.softmax)(*inputs, opset=opset, axis=axis)
    # ONNX Runtime's results wrap around where they should saturate.
    is_known = is_usual and expected.max() < np.iinfo(dtype).max
    return Case("QLinearSoftmax", inputs, expected, is_known, opset=opset, axis=axis)


def reduction(draw):
    dtype, is_mean = draw.one_of(*BYTES), draw.one_of(True, False)
    x, keepdims = draw.integers(dtype, draw.shape()), draw.one_of(0, 1)
    axes = draw.random.permutation(x.ndim)[:draw.random.integers(x.ndim + 1)]
    axes = [int(axis) - draw.one_of(0, x.ndim) for axis in axes]
    if is_mean:
        inputs = [x, draw.scale(), draw.zero(dtype), draw.scale(), draw.zero(dtype)]
        expected = definitions.unary(definitions.reduce_mean)(*inputs, axes=axes, keepdims=keepdims)
        return Case("QLinearReduceMean", inputs, expected, axes=axes, keepdims=keepdims)
    kind = np.int32 if dtype == np.int8 else np.uint32
    expected = x.astype(np.int64).sum(axis=tuple(axes) or None, keepdims=bool(keepdims))
    return Case("ReduceSumInteger", [x], np.asarray(expected).astype(kind), axes=axes,
                keepdims=keepdims)


def concat(draw):
    dtype, shape = draw.one_of(*BYTES), list(draw.shape())
    axis = int(draw.random.integers(-len(shape), len(shape)))
    parts = []
    for _ in range(draw.size(1, 4)):
        shape[axis] = draw.size(0, 5)
        parts += [draw.integers(dtype, shape), draw.scale(), draw.integers(dtype)]
    inputs = [draw.scale(), draw.integers(dtype), *parts]
    return Case("QLinearConcat", inputs, definitions.concat(*inputs, axis=axis), axis=axis)


def where(draw):
    dtype, (left, right) = draw.one_of(*BYTES), draw.broadcast_pair()
    inputs = [draw.random.random(draw.one_of(left, right)) < 0.5,
              draw.integers(dtype, left), draw.scale(), draw.integers(dtype),
              draw.integers(dtype, right), draw.scale(), draw.integers(dtype),
              draw.scale(), draw.integers(dtype)]
    return Case("QLinearWhere", inputs, definitions.where(*inputs))


def average_pool(draw):
    dtype, rank = draw.one_of(*BYTES), draw.size(1, 3)
    kernel = [draw.size(1, 3) for _ in range(rank)]
    attributes = {"kernel_shape": kernel, "strides": [draw.size(1, 3) for _ in range(rank)],
                  "pads": [draw.size(0, size - 1) for size in kernel * 2],
                  "ceil_mode": draw.one_of(0, 1), "count_include_pad": draw.one_of(0, 1),
                  "channels_last": draw.one_of(0, 1)}
    spatial = [draw.size(size, 7) for size in kernel]
    batch, channels = draw.size(1, 2), draw.size(1, 4)
    shape = ([batch, *spatial, channels] if attributes["channels_last"]
             else [batch, channels, *spatial])
    inputs = [draw.integers(dtype, shape), draw.scale(), draw.zero(dtype), draw.scale(),
              draw.zero(dtype)]
    expected = definitions.unary(definitions.average_pool)(*inputs, **attributes)
    # Its windows behind the end differ; channels behind have kernels for two axes.
    is_known = not attributes["ceil_mode"]
    return Case("QLinearAveragePool", inputs, expected, is_known, **attributes)


def global_pool(draw):
    dtype, is_last = draw.one_of(*BYTES), draw.one_of(0, 1)
    inputs = [draw.integers(dtype, tuple(draw.size() for _ in range(draw.size(3, 5)))),
              draw.scale(), draw.integers(dtype), draw.scale(), draw.integers(dtype)]
    expected = definitions.unary(definitions.global_average_pool)(*inputs, channels_last=is_last)
    return Case("QLinearGlobalAveragePool", inputs, expected, channels_last=is_last)


def gemm(draw):
    left, right = draw.one_of(*BYTES), draw.one_of(*BYTES)
    rows, columns, depth = draw.size(1, 9), draw.size(1, 9), draw.size(1, 40)
    attributes = {"alpha": draw.one_of(1.0, 0.5, 0.3), "transA": draw.one_of(0, 1),
                  "transB": draw.one_of(0, 1)}
    by_column = draw.one_of((), (columns,))
    a = draw.integers(left, (depth, rows) if attributes["transA"] else (rows, depth))
    b = draw.integers(right, (columns, depth) if attributes["transB"] else (depth, columns))
    bias = draw.one_of(None, (), (columns,), (rows, 1), (rows, columns))
    if bias is not None:
        bias = draw.random.integers(-3000, 3000, bias).astype(np.int32)
    inputs = [a, draw.scale(), draw.integers(left), b, draw.scale(shape=by_column),
              draw.integers(right, by_column), bias]
    if draw.one_of(True, False):
        inputs += [draw.scale(0.01, 1), draw.integers(left)]
    # ONNX Runtime has unsigned left factors, and biases of rows and matrices only.
    is_known = left == np.uint8 and (bias is None or bias.shape in [(columns,), (rows, columns)])
    return Case("QGemm", inputs, definitions.gemm(*inputs, **attributes), is_known, **attributes)


def product_factors(draw, dtype_of_left, dtype_of_right):
    batch = draw.one_of((), (draw.size(),), (2, draw.size()))
    rows, columns, depth = draw.size(1, 6), draw.size(1, 9), draw.size(1, 40)
    a = draw.integers(dtype_of_left, (*batch, rows, depth))
    b = draw.integers(dtype_of_right, (depth, columns))
    return a, b, columns


def integers_to_float(draw):
    left, right = draw.one_of(*BYTES), draw.one_of(*BYTES)
    a, b, columns = product_factors(draw, left, right)
    by_column = draw.one_of((), (columns,))
    inputs = [a, b, draw.scale(), draw.scale(shape=by_column), draw.zero(left),
              draw.integers(right, by_column), draw.one_of(None, draw.normal(columns))]
    expected = definitions.integers_to_float(*inputs)
    return Case("MatMulIntegerToFloat", inputs, expected, left == np.uint8)


def dynamic_product(draw):
    right = draw.one_of(*BYTES)
    a, b, columns = product_factors(draw, np.uint8, right)
    by_column = draw.one_of((), (columns,))
    inputs = [draw.normal(*a.shape) * draw.one_of(1, 100) + draw.one_of(0, 3, -3), b,
              draw.scale(shape=by_column), draw.integers(right, by_column),
              draw.one_of(None, draw.normal(columns))]
    inputs[0] = inputs[0].astype(np.float32)
    return Case("DynamicQuantizeMatMul", inputs, definitions.dynamic_product(*inputs))


def wide_product(draw):
    left, right = (draw.one_of(np.int16, np.uint16) for _ in range(2))
    a, b, _ = product_factors(draw, left, right)
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    return Case("MatMulInteger16", [a, b], expected, left == right == np.int16)


def block_product(draw):
    bits, block = draw.one_of(2, 4, 8), draw.one_of(16, 32, 64, 128)
    columns, depth, rows = draw.size(1, 40), draw.size(1, 300), draw.one_of(1, draw.size(1, 9))
    blocks = -(-depth // block)
    kind = draw.one_of(np.float32, np.float32, np.float16)
    zeros = draw.one_of(None, "bits", "numbers")
    if zeros == "bits":
        zeros = draw.integers(np.uint8, (columns, -(-blocks * bits // 8)))
    elif zeros == "numbers":
        zeros = draw.random.uniform(0, 2 ** bits, (columns, blocks)).astype(kind)
    groups = None
    if draw.random.random() < 0.2:
        groups = draw.random.permutation(np.arange(blocks * block) // block).astype(np.int32)
        groups = groups[:depth]
    inputs = [draw.normal(rows, depth).astype(kind),
              draw.integers(np.uint8, (columns, blocks, block * bits // 8)),
              draw.scale(shape=(columns, blocks)).astype(kind), zeros, groups,
              draw.one_of(None, draw.normal(columns).astype(kind))]
    attributes = {"N": columns, "K": depth, "bits": bits, "block_size": block,
                  "accuracy_level": draw.one_of(0, 1)}
    expected = definitions.block_product(*inputs, **attributes)
    # ONNX Runtime reads zero points of numbers and groups for 4 bits only, groups only of float32,
    # and beside groups no packed zero points.
    has_packed = zeros is not None and zeros.dtype == np.uint8
    if groups is None:
        is_known = bits == 4 or zeros is None or has_packed
    else:
        is_known = bits == 4 and kind == np.float32 and not has_packed
    return Case("MatMulNBits", inputs, expected, is_known, constants=(1, 2, 3)[:2 + (
        zeros is not None)], **attributes)


def code_product(draw):
    n, k, block = draw.size(1, 20), draw.size(1, 60), draw.one_of(16, 32, 64)
    kind, is_transposed = draw.one_of(np.float32, np.float32, np.float16), draw.one_of(0, 1)
    attributes = {"N": n, "K": k, "block_size": block, "quant_type": draw.one_of(0, 1),
                  "transB": is_transposed}
    inputs = [draw.normal(draw.size(), k if is_transposed else n).astype(kind),
              draw.integers(np.uint8, -(-n * k // 2)),
              draw.scale(shape=-(-n * k // block)).astype(kind)]
    # ONNX Runtime has kernels of float32, which transpose the weights whatever transB says.
    is_known = kind == np.float32 and is_transposed
    return Case("MatMulBnb4", inputs, definitions.code_product(*inputs, **attributes), is_known,
                constants=(1, 2), **attributes)


def embeddings(draw):
    batch, tokens, hidden = draw.size(1, 3), draw.size(), draw.size(2, 9)
    dtype, rows = draw.one_of(*BYTES), [draw.size(2, 9), tokens + draw.size(0, 3), draw.size(1, 3)]
    tables = [draw.integers(dtype, (count, hidden)) for count in rows]
    ids, segment_ids = (draw.random.integers(0, count, (batch, tokens)).astype(np.int32)
                        for count in (rows[0], rows[2]))
    scales, zeros = [draw.scale() for _ in range(5)], [draw.integers(dtype) for _ in range(5)]
    if draw.one_of(True, False):
        segment_ids = tables[2] = scales[2] = zeros[2] = None
    ends = draw.random.integers(0, tokens + 1, (batch, 1))
    mask = draw.one_of(None, (np.arange(tokens) < ends).astype(np.int32))
    inputs = [ids, segment_ids, *tables, draw.integers(dtype, hidden), draw.integers(dtype, hidden),
              mask, *scales, *zeros]
    return Case("QEmbedLayerNormalization", inputs,
                definitions.embeddings(*inputs, epsilon=np.float32(0.001)), epsilon=0.001)


def gathered_blocks(draw):
    bits, block = draw.one_of(2, 4, 8), draw.one_of(16, 32)
    rows, bytes_of_row = draw.size(1, 6), draw.size(1, 40)
    blocks = -(-bytes_of_row * 8 // bits // block)
    kind = draw.one_of(np.float32, np.float16)
    indices = draw.random.integers(-rows - 2, rows + 2, draw.shape(0, 2))
    zeros = draw.integers(np.uint8, (rows, -(-blocks * bits // 8)))
    inputs = [draw.integers(np.uint8, (rows, bytes_of_row)),
              np.asarray(indices).astype(draw.one_of(np.int32, np.int64)),
              draw.scale(shape=(rows, blocks)).astype(kind), draw.one_of(None, zeros)]
    attributes = {"bits": bits, "block_size": block, "gather_axis": draw.one_of(0, -2),
                  "quantize_axis": draw.one_of(1, -1)}
    constants = (0, 2) if inputs[3] is None else (0, 2, 3)
    return Case("GatherBlockQuantized", inputs, definitions.gathered_blocks(*inputs, **attributes),
                constants=constants, **attributes)


def attention(draw):
    batch, tokens, heads, size = draw.size(1, 3), draw.size(1, 6), draw.size(1, 3), draw.size(1, 8)
    depth, hidden, past = draw.size(1, 20), heads * size, draw.one_of(0, 0, draw.size())
    weights = draw.one_of(*BYTES)
    by_column = draw.one_of((), (3 * hidden,))
    keys = past + tokens
    mask = draw.one_of(None, "end", "range", "keys", "all")
    if mask == "end":
        mask = draw.random.integers(1, keys + 1, batch)
    elif mask == "range":
        ends = draw.random.integers(1, keys + 1, batch)
        mask = np.concatenate([ends, draw.random.integers(0, ends)])
    elif mask is not None:
        shape = (batch, keys) if mask == "keys" else (batch, tokens, keys)
        mask = draw.random.integers(0, 2, shape)
        # Beside -10000, ONNX Runtime's scores of float32 have three digits left.
        mask[..., 0] = 1
    inputs = [draw.integers(np.uint8, (batch, tokens, depth)),
              draw.integers(weights, (depth, 3 * hidden)), draw.normal(3 * hidden),
              draw.scale(0.001, 0.02), draw.scale(0.001, 0.02, by_column),
              None if mask is None else mask.astype(np.int32), draw.zero(np.uint8),
              draw.integers(weights, by_column),
              draw.normal(2, batch, heads, past, size) if past else None]
    is_range = mask is not None and mask.shape == (2 * batch,)
    attributes = {"num_heads": heads, "unidirectional": 0 if is_range else draw.one_of(0, 1)}
    if draw.random.random() < 0.3:
        attributes["scale"] = 0.25
    expected = definitions.attention(*inputs, **attributes)
    return Case("QAttention", inputs, expected, **attributes)


def lstm(draw):
    steps, batch, features, hidden = draw.size(), draw.size(1, 3), draw.size(1, 8), draw.size(1, 8)
    dtype = draw.one_of(*BYTES)
    direction = draw.one_of("forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    columns = draw.one_of((directions,), (directions, 4 * hidden))
    # ONNX Runtime has one zero point for each direction.
    zeros = (np.zeros(columns, dtype) if dtype == np.int8 or len(columns) == 2
             else draw.random.integers(100, 150, columns).astype(dtype))

    def maybe(*shape):
        return draw.one_of(None, draw.normal(*shape))
    inputs = [draw.normal(steps, batch, features),
              draw.integers(dtype, (directions, features, 4 * hidden)),
              draw.integers(dtype, (directions, hidden, 4 * hidden)),
              maybe(directions, 8 * hidden), None, maybe(directions, batch, hidden),
              maybe(directions, batch, hidden), maybe(directions, 3 * hidden),
              draw.scale(0.001, 0.02, columns), zeros, draw.scale(0.001, 0.02, columns), zeros]
    attributes = {"direction": direction, "hidden_size": hidden}
    return Case("DynamicQuantizeLSTM", inputs, definitions.lstm(*inputs, **attributes),
                **attributes)


GENERATORS = {
    "QLinearAdd": pair("QLinearAdd", definitions.add),
    "QLinearMul": pair("QLinearMul", definitions.multiply),
    "MulInteger": integer_pair,
    "QLinearSigmoid": function("QLinearSigmoid", definitions.sigmoid),
    "QLinearLeakyRelu": function("QLinearLeakyRelu", definitions.leaky_relu,
                                 alpha=lambda draw: draw.one_of(0.01, 0.5, -0.3)),
    "QLinearSoftmax": softmax, "QLinearReduceMean": reduction, "QLinearConcat": concat,
    "QLinearWhere": where, "QLinearAveragePool": average_pool,
    "QLinearGlobalAveragePool": global_pool, "QGemm": gemm,
    "MatMulIntegerToFloat": integers_to_float, "DynamicQuantizeMatMul": dynamic_product,
    "MatMulInteger16": wide_product, "MatMulNBits": block_product,
    "MatMulBnb4": code_product, "QEmbedLayerNormalization": embeddings,
    "GatherBlockQuantized": gathered_blocks, "QAttention": attention, "DynamicQuantizeLSTM": lstm,
}


@pytest.mark.parametrize("op", GENERATORS)
def test_results_are_those_of_the_definition(tessera, op):
    for seed in range(CASES_OF_OP):
        case = GENERATORS[op](Draw(seed))
        model, feeds = case.model(), case.feeds()
        found = tessera.load(model).bind(optimize=False).run(feeds)
        compare(found, case.expected, 0, case)
        if case.is_known_to_ort and (HAS_DOT_PRODUCTS or op not in SATURATING):
            compare(found, run_ort(model, feeds), 1, case)
