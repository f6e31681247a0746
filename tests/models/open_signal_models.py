"""Networks over time: recurrent ones, and convolutions of one dimension."""

import numpy as np
from onnx import TensorProto, numpy_helper

from open_layers import (
    attention,
    convolution_1d,
    feed_forward,
    finish,
    ints,
    list_of,
    normalized,
    number,
    places_of,
    recurrent,
    shape_part,
    silu,
)
from self_made_models import Network


def join_directions(net, every):
    """From (length, directions, batch, hidden) to (length, batch, directions * hidden)."""
    return net.node("Reshape", net.node("Transpose", every, perm=[0, 2, 1, 3]),
                    ints(net, 0, 0, -1))


def tagger():
    net = Network("tagger", 14)
    tokens = net.input("tokens", ["length", "batch"], TensorProto.INT64)
    x = net.node("Gather", net.normal(20, 5), tokens)
    every, _, _ = recurrent(net, "LSTM", x, 5, 6, direction="bidirectional")
    net.output(net.node("Softmax", net.linear(join_directions(net, every), 12, 4), axis=-1))
    return finish(net), {"batch": (1, 5), "length": (1, 40)}


def recurrence():
    net = Network("recurrence", 14)
    every, _ = recurrent(net, "GRU", net.input("x", ["length", 2, 5]), 5, 6)
    net.output(net.node("Tanh", every))
    return finish(net), {"length": (1, 50)}


def continued_recurrence():
    """States that the caller passes, and states of zeros that are made for the batch."""
    net = Network("continued_recurrence", 14)
    x = net.input("x", ["length", "batch", 6])
    hidden = net.input("hidden", [1, "batch", 5])
    cell = net.input("cell", [1, "batch", 5])
    every, last, last_cell = recurrent(net, "LSTM", x, 6, 5, "", hidden, cell)
    net.output(last)
    net.output(last_cell)
    x = net.node("Squeeze", every, ints(net, 1))
    zeros = net.node("ConstantOfShape", list_of(net, 2, shape_part(net, x, 1), 7),
                     value=numpy_helper.from_array(np.zeros(1, np.float32)))
    every, last = recurrent(net, "GRU", x, 5, 7, "", zeros, direction="bidirectional",
                            linear_before_reset=1)
    net.output(net.node("Reshape", net.node("Transpose", last, perm=[1, 0, 2]), ints(net, 0, -1)))
    x = join_directions(net, every)
    every, _ = recurrent(net, "RNN", x, 14, 4, direction="reverse")
    net.output(every)
    return finish(net), {"batch": (1, 4), "length": (1, 25)}


def padded_recurrence():
    """Rows of different lengths."""
    net = Network("padded_recurrence", 14)
    x = net.input("x", ["length", "batch", 5])
    mask = net.input("mask", ["batch", "length"], TensorProto.INT64)
    lengths = net.node("Cast", net.node("ReduceSum", mask, ints(net, 1), keepdims=0),
                       to=TensorProto.INT32)
    every, last, _ = recurrent(net, "LSTM", x, 5, 6, lengths, direction="bidirectional")
    net.output(last)
    every, _ = recurrent(net, "GRU", join_directions(net, every), 12, 6, lengths)
    net.output(every)
    return finish(net), {"batch": (1, 4), "length": (1, 30)}


def speech_encoder():
    """Convolutions of one dimension before a transformer with positions from sine and cosine."""
    net = Network("speech_encoder", 20)
    x = net.input("features", ["batch", 20, "time"])
    x = net.node("Gelu", convolution_1d(net, x, 20, 16, 3, pads=[1, 1]))
    x = net.node("Gelu", convolution_1d(net, x, 16, 16, 3, pads=[1, 1], strides=[2]))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    places = net.node("Cast", net.node("Unsqueeze", places_of(net, x, 1), ints(net, 1)),
                      to=TensorProto.FLOAT)
    angles = net.node("Mul", places, net.constant(
        (100.0 ** (-np.arange(8) / 8)).astype(np.float32).reshape(1, -1)))
    positions = net.node("Concat", net.node("Sin", angles), net.node("Cos", angles), axis=1)
    x = net.node("Add", x, positions)
    x = normalized(net, net.node("Add", x, attention(net, x, 16, 2)), 16)
    net.output(normalized(net, net.node("Add", x, feed_forward(net, x, 16)), 16))
    return finish(net), {"batch": (1, 3), "time": (1, 150)}


