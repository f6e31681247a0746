#!/usr/bin/env python3
"""Writes a second set of small networks with random weights, of other kinds than more_networks.py: speech,
sequences, video, style transfer, windows of attention, dilated convolutions."""

import numpy as np
from more_networks import NetworkWriter, write_all


class BlockWriter(NetworkWriter):
    """Also layers that several networks below have."""

    def normalize_last(self, x, width):
        """Normalisation of the last axis, as PyTorch's exporter writes it."""
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        square = self.op("Pow", centred, np.float32(2))
        variance = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        scaled = self.op("Div", centred, self.op("Sqrt", self.op("Add", variance, np.float32(1e-6))))
        return self.op("Add", self.op("Mul", scaled, 1 + self.weight(width)), self.weight(width))

    def normalize_root(self, x, width):
        """Division by the root of the mean square."""
        mean = self.op("ReduceMean", self.op("Pow", x, np.float32(2)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, np.float32(1e-6)))
        return self.op("Mul", self.op("Mul", x, self.op("Reciprocal", root)), 1 + self.weight(width))

    def normalize_instance(self, x, channels):
        return self.op("InstanceNormalization", x, 1 + self.weight(channels), self.weight(channels))

    def reshape(self, x, *sizes):
        return self.op("Reshape", x, np.array(sizes, np.int64))

    def permute(self, x, *order):
        return self.op("Transpose", x, perm=list(order))

    def cut(self, x, begin, end, axis):
        begins, ends, axes = (np.array([number], np.int64) for number in (begin, end, axis))
        return self.op("Slice", x, begins, ends, axes)

    def halves(self, x, channels):
        return self.cut(x, 0, channels, 1), self.cut(x, channels, 2 * channels, 1)

    def enlarge(self, x, factor, mode="nearest"):
        transformation = "asymmetric" if mode == "nearest" else "half_pixel"
        return self.op("Resize", x, "", np.array([1, 1, factor, factor], np.float32), mode=mode,
                       coordinate_transformation_mode=transformation, nearest_mode="floor")

    def mix(self, queries, keys, values, scale, mask=None):
        """Attention: [..., rows, width] from three such tensors."""
        last = self.permute(keys, 0, 1, 3, 2)
        scores = self.op("Mul", self.op("MatMul", queries, last), np.float32(scale))
        if mask is not None:
            scores = self.op("Add", scores, mask)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), values)

    def feed_forward(self, x, width, factor, act):
        return self.linear(act(self.linear(x, width, factor * width)), factor * width, width)

    def classify(self, x, channels, classes):
        return self.linear(self.op("Flatten", self.op("GlobalAveragePool", x)), channels, classes)


def large_kernels(writer):
    """Depthwise 7x7 convolutions, and layers over channels that are the last axis."""
    def normalize(x, channels):
        return writer.permute(writer.normalize_last(writer.permute(x, 0, 2, 3, 1), channels),
                              0, 3, 1, 2)

    x, before = "x", 3
    for channels in (48, 96, 192, 384):
        size = 4 if before == 3 else 2
        x = x if before == 3 else normalize(x, before)
        x = writer.op("Conv", x, writer.weight(channels, before, size, size),
                      writer.weight(channels), kernel_shape=[size, size], strides=[size, size])
        x = normalize(x, channels) if before == 3 else x
        for _ in range(2):
            inner = writer.permute(writer.convolve(x, channels, channels, 7, groups=channels),
                                   0, 2, 3, 1)
            inner = writer.feed_forward(writer.normalize_last(inner, channels), channels, 4,
                                        writer.gelu)
            inner = writer.op("Mul", inner, writer.weight(channels))
            x = writer.op("Add", x, writer.permute(inner, 0, 3, 1, 2))
        before = channels
    return {"x": [1, 3, 224, 224]}, writer.classify(x, 384, 1000)


