"""The quantised operators of com.microsoft, as their documentation defines them: dequantise,
compute in float64, quantise. Shares no code with Tessera."""

import numpy as np


def real(integers, scale, zero_point=None):
    zero = 0 if zero_point is None else np.asarray(zero_point).astype(np.float64)
    return (integers.astype(np.float64) - zero) * np.asarray(scale, np.float64)


def quantised(numbers, scale, zero_point, dtype):
    zero = 0 if zero_point is None else int(np.asarray(zero_point).reshape(-1)[0])
    bounds = np.iinfo(dtype)
    # np.rint rounds ties to even.
    steps = np.rint(numbers / np.float64(np.asarray(scale).reshape(-1)[0])) + zero
    return np.clip(steps, bounds.min, bounds.max).astype(dtype)


def dynamic_range(numbers):
    """The scale and zero point of DynamicQuantizeLinear, which are computed in float32."""
    low = min(np.float32(0), numbers.min(initial=np.float32(0)))
    high = max(np.float32(0), numbers.max(initial=np.float32(0)))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))


def rounded_dynamically(numbers):
    numbers = numbers.astype(np.float32)
    scale, zero = dynamic_range(numbers)
    steps = np.clip(np.rint(numbers / scale) + np.float32(zero), 0, 255).astype(np.uint8)
    return real(steps, scale, zero)


