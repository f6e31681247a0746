"""A second set of small networks with random weights, of other kinds than more_networks.py: speech,
sequences, video, style transfer, windows of attention, dilated convolutions."""

import numpy as np

from networks.more_networks import upsample_to_image
from networks.network_writer import with_features


def large_kernels(net):
    """Depthwise 7x7 convolutions, and layers over channels that are the last axis."""
    def normalize(x):
        return net.permute(net.normalize_last(net.permute(x, 0, 2, 3, 1)), 0, 3, 1, 2)

    x = normalize(net.convolve(net.input(1, 3, 224, 224), 48, 4, 4, pads=[0] * 4))
    for channels in (48, 96, 192, 384):
        if channels > 48:
            x = net.convolve(normalize(x), channels, 2, 2, pads=[0] * 4)
        for _ in range(2):
            inner = net.permute(net.convolve(x, channels, 7, groups=channels), 0, 2, 3, 1)
            inner = net.feed_forward(net.normalize_last(inner), 4, net.gelu)
            inner = net.mul(inner, net.weight(channels))
            x = net.add(x, net.permute(inner, 0, 3, 1, 2))
    return net.classify(x, 1000)


def windows(net):
    """Attention in windows of 7x7, every second time in shifted ones."""
    side, width, window, heads = 28, 96, 7, 3
    across, head = side // window, width // heads
    x = net.convolve(net.input(1, 3, 224, 224), width, 8, 8, pads=[0] * 4)
    x = net.permute(net.reshape(x, 1, width, side * side), 0, 2, 1)

    def roll(x, shift):
        for axis in (1, 2):
            x = net.op("Concat", net.cut(x, shift, side, axis), net.cut(x, 0, shift, axis),
                       axis=axis)
        return x

    def attend(x):
        parts = net.reshape(net.linear(x, 3 * width), across ** 2, window ** 2, 3, heads, head)
        parts = net.permute(parts, 2, 0, 3, 1, 4)
        parts = [net.op("Gather", parts, part, axis=0) for part in range(3)]
        mixed = net.mix(*parts, head ** -0.5, net.weight(1, heads, window ** 2, window ** 2))
        return net.linear(net.join_heads(mixed, window ** 2, width, across ** 2), width)

    for block in range(4):
        inner = net.reshape(net.normalize_last(x), 1, side, side, width)
        inner = roll(inner, 3) if block % 2 else inner
        inner = net.permute(net.reshape(inner, 1, across, window, across, window, width),
                            0, 1, 3, 2, 4, 5)
        mixed = attend(net.reshape(inner, across ** 2, window ** 2, width))
        mixed = net.permute(net.reshape(mixed, 1, across, across, window, window, width),
                            0, 1, 3, 2, 4, 5)
        mixed = net.reshape(mixed, 1, side, side, width)
        mixed = roll(mixed, side - 3) if block % 2 else mixed
        x = net.add(x, net.reshape(mixed, 1, side * side, width))
        x = net.add(x, net.feed_forward(net.normalize_last(x), 4, net.gelu))
    return net.linear(net.op("ReduceMean", x, axes=[1], keepdims=0), 100)


def speech_encoder(net):
    """Attention between feed-forward layers, and long depthwise convolutions behind gates."""
    length, width = 100, 144

    def half_step(x):
        return net.add(x, net.mul(net.feed_forward(net.normalize_last(x), 4, net.silu), 0.5))

    x = net.input(1, length, width)
    for _ in range(3):
        x = half_step(x)
        x = net.add(x, net.attend(net.normalize_last(x), length, 4))
        inner = net.permute(net.normalize_last(x), 0, 2, 1)
        value, gate = net.halves(net.convolve(inner, 2 * width, [1]))
        inner = net.mul(value, net.op("Sigmoid", gate))
        inner = net.unit(inner, width, [31], groups=width, act=net.silu)
        x = half_step(net.add(x, net.permute(net.convolve(inner, width, [1]), 0, 2, 1)))
        x = net.normalize_last(x)
    return x


def dilated_sound(net):
    """Causal convolutions, each with twice the dilation of the one before, behind gates."""
    sums = None
    x = net.convolve(net.input(1, 1, 2000, features=1), 64, [1])
    for dilation in (1, 2, 4, 8, 16, 32, 64, 128):
        value, gate = net.halves(net.convolve(x, 128, [2], dilation=dilation, pads=[dilation, 0]))
        inner = net.mul(net.op("Tanh", value), net.op("Sigmoid", gate))
        part = net.convolve(inner, 64, [1])
        sums = part if sums is None else net.add(sums, part)
        x = net.add(x, net.convolve(inner, 64, [1]))
    return net.convolve(net.relu(net.convolve(net.relu(sums), 64, [1])), 256, [1])