def windows(writer):
    """Attention in windows of 7x7, every second time in shifted ones."""
    side, width, window, heads = 28, 96, 7, 3
    across, head = side // window, width // heads
    x = writer.op("Conv", "x", writer.weight(width, 3, 8, 8), writer.weight(width),
                  kernel_shape=[8, 8], strides=[8, 8])
    x = writer.permute(writer.reshape(x, 1, width, side * side), 0, 2, 1)

    def roll(x, shift):
        for axis in (1, 2):
            x = writer.op("Concat", writer.cut(x, shift, side, axis), writer.cut(x, 0, shift, axis),
                          axis=axis)
        return x

    for block in range(4):
        inner = writer.reshape(writer.normalize_last(x, width), 1, side, side, width)
        inner = roll(inner, 3) if block % 2 else inner
        inner = writer.permute(writer.reshape(inner, 1, across, window, across, window, width),
                               0, 1, 3, 2, 4, 5)
        inner = writer.reshape(inner, across ** 2, window ** 2, width)
        parts = writer.permute(
            writer.reshape(writer.linear(inner, width, 3 * width), across ** 2, window ** 2, 3,
                           heads, head), 2, 0, 3, 1, 4)
        queries, keys, values = (writer.op("Gather", parts, np.array(part, np.int64), axis=0)
                                 for part in range(3))
        mixed = writer.mix(queries, keys, values, head ** -0.5,
                           writer.weight(1, heads, window ** 2, window ** 2))
        mixed = writer.reshape(writer.permute(mixed, 0, 2, 1, 3), across ** 2, window ** 2, width)
        mixed = writer.reshape(writer.linear(mixed, width, width), 1, across, across, window, window,
                               width)
        mixed = writer.reshape(writer.permute(mixed, 0, 1, 3, 2, 4, 5), 1, side, side, width)
        mixed = roll(mixed, side - 3) if block % 2 else mixed
        x = writer.op("Add", x, writer.reshape(mixed, 1, side * side, width))
        x = writer.op("Add", x, writer.feed_forward(writer.normalize_last(x, width), width, 4,
                                                    writer.gelu))
    return {"x": [1, 3, 224, 224]}, writer.linear(
        writer.op("ReduceMean", x, axes=[1], keepdims=0), width, 100)


def speech_encoder(writer):
    """Attention between feed-forward layers, and long depthwise convolutions behind gates."""
    length, width = 100, 144

    def half_step(x):
        inner = writer.feed_forward(writer.normalize_last(x, width), width, 4, writer.silu)
        return writer.op("Add", x, writer.op("Mul", inner, np.float32(0.5)))

    x = "x"
    for _ in range(3):
        x = half_step(x)
        x = writer.op("Add", x, writer.attend(writer.normalize_last(x, width), length, width, 4))
        inner = writer.permute(writer.normalize_last(x, width), 0, 2, 1)
        value, gate = writer.halves(writer.convolve(inner, width, 2 * width, 1, pads=[0, 0]), width)
        inner = writer.op("Mul", value, writer.op("Sigmoid", gate))
        inner = writer.convolve(inner, width, width, 31, groups=width, pads=[15, 15])
        inner = writer.silu(writer.normalize_batch(inner, width))
        inner = writer.convolve(inner, width, width, 1, pads=[0, 0])
        x = half_step(writer.op("Add", x, writer.permute(inner, 0, 2, 1)))
        x = writer.normalize_last(x, width)
    return {"x": [1, length, width]}, x


def dilated_sound(writer):
    """Causal convolutions, each with twice the dilation of the one before, behind gates."""
    channels, sums = 64, None
    x = writer.convolve("x", 1, channels, 1, pads=[0, 0])
    for dilation in (1, 2, 4, 8, 16, 32, 64, 128):
        both = writer.op("Conv", x, writer.weight(2 * channels, channels, 2),
                         writer.weight(2 * channels), kernel_shape=[2], dilations=[dilation],
                         pads=[dilation, 0])
        value, gate = writer.halves(both, channels)
        inner = writer.op("Mul", writer.op("Tanh", value), writer.op("Sigmoid", gate))
        part = writer.convolve(inner, channels, channels, 1, pads=[0, 0])
        sums = part if sums is None else writer.op("Add", sums, part)
        x = writer.op("Add", x, writer.convolve(inner, channels, channels, 1, pads=[0, 0]))
    x = writer.op("Relu", writer.convolve(writer.op("Relu", sums), channels, channels, 1,
                                          pads=[0, 0]))
    return {"x": [1, 1, 2000]}, writer.convolve(x, channels, 256, 1, pads=[0, 0])


