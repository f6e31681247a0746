"""Small networks that leave dimensions open, with random weights. What follows from a size is computed
in the network, as exporters write it: positions, angles, a causal mask."""

import numpy as np
import onnx

from networks.even_more_networks import both_directions
from networks.network_writer import with_features

WORDS, POSITIONS = 1000, 512


def tokens(net):
    return net.input(1, "length", name="tokens", element=np.int64)


def length_of(net, ids):
    """A list of one number."""
    return net.op("Slice", net.op("Shape", ids), [1], [2], [0])


def embed(net, ids, width):
    return with_features(net.op("Gather", net.weight(WORDS, width), ids, axis=0), width)


def text_encoder(net, layers=4, width=192, heads=3):
    """Learned positions and layers of a transformer."""
    ids = tokens(net)
    positions = net.op("Slice", net.weight(POSITIONS, width), [0], length_of(net, ids), [0])
    x = net.normalize_layer(net.add(embed(net, ids, width), positions))
    for _ in range(layers):
        x = net.encode(x, -1, heads)
    return net.normalize_layer(x)


def text_decoder(net):
    """A small decoder over a prompt: rotated positions, shared keys, gated layers."""
    width, heads, shared, head, hidden = 256, 8, 4, 32, 704
    ids = tokens(net)
    positions = net.op("Range", np.int64(0), net.op("Squeeze", length_of(net, ids), [0]),
                       np.int64(1))
    rows, columns = (net.op("Unsqueeze", positions, [axis]) for axis in (1, 0))
    mask = net.op("Where", net.op("Greater", columns, rows), -1e9, 0.0)
    frequencies = (1e4 ** (-np.arange(0, head, 2) / head)).reshape(1, -1)
    angles = net.op("Mul", net.op("Cast", rows, to=onnx.TensorProto.FLOAT), frequencies)
    angles = net.op("Concat", angles, angles, axis=-1)
    cosine, sine = net.op("Cos", angles), net.op("Sin", angles)

    def split(x, count):
        return net.split_heads(net.multiply(x, count * head), -1, count)

    def rotate(x):
        halves = net.op("Concat", net.op("Neg", net.cut(x, head // 2, head, 3)),
                        net.cut(x, 0, head // 2, 3), axis=3)
        return net.add(net.mul(x, cosine), net.mul(halves, sine))

    def repeat(x):
        many = net.op("Expand", net.op("Unsqueeze", x, [2]), [1, 1, heads // shared, 1, 1])
        return net.reshape(many, 1, heads, -1, head)

    x = embed(net, ids, width)
    for _ in range(3):
        inner = net.normalize_root(x)
        mixed = net.mix(rotate(split(inner, heads)), repeat(rotate(split(inner, shared))),
                        repeat(split(inner, shared)), head ** -0.5, mask)
        x = net.add(x, net.multiply(net.join_heads(mixed, -1, width), width))
        inner = net.normalize_root(x)
        gated = net.mul(net.silu(net.multiply(inner, hidden)), net.multiply(inner, hidden))
        x = net.add(x, net.multiply(gated, width))
    return net.multiply(net.normalize_root(x), WORDS)


def image_classifier(net):
    """Residual convolutions, and a mean over the whole image."""
    x = net.unit(net.input(1, 3, "height", "width"), 32, 3, 2, act=net.relu)
    for channels in (32, 64, 128):
        for stride in (1 if x.features == channels else 2, 1):
            inner = net.unit(net.unit(x, channels, 3, stride, act=net.relu), channels, 3)
            is_same = stride == 1 and x.features == channels
            x = net.relu(net.add(inner, x if is_same else net.unit(x, channels, 1, stride)))
    return net.classify(x, 100)


def speech_recognizer(net):
    """Two layers of LSTM in both directions."""
    x = net.input("length", 1, 40)
    for _ in range(2):
        x = both_directions(net, "LSTM", x, -1, 128, 4)
    return net.op("LogSoftmax", net.linear(x, 50), axis=-1)


def ranking(net):
    """Dense layers over a batch, with a cross of features."""
    x = first = net.input("batch", 512)
    for _ in range(3):
        x = net.add(net.mul(first, net.linear(x, 512)), x)
    for columns in (1024, 512, 256):
        x = net.relu(net.linear(x, columns))
    return net.op("Sigmoid", net.linear(x, 1))


NETWORKS = {build.__name__: build for build in (
    text_encoder, text_decoder, image_classifier, speech_recognizer, ranking)}
# Name of a network -> name of a dimension -> the smallest and the largest size of a request.
RANGES = {
    "text_encoder": {"length": (8, 256)},
    "text_decoder": {"length": (8, 256)},
    "image_classifier": {"height": (64, 224), "width": (64, 224)},
    "speech_recognizer": {"length": (16, 320)},
    "ranking": {"batch": (1, 256)},
}