def prompt(net):
    """A small decoder over a prompt of 32: rotated positions, shared keys, gated layers."""
    length, width, heads, shared, head, hidden = 32, 256, 8, 4, 32, 704
    angles = np.arange(length)[:, None] / np.arange(1, head + 1)
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)

    def split(x, count):
        return net.split_heads(net.multiply(x, count * head), length, count)

    def rotate(x):
        halves = net.op("Concat", net.op("Neg", net.cut(x, head // 2, head, 3)),
                        net.cut(x, 0, head // 2, 3), axis=3)
        return net.add(net.mul(x, cosine), net.mul(halves, sine))

    def repeat(x):
        many = net.op("Expand", net.op("Unsqueeze", x, [2]),
                      [1, shared, heads // shared, length, head])
        return net.reshape(many, 1, heads, length, head)

    x = net.input(1, length, width)
    for _ in range(4):
        inner = net.normalize_root(x)
        mixed = net.mix(rotate(split(inner, heads)), repeat(rotate(split(inner, shared))),
                        repeat(split(inner, shared)), head ** -0.5, mask)
        x = net.add(x, net.multiply(net.join_heads(mixed, length, width), width))
        inner = net.normalize_root(x)
        gated = net.mul(net.silu(net.multiply(inner, hidden)), net.multiply(inner, hidden))
        x = net.add(x, net.multiply(gated, width))
    return net.multiply(net.normalize_root(x), 4000)


def grouped_attention(net):
    """Groups of 8 channels with squeeze-and-excite."""
    x = net.unit(net.input(1, 3, 224, 224), 32, 3, 2, act=net.relu)
    for channels, depth in ((48, 1), (104, 2), (208, 3), (440, 1)):
        for stride in [2, *[1] * (depth - 1)]:
            inner = net.unit(x, channels, 1, act=net.relu)
            inner = net.unit(inner, channels, 3, stride, channels // 8, act=net.relu)
            inner = net.unit(net.squeeze_excite(inner), channels, 1)
            x = net.relu(net.add(inner, x if stride == 1 else net.unit(x, channels, 1, stride)))
    return net.classify(x, 1000)


def painter(net):
    """Transposed convolutions from one pixel to a picture."""
    x = net.input(1, 100, 1, 1)
    x = net.op("ConvTranspose", x, net.weight(100, 256, 4, 4), kernel_shape=[4, 4])
    return upsample_to_image(net, with_features(net.relu(x), 256))


def points(net):
    """The same layers for each of 1024 points, then their maximum."""
    x = net.input(1, 3, 1024, features=3)
    for channels in (64, 64, 64, 128, 512):
        x = net.unit(x, channels, [1], act=net.relu)
    x = net.relu(net.linear(net.op("ReduceMax", x, axes=[2], keepdims=0), 256))
    return net.linear(x, 40)


def both_directions(net, kind, x, length, units, gates, **attributes):
    """A recurrent layer; its result is [length, 1, 2 * units]."""
    x = net.op(kind, x, net.weight(2, gates * units, x.features),
               net.weight(2, gates * units, units), net.weight(2, 2 * gates * units),
               hidden_size=units, direction="bidirectional", **attributes)
    return net.reshape(net.permute(x, 0, 2, 1, 3), length, 1, 2 * units, features=2 * units)


def keywords(net):
    """Two layers of GRU in both directions."""
    x = net.input(60, 1, 40)
    for _ in range(2):
        x = both_directions(net, "GRU", x, 60, 128, 3, linear_before_reset=1)
    return net.op("LogSoftmax", net.linear(x, 50), axis=-1)


def segmenter(net):
    """Convolutions with several dilations side by side, and a large bilinear enlargement."""
    x = net.input(1, 3, 320, 320)
    for channels in (32, 64, 128):
        x = net.relu(net.convolve(x, channels, 3, 2))
    paths = [net.relu(net.convolve(x, 64, 1))]
    paths += [net.relu(net.convolve(x, 64, 3, dilation=dilation)) for dilation in (2, 4, 6)]
    whole = net.relu(net.convolve(net.op("GlobalAveragePool", x), 64, 1))
    x = net.concatenate(*paths, net.enlarge(whole, 40))
    return net.enlarge(net.convolve(net.relu(net.convolve(x, 64, 1)), 21, 1), 8, "linear")


def style_transfer(net):
    """Instance normalization, reflected borders and two enlargements."""
    def convolve(x, outputs, size, stride=1):
        border = size // 2
        x = net.op("Pad", x, [0, 0, border, border] * 2, mode="reflect")
        return net.convolve(x, outputs, size, stride, pads=[0] * 4)

    def unit(x, outputs, size, stride=1):
        return net.relu(net.normalize_instance(convolve(x, outputs, size, stride)))

    x = unit(unit(unit(net.input(1, 3, 224, 224), 16, 9), 32, 3, 2), 64, 3, 2)
    for _ in range(3):
        x = net.add(x, net.normalize_instance(convolve(unit(x, 64, 3), 64, 3)))
    for outputs in (32, 16):
        x = unit(net.enlarge(x, 2), outputs, 3)
    return convolve(x, 3, 9)


def text_reader(net):
    """Convolutions over a line of text, then an LSTM in both directions."""
    x = net.input(1, 1, 32, 100)
    for channels, pool in ((64, [2, 2]), (128, [2, 2]), (256, None), (256, [2, 1]), (512, [2, 1])):
        x = net.unit(x, channels, 3, act=net.relu)
        x = net.op("MaxPool", x, kernel_shape=pool, strides=pool) if pool else x
    x = net.relu(net.convolve(x, 512, 2, pads=[0] * 4))
    x = net.permute(net.op("Squeeze", x, [2]), 2, 0, 1)
    return net.linear(both_directions(net, "LSTM", x, 24, 256, 4), 37)


def video(net):
    """Convolutions and poolings over space and time."""
    x = net.input(1, 3, 16, 64, 64)
    for channels, pool in ((16, [1, 2, 2]), (32, [2, 2, 2]), (64, [2, 2, 2]), (128, [2, 2, 2])):
        x = net.relu(net.convolve(x, channels, [3, 3, 3]))
        x = net.op("MaxPool", x, kernel_shape=pool, strides=pool)
    return net.classify(x, 101)


def residual_enlargement(net):
    """Residual convolutions at full size, and a pixel shuffle."""
    first = x = net.convolve(net.input(1, 3, 160, 160), 32, 3)
    for _ in range(4):
        inner = net.convolve(net.relu(net.convolve(x, 32, 3)), 32, 3)
        x = net.add(x, net.mul(inner, 0.1))
    x = net.convolve(net.add(first, net.convolve(x, 32, 3)), 128, 3)
    x = with_features(net.op("DepthToSpace", x, blocksize=2, mode="CRD"), 32)
    return net.convolve(x, 3, 3)


def mobile_attention(net):
    """Inverted residuals, then attention between the same pixels of all patches."""
    def inverted(x, outputs, stride):
        wide = 4 * x.features
        inner = net.silu(net.convolve(x, wide, 1))
        inner = net.silu(net.convolve(inner, wide, 3, stride, wide))
        inner = net.convolve(inner, outputs, 1)
        return net.add(x, inner) if stride == 1 and x.features == outputs else inner

    x = net.silu(net.convolve(net.input(1, 3, 256, 256), 16, 3, 2))
    for outputs, stride in ((32, 1), (48, 2), (48, 1), (64, 2)):
        x = inverted(x, outputs, stride)
    side, channels, width = 32, 64, 96
    half, count = side // 2, side * side // 4
    inner = net.convolve(net.silu(net.convolve(x, channels, 3)), width, 1)
    inner = net.permute(net.reshape(inner, width * half, 2, half, 2), 0, 2, 1, 3)
    inner = net.permute(net.reshape(inner, 1, width, count, 4), 0, 3, 2, 1)
    inner = net.reshape(inner, 4, count, width)
    for _ in range(2):
        inner = net.add(inner, net.attend(net.normalize_last(inner), count, 4, batch=4))
        inner = net.add(inner, net.feed_forward(net.normalize_last(inner), 2, net.silu))
    inner = net.permute(net.reshape(inner, 1, 4, count, width), 0, 3, 2, 1)
    inner = net.permute(net.reshape(inner, width * half, half, 2, 2), 0, 2, 1, 3)
    inner = net.silu(net.convolve(net.reshape(inner, 1, width, side, side), channels, 1))
    x = net.silu(net.convolve(net.concatenate(x, inner), channels, 3))
    return net.classify(x, 1000)


NETWORKS = {build.__name__: build for build in (
    large_kernels, windows, speech_encoder, dilated_sound, prompt, grouped_attention, painter,
    points, keywords, segmenter, style_transfer, text_reader, video, residual_enlargement,
    mobile_attention)}