def prompt(writer):
    """A small decoder over a prompt of 32: rotated positions, shared keys, gated layers."""
    length, width, heads, shared, head, hidden = 32, 256, 8, 4, 32, 704
    angles = np.arange(length)[:, None] / np.arange(1, head + 1)
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)

    def multiply(x, columns, rows=width):
        return writer.op("MatMul", x, writer.weight(rows, columns) / 4)

    def split(x, count):
        return writer.permute(writer.reshape(multiply(x, count * head), 1, length, count, head),
                              0, 2, 1, 3)

    def rotate(x):
        turned = writer.op("Concat", writer.op("Neg", writer.cut(x, head // 2, head, 3)),
                           writer.cut(x, 0, head // 2, 3), axis=3)
        return writer.op("Add", writer.op("Mul", x, cosine), writer.op("Mul", turned, sine))

    def repeat(x):
        x = writer.op("Unsqueeze", x, np.array([2], np.int64))
        x = writer.op("Expand", x,
                      np.array([1, shared, heads // shared, length, head], np.int64))
        return writer.reshape(x, 1, heads, length, head)

    x = "x"
    for _ in range(4):
        inner = writer.normalize_root(x, width)
        mixed = writer.mix(rotate(split(inner, heads)), repeat(rotate(split(inner, shared))),
                           repeat(split(inner, shared)), head ** -0.5, mask)
        mixed = writer.reshape(writer.permute(mixed, 0, 2, 1, 3), 1, length, width)
        x = writer.op("Add", x, multiply(mixed, width))
        inner = writer.normalize_root(x, width)
        gated = writer.op("Mul", writer.silu(multiply(inner, hidden)), multiply(inner, hidden))
        x = writer.op("Add", x, multiply(gated, width, hidden))
    return {"x": [1, length, width]}, multiply(writer.normalize_root(x, width), 4000)


def grouped_attention(writer):
    """Groups of 8 channels with squeeze-and-excite."""
    x = writer.op("Relu", writer.normalize_batch(writer.convolve("x", 3, 32, 3, 2), 32))
    before = 32
    for channels, depth in ((48, 1), (104, 2), (208, 3), (440, 1)):
        for index in range(depth):
            stride = 2 if index == 0 else 1
            inner = writer.op("Relu", writer.normalize_batch(
                writer.convolve(x, before, channels, 1), channels))
            inner = writer.op("Relu", writer.normalize_batch(
                writer.convolve(inner, channels, channels, 3, stride, channels // 8), channels))
            inner = writer.squeeze_excite(inner, channels)
            inner = writer.normalize_batch(writer.convolve(inner, channels, channels, 1), channels)
            skip = x if stride == 1 else writer.normalize_batch(
                writer.convolve(x, before, channels, 1, stride), channels)
            x = writer.op("Relu", writer.op("Add", inner, skip))
            before = channels
    return {"x": [1, 3, 224, 224]}, writer.classify(x, 440, 1000)


def painter(writer):
    """Transposed convolutions from one pixel to a picture."""
    x = writer.op("Relu", writer.op("ConvTranspose", "x", writer.weight(100, 256, 4, 4),
                                    kernel_shape=[4, 4]))
    channels = 256
    for outputs in (128, 64, 32, 3):
        x = writer.op("ConvTranspose", x, writer.weight(channels, outputs, 4, 4),
                      kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
        if outputs > 3:
            x = writer.op("Relu", writer.normalize_batch(x, outputs))
        channels = outputs
    return {"x": [1, 100, 1, 1]}, writer.op("Tanh", x)


def points(writer):
    """The same layers for each of 1024 points, then their maximum."""
    x, before = "x", 3
    for channels in (64, 64, 64, 128, 512):
        x = writer.op("Relu", writer.normalize_batch(
            writer.convolve(x, before, channels, 1, pads=[0, 0]), channels))
        before = channels
    x = writer.op("Relu", writer.linear(writer.op("ReduceMax", x, axes=[2], keepdims=0), 512, 256))
    return {"x": [1, 3, 1024]}, writer.linear(x, 256, 40)


def keywords(writer):
    """Two layers of GRU in both directions."""
    x, before, units = "x", 40, 128
    for _ in range(2):
        x = writer.op("GRU", x, writer.weight(2, 3 * units, before),
                      writer.weight(2, 3 * units, units), writer.weight(2, 6 * units),
                      hidden_size=units, direction="bidirectional", linear_before_reset=1)
        before = 2 * units
        x = writer.reshape(writer.permute(x, 0, 2, 1, 3), 60, 1, before)
    return {"x": [60, 1, 40]}, writer.op("LogSoftmax", writer.linear(x, before, 50), axis=-1)


def segmenter(writer):
    """Convolutions with several dilations side by side, and a large bilinear enlargement."""
    x, before = "x", 3
    for channels in (32, 64, 128):
        x = writer.op("Relu", writer.convolve(x, before, channels, 3, 2))
        before = channels
    paths = [writer.op("Relu", writer.convolve(x, 128, 64, 1))]
    for dilation in (2, 4, 6):
        paths.append(writer.op("Relu", writer.op(
            "Conv", x, writer.weight(64, 128, 3, 3), writer.weight(64), kernel_shape=[3, 3],
            dilations=[dilation] * 2, pads=[dilation] * 4)))
    whole = writer.op("Relu", writer.convolve(writer.op("GlobalAveragePool", x), 128, 64, 1))
    paths.append(writer.enlarge(whole, 40))
    x = writer.op("Relu", writer.convolve(writer.op("Concat", *paths, axis=1), 320, 64, 1))
    return {"x": [1, 3, 320, 320]}, writer.enlarge(writer.convolve(x, 64, 21, 1), 8, "linear")


def style_transfer(writer):
    """Instance normalisation, reflected borders and two enlargements."""
    def convolve(x, inputs, outputs, size, stride=1):
        border = size // 2
        x = writer.op("Pad", x, np.array([0, 0, border, border] * 2, np.int64), mode="reflect")
        return writer.convolve(x, inputs, outputs, size, stride, pads=[0] * 4)

    def unit(x, inputs, outputs, size, stride=1):
        return writer.op("Relu", writer.normalize_instance(
            convolve(x, inputs, outputs, size, stride), outputs))

    x = unit(unit(unit("x", 3, 16, 9), 16, 32, 3, 2), 32, 64, 3, 2)
    for _ in range(3):
        inner = convolve(unit(x, 64, 64, 3), 64, 64, 3)
        x = writer.op("Add", x, writer.normalize_instance(inner, 64))
    for inputs, outputs in ((64, 32), (32, 16)):
        x = unit(writer.enlarge(x, 2), inputs, outputs, 3)
    return {"x": [1, 3, 224, 224]}, convolve(x, 16, 3, 9)


def text_reader(writer):
    """Convolutions over a line of text, then an LSTM in both directions."""
    x, before = "x", 1
    for channels, pool in ((64, [2, 2]), (128, [2, 2]), (256, None), (256, [2, 1]), (512, [2, 1])):
        x = writer.op("Relu", writer.normalize_batch(writer.convolve(x, before, channels, 3),
                                                     channels))
        if pool:
            x = writer.op("MaxPool", x, kernel_shape=pool, strides=pool)
        before = channels
    x = writer.op("Relu", writer.convolve(x, 512, 512, 2, pads=[0] * 4))
    x = writer.permute(writer.op("Squeeze", x, np.array([2], np.int64)), 2, 0, 1)
    x = writer.op("LSTM", x, writer.weight(2, 1024, 512), writer.weight(2, 1024, 256),
                  writer.weight(2, 2048), hidden_size=256, direction="bidirectional")
    x = writer.reshape(writer.permute(x, 0, 2, 1, 3), 24, 1, 512)
    return {"x": [1, 1, 32, 100]}, writer.linear(x, 512, 37)


def video(writer):
    """Convolutions and poolings over space and time."""
    x, before = "x", 3
    for channels, pool in ((16, [1, 2, 2]), (32, [2, 2, 2]), (64, [2, 2, 2]), (128, [2, 2, 2])):
        x = writer.op("Relu", writer.convolve(x, before, channels, 3, pads=[1] * 6))
        x = writer.op("MaxPool", x, kernel_shape=pool, strides=pool)
        before = channels
    return {"x": [1, 3, 16, 64, 64]}, writer.classify(x, 128, 101)


def residual_enlargement(writer):
    """Residual convolutions at full size, and a pixel shuffle."""
    first = x = writer.convolve("x", 3, 32, 3)
    for _ in range(4):
        inner = writer.convolve(writer.op("Relu", writer.convolve(x, 32, 32, 3)), 32, 32, 3)
        x = writer.op("Add", x, writer.op("Mul", inner, np.float32(0.1)))
    x = writer.op("Add", first, writer.convolve(x, 32, 32, 3))
    x = writer.op("DepthToSpace", writer.convolve(x, 32, 128, 3), blocksize=2, mode="CRD")
    return {"x": [1, 3, 160, 160]}, writer.convolve(x, 32, 3, 3)


def mobile_attention(writer):
    """Inverted residuals, then attention between the same pixels of all patches."""
    def inverted(x, inputs, outputs, stride):
        inner = writer.silu(writer.convolve(x, inputs, 4 * inputs, 1))
        inner = writer.silu(writer.convolve(inner, 4 * inputs, 4 * inputs, 3, stride, 4 * inputs))
        inner = writer.convolve(inner, 4 * inputs, outputs, 1)
        return writer.op("Add", x, inner) if stride == 1 and inputs == outputs else inner

    x = writer.silu(writer.convolve("x", 3, 16, 3, 2))
    for inputs, outputs, stride in ((16, 32, 1), (32, 48, 2), (48, 48, 1), (48, 64, 2)):
        x = inverted(x, inputs, outputs, stride)
    side, channels, width, heads = 32, 64, 96, 4
    half, count, head = side // 2, side * side // 4, width // heads
    inner = writer.convolve(writer.silu(writer.convolve(x, channels, channels, 3)), channels, width,
                            1)
    inner = writer.permute(writer.reshape(inner, width * half, 2, half, 2), 0, 2, 1, 3)
    inner = writer.permute(writer.reshape(inner, 1, width, count, 4), 0, 3, 2, 1)
    inner = writer.reshape(inner, 4, count, width)
    for _ in range(2):
        before = writer.normalize_last(inner, width)
        parts = [writer.permute(writer.reshape(writer.linear(before, width, width), 4, count, heads,
                                               head), 0, 2, 1, 3) for _ in range(3)]
        mixed = writer.permute(writer.mix(*parts, head ** -0.5), 0, 2, 1, 3)
        mixed = writer.linear(writer.reshape(mixed, 4, count, width), width, width)
        inner = writer.op("Add", inner, mixed)
        inner = writer.op("Add", inner, writer.feed_forward(writer.normalize_last(inner, width),
                                                            width, 2, writer.silu))
    inner = writer.permute(writer.reshape(inner, 1, 4, count, width), 0, 3, 2, 1)
    inner = writer.permute(writer.reshape(inner, width * half, half, 2, 2), 0, 2, 1, 3)
    inner = writer.silu(writer.convolve(writer.reshape(inner, 1, width, side, side), width, channels,
                                        1))
    x = writer.silu(writer.convolve(writer.op("Concat", x, inner, axis=1), 2 * channels, channels,
                                    3))
    return {"x": [1, 3, 256, 256]}, writer.classify(x, channels, 1000)


NETWORKS = (large_kernels, windows, speech_encoder, dilated_sound, prompt, grouped_attention, painter,
            points, keywords, segmenter, style_transfer, text_reader, video, residual_enlargement,
            mobile_attention)


if __name__ == "__main__":
    write_all(NETWORKS, __doc__, "bench/even_more_networks.py build/even_more_networks", BlockWriter)