def add(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    return quantised(real(a, a_scale, a_zero) + real(b, b_scale, b_zero), c_scale, c_zero, a.dtype)


def multiply(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    return quantised(real(a, a_scale, a_zero) * real(b, b_scale, b_zero), c_scale, c_zero, a.dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def unary(function):
    def run(x, x_scale, x_zero, y_scale, y_zero=None, **attributes):
        return quantised(function(real(x, x_scale, x_zero), **attributes), y_scale, y_zero, x.dtype)
    return run


def leaky_relu(x, alpha=np.float32(0.01)):
    return np.where(x < 0, x * np.float64(np.float32(alpha)), x)


def softmax_rows(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def softmax(x, opset, axis=-1):
    if opset >= 13:
        return softmax_rows(x, axis)
    axis %= x.ndim
    rows = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
    return softmax_rows(rows, 1).reshape(x.shape)


def reduce_mean(x, axes, keepdims):
    return x.mean(axis=tuple(axes) or None, keepdims=bool(keepdims))


def concat(y_scale, y_zero, *parts, axis):
    joined = [quantised(real(*parts[index:index + 3]), y_scale, y_zero, y_zero.dtype)
              for index in range(0, len(parts), 3)]
    return np.concatenate(joined, axis)


def where(condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    return quantised(np.where(condition, real(x, x_scale, x_zero), real(y, y_scale, y_zero)),
                     z_scale, z_zero, x.dtype)


def to_channels_first(x):
    return np.moveaxis(x, -1, 1)


def windows(length, kernel, stride, begin, end, ceil_mode):
    """The first position of each window along one axis; padding is negative or behind the end."""
    padded = length + begin + end - kernel
    count = (-(-padded // stride) if ceil_mode else padded // stride) + 1
    if ceil_mode and (count - 1) * stride >= length + begin:
        count -= 1
    return [index * stride - begin for index in range(count)]


def average_pool(x, kernel_shape, strides=None, pads=None, ceil_mode=0, count_include_pad=0,
                 channels_last=0):
    if channels_last:
        x = to_channels_first(x)
    rank = len(kernel_shape)
    strides, pads = strides or [1] * rank, pads or [0] * 2 * rank
    starts = [windows(x.shape[2 + axis], kernel_shape[axis], strides[axis], pads[axis],
                      pads[rank + axis], ceil_mode) for axis in range(rank)]
    result = np.zeros(x.shape[:2] + tuple(len(each) for each in starts))
    for position in np.ndindex(*result.shape[2:]):
        inside, count = [], 1
        for axis, index in enumerate(position):
            start = starts[axis][index]
            length = x.shape[2 + axis]
            first, last = max(start, 0), min(start + kernel_shape[axis], length)
            inside.append(slice(first, last))
            counted = min(start + kernel_shape[axis], length + pads[rank + axis]) - start
            count *= counted if count_include_pad else last - first
        part = x[(slice(None), slice(None), *inside)]
        result[(slice(None), slice(None), *position)] = (
            part.sum(axis=tuple(range(2, 2 + rank))) / count)
    return np.moveaxis(result, 1, -1) if channels_last else result


def global_average_pool(x, channels_last=0):
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    return x.mean(axis=axes, keepdims=True)


def gemm(a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None, alpha=1.0,
         transA=0, transB=0):  # noqa: N803, the names of the attributes
    left = a.astype(np.int64) - int(a_zero)
    right = b.astype(np.int64).T if transB else b.astype(np.int64)
    sums = (left.T if transA else left) @ (right - b_zero.astype(np.int64))
    if c is not None:
        sums = sums + c
    scale = np.float64(np.float32(alpha)) * np.float64(a_scale) * b_scale.astype(np.float64)
    if y_zero is None:
        return (sums * scale).astype(np.float32)
    return quantised(sums * scale, y_scale, y_zero, y_zero.dtype)


def integers_to_float(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    result = real(a, a_scale, a_zero) @ real(b, b_scale, b_zero)
    return result if bias is None else result + bias


def dynamic_product(a, b, b_scale, b_zero=None, bias=None):
    result = rounded_dynamically(a) @ real(b, b_scale, b_zero)
    return result if bias is None else result + bias


def unpacked(data, bits):
    """The integers of the last axis of bytes, the first one in the lowest bits."""
    parts = [(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*data.shape[:-1], -1)


def block_weights(weights, scales, zeros, groups, n, k, bits, block_size):
    """The weights [N, K] of MatMulNBits as real numbers."""
    blocks = -(-k // block_size)
    integers = unpacked(weights.reshape(n, -1), bits)[:, :k].astype(np.float64)
    scales = scales.reshape(n, blocks).astype(np.float64)
    if zeros is None:
        zeros = np.full((n, blocks), 2.0 ** (bits - 1))
    elif zeros.dtype == np.uint8:
        zeros = unpacked(zeros.reshape(n, -1), bits)[:, :blocks]
    zeros = zeros.reshape(n, blocks).astype(np.float64)
    groups = np.arange(k) // block_size if groups is None else groups[:k]
    return (integers - zeros[:, groups]) * scales[:, groups]


def block_product(a, weights, scales, zeros=None, groups=None, bias=None, *, N, K,  # noqa: N803
                  bits=4, block_size=32, accuracy_level=0):
    del accuracy_level
    real_weights = block_weights(weights, scales, zeros, groups, N, K, bits, block_size)
    result = a.astype(np.float64) @ real_weights.T
    return result if bias is None else result + bias.astype(np.float64)


def decoded_weights(codes, magnitudes, book, n, k, block_size):
    """The weights [N, K] of MatMulBnb4; the first of two codes is in the upper bits of a byte."""
    nibbles = np.stack([codes >> 4, codes & 15], axis=-1).reshape(-1)[:n * k]
    blocks = np.arange(n * k) // block_size
    return (book[nibbles] * magnitudes.astype(np.float64)[blocks]).reshape(n, k)


def code_product(a, codes, magnitudes, *, N, K, block_size, quant_type, transB=1):  # noqa: N803
    book = NORMAL_CODES if quant_type else FLOAT_CODES
    weights = decoded_weights(codes, magnitudes, book, N, K, block_size)
    return a.astype(np.float64) @ (weights.T if transB else weights)


def embeddings(ids, segment_ids, words, positions, segments, gamma, beta, mask, *scales_and_zeros,
               epsilon=1e-12):
    tables = [real(table, scale, zero) if table is not None else None for table, scale, zero in zip(
        (words, positions, segments, gamma, beta), scales_and_zeros[:5], scales_and_zeros[5:])]
    total = tables[0][ids] + tables[1][:ids.shape[1]]
    if segments is not None:
        total = total + tables[2][segment_ids]
    centred = total - total.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + np.float64(epsilon))
    counts = np.zeros(len(ids), np.int32) if mask is None else (mask == 1).sum(axis=1)
    return centred / deviation * tables[3] + tables[4], counts.astype(np.int32)


# QLoRA (Dettmers and others, 2023), appendix E.
NORMAL_CODES = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0])
FLOAT_CODES = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3]) / 12
FLOAT_CODES = np.concatenate([FLOAT_CODES, -FLOAT_CODES])


def gathered_blocks(data, indices, scales, zeros=None, bits=4, block_size=128, gather_axis=0,
                    quantize_axis=1):
    del gather_axis
    weights = unpacked(data, bits).astype(np.float64)
    axis = quantize_axis % data.ndim
    blocks = np.arange(weights.shape[axis]) // block_size
    zero = 2.0 ** (bits - 1)
    if zeros is not None:
        points = unpacked(zeros, bits) if bits < 8 else zeros
        zero = np.take(points, blocks, axis).astype(np.float64)
    numbers = (weights - zero) * np.take(scales.astype(np.float64), blocks, axis)
    count = len(numbers)
    inside = (indices >= -count) & (indices < count)
    result = numbers[np.where(inside, indices, 0)]
    result[~inside] = 0
    return result


def attention(x, weights, bias, x_scale, w_scale, mask=None, x_zero=None, w_zero=None, past=None,
              *, num_heads, unidirectional=0, scale=None, mask_filter_value=-10000.0):
    batch, queries = x.shape[:2]
    projected = real(x, x_scale, x_zero) @ real(weights, w_scale, w_zero) + bias
    q, k, v = (each.reshape(batch, queries, num_heads, -1).transpose(0, 2, 1, 3)
               for each in np.split(projected, 3, axis=-1))
    if past is not None:
        k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    keys = k.shape[2]
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / np.sqrt(q.shape[-1]))
    if mask is not None and mask.ndim == 1:
        position = np.arange(keys)
        hidden = position >= mask[:batch, None]
        if len(mask) == 2 * batch:
            hidden |= position < mask[batch:, None]
        scores = scores + np.where(hidden, mask_filter_value, 0)[:, None, None]
    elif mask is not None:
        filtered = np.where(mask > 0, 0, np.float64(np.float32(mask_filter_value)))
        scores = scores + (filtered[:, None, None] if mask.ndim == 2 else filtered[:, None])
    if unidirectional:
        later = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        scores = np.where(later, -np.inf, scores)
    result = softmax_rows(scores, -1) @ v
    present = np.stack([k, v])
    return result.transpose(0, 2, 1, 3).reshape(batch, queries, -1), present


def lstm(x, w, r, bias, lengths, h, c, holes, w_scale, w_zero, r_scale, r_zero,
         direction="forward", hidden_size=None):
    """The states of all steps, and the last ones; activations are the defaults."""
    del hidden_size, lengths
    steps, batch, _ = x.shape
    directions, hidden = r.shape[:2]
    rounded = rounded_dynamically(x)
    outputs = np.zeros((steps, directions, batch, hidden))
    last_h, last_c = np.zeros((2, directions, batch, hidden))

    def weights(each, scale, zero, which):
        return real(each[which], scale[which], zero[which])
    for which in range(directions):
        state = np.zeros((batch, hidden)) if h is None else h[which].astype(np.float64)
        cell = np.zeros((batch, hidden)) if c is None else c[which].astype(np.float64)
        hole = np.zeros(3 * hidden) if holes is None else holes[which].astype(np.float64)
        i_hole, o_hole, f_hole = np.split(hole, 3)
        offset = 0 if bias is None else bias[which].reshape(2, -1).astype(np.float64).sum(axis=0)
        is_reverse = direction == "reverse" or which == 1
        for step in reversed(range(steps)) if is_reverse else range(steps):
            gates = (rounded[step] @ weights(w, w_scale, w_zero, which)
                     + rounded_dynamically(state) @ weights(r, r_scale, r_zero, which) + offset)
            i, o, f, g = np.split(gates, 4, axis=-1)
            i, f = sigmoid(i + i_hole * cell), sigmoid(f + f_hole * cell)
            cell = f * cell + i * np.tanh(g)
            state = sigmoid(o + o_hole * cell) * np.tanh(cell)
            outputs[step, which] = state
        last_h[which], last_c[which] = state, cell
    return outputs, last_h, last_c
