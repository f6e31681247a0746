"""Parts of the networks whose sizes are open, with the shape arithmetic that exporters write."""

import numpy as np

from self_made_models import Network


def ints(net, *values):
    return net.constant(np.array(values, np.int64))


def number(net, value):
    return net.constant(np.float32(value))


def shape_part(net, x, axis):
    """A list of one number: the size of an axis."""
    return net.node("Gather", net.node("Shape", x), ints(net, axis))


def size_of(net, x, axis):
    """The size of an axis, a scalar."""
    return net.node("Squeeze", shape_part(net, x, axis))


def list_of(net, *sizes):
    """A list for Reshape and Expand, of numbers and of values that are lists of one number."""
    parts = [size if isinstance(size, str) else ints(net, size) for size in sizes]
    return net.node("Concat", *parts, axis=0)


def places_of(net, x, axis):
    """0, 1, and so on, as many as the axis has elements."""
    return net.node("Range", net.constant(np.int64(0)), size_of(net, x, axis),
                    net.constant(np.int64(1)))


def finish(net: Network):
    """The model without inferred types, as exporters of open sizes write it."""
    model = net.model()
    del model.graph.value_info[:]
    return model


def split_heads(net, x, width, heads, permutation):
    """From (batch, length, width) to (batch, length, heads, width of a head), permuted."""
    split = list_of(net, shape_part(net, x, 0), shape_part(net, x, 1), heads, width // heads)
    return net.node("Transpose", net.node("Reshape", x, split), perm=permutation)


def attend(net, queries, others, width, heads, mask=None):
    """Attention of (batch, queries, width) to (batch, others, width)."""

    def by_head(x, permutation):
        return split_heads(net, net.linear(x, width, width), width, heads, permutation)

    scores = net.node("MatMul", by_head(queries, [0, 2, 1, 3]), by_head(others, [0, 2, 3, 1]))
    scores = net.node("Mul", scores, number(net, (width // heads)**-0.5))
    if mask is not None:
        scores = net.node("Add", scores, mask)
    attended = net.node("MatMul", net.node("Softmax", scores), by_head(others, [0, 2, 1, 3]))
    attended = net.node("Transpose", attended, perm=[0, 2, 1, 3])
    merged = list_of(net, shape_part(net, queries, 0), shape_part(net, queries, 1), width)
    return net.linear(net.node("Reshape", attended, merged), width, width)


def attention(net, x, width, heads, mask=None):
    return attend(net, x, x, width, heads, mask)


def feed_forward(net, x, width):
    return net.linear(net.node("Gelu", net.linear(x, width, 2 * width)), 2 * width, width)


def normalized(net, x, width):
    return net.node("LayerNormalization", x, net.positive(width), net.normal(width))


def silu(net, x):
    return net.node("Mul", x, net.node("Sigmoid", x))


def convolution_1d(net, x, inputs, outputs, kernel, group=1, **attributes):
    fan_in = inputs // group * kernel
    weight = net.normal(outputs, inputs // group, kernel, deviation=fan_in**-0.5)
    return net.node("Conv", x, weight, net.normal(outputs), group=group, **attributes)


def recurrent(net, op, x, inputs, hidden, *others, direction="forward", **attributes):
    """All outputs of a recurrent op. `others` are lengths and initial states."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    directions = 2 if direction == "bidirectional" else 1
    weights = [net.normal(directions, gates * hidden, columns, deviation=0.4)
               for columns in (inputs, hidden)]
    bias = net.normal(directions, 2 * gates * hidden, deviation=0.3)
    return net.node(op, x, *weights, bias, *others, outputs=3 if op == "LSTM" else 2,
                    hidden_size=hidden, direction=direction, **attributes)