def speech_recognizer():
    """Normalisation over time, a gated depthwise convolution, and a GRU in both directions."""
    net = Network("speech_recognizer", 18)
    x = net.input("features", ["batch", 12, "time"])
    x = net.node("InstanceNormalization", x, net.positive(12), net.normal(12))
    x = convolution_1d(net, x, 12, 32, 1)
    left, right = net.node("Split", x, outputs=2, axis=1, num_outputs=2)
    x = net.node("Mul", left, net.node("Sigmoid", right))
    x = convolution_1d(net, x, 16, 16, 7, group=16, pads=[3, 3])
    x = silu(net, net.batch_normalization(x, 16))
    every, _ = recurrent(net, "GRU", net.node("Transpose", x, perm=[2, 0, 1]), 16, 8,
                         direction="bidirectional", linear_before_reset=1)
    x = net.linear(join_directions(net, every), 16, 10)
    net.output(net.node("LogSoftmax", net.node("Transpose", x, perm=[1, 0, 2]), axis=2))
    return finish(net), {"batch": (1, 3), "time": (2, 80)}


def causal_convolutions():
    """Dilated convolutions that see no later sample: all padding is on the left."""
    net = Network("causal_convolutions", 18)
    audio = net.input("audio", ["batch", 1, "time"])
    x = convolution_1d(net, audio, 1, 8, 1)
    skips = []
    for dilation in (1, 2, 4):
        before = net.node("Pad", x, ints(net, 0, 0, dilation, 0, 0, 0))
        gate, value = (net.node(op, convolution_1d(net, before, 8, 8, 2, dilations=[dilation]))
                       for op in ("Sigmoid", "Tanh"))
        inner = net.node("Mul", gate, value)
        skips.append(convolution_1d(net, inner, 8, 8, 1))
        x = net.node("Add", x, convolution_1d(net, inner, 8, 8, 1))
    net.output(net.node("Softmax", convolution_1d(net, net.node(
        "Relu", net.node("Sum", *skips)), 8, 20, 1), axis=1))
    return finish(net), {"batch": (1, 3), "time": (1, 120)}


def vocoder():
    """Features that become four times as many samples, of which the last ones are cut off."""
    net = Network("vocoder", 18)
    x = net.input("features", [1, 10, "time"])
    inputs = 10
    for outputs in (8, 4):
        weight = net.normal(inputs, outputs, 4, deviation=0.3)
        x = net.node("ConvTranspose", net.node("LeakyRelu", x, alpha=0.1), weight,
                     net.normal(outputs), strides=[2], pads=[1, 1])
        inner = convolution_1d(net, x, outputs, outputs, 3, pads=[3, 3], dilations=[3])
        x = net.node("Add", x, inner)
        inputs = outputs
    x = net.node("Tanh", convolution_1d(net, x, 4, 1, 7, pads=[3, 3]))
    end = net.node("Sub", shape_part(net, x, 2), ints(net, 3))
    net.output(net.node("Slice", x, ints(net, 0), end, ints(net, 2)))
    net.output(net.node("AveragePool", net.node("Abs", x), kernel_shape=[4], strides=[4]))
    net.output(net.node("Mul", x, net.node("ReduceMax", x, ints(net, 2), keepdims=1)))
    net.output(net.node("Sub", x, number(net, 0.5)))
    return finish(net), {"time": (1, 60)}


SIGNAL_MODELS = (tagger, recurrence, continued_recurrence, padded_recurrence, speech_encoder,
                 speech_recognizer, causal_convolutions, vocoder)
