#!/usr/bin/env python3
"""Writes small networks of kinds that the zoo does not have, with random weights: what users bring.
Benchmarks and tests of choosing use them, because no constant of Tessera was set by their times."""

import argparse
import math
import pathlib

import numpy as np
import onnx

from graph_writer import GraphWriter


class NetworkWriter(GraphWriter):
    """Layers with random weights, which are the same for the same seed."""

    def __init__(self, seed=0):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def weight(self, *shape):
        fan_in = math.prod(shape[1:]) or 1
        return (self.random.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)

    def convolve(self, x, inputs, outputs, size, stride=1, groups=1, pads=None):
        sizes = [size] * (len(pads) // 2 if pads else 2) if isinstance(size, int) else list(size)
        return self.op("Conv", x, self.weight(outputs, inputs // groups, *sizes),
                       self.weight(outputs), kernel_shape=sizes, strides=[stride] * len(sizes),
                       group=groups, pads=pads or [each // 2 for each in sizes] * 2)

    def normalize_batch(self, x, channels):
        scale, bias, mean = (self.weight(channels) for _ in range(3))
        variance = self.random.uniform(0.5, 1.5, channels).astype(np.float32)
        return self.op("BatchNormalization", x, 1 + scale, bias, mean, variance, epsilon=1e-5)

    def linear(self, x, rows, columns):
        weight = (self.random.standard_normal((rows, columns)) / math.sqrt(rows))
        return self.op("Add", self.op("MatMul", x, weight.astype(np.float32)), self.weight(columns))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        inner = self.op("Erf", self.op("Div", x, np.float32(math.sqrt(2))))
        half = self.op("Mul", x, np.float32(0.5))
        return self.op("Mul", half, self.op("Add", inner, np.float32(1)))

    def normalize_layer(self, x, width):
        mean = self.op("ReduceMean", x, axes=[-1], keepdims=1)
        centred = self.op("Sub", x, mean)
        variance = self.op("ReduceMean", self.op("Mul", centred, centred), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", variance, np.float32(1e-5)))
        scaled = self.op("Mul", self.op("Div", centred, root), 1 + self.weight(width))
        return self.op("Add", scaled, self.weight(width))

    def squeeze_excite(self, x, channels, ratio=4, act="Relu"):
        pooled = self.op("GlobalAveragePool", x)
        squeezed = self.op(act, self.convolve(pooled, channels, channels // ratio, 1))
        gate = self.op("Sigmoid", self.convolve(squeezed, channels // ratio, channels, 1))
        return self.op("Mul", x, gate)

    def attend(self, x, length, width, heads):
        head = width // heads
        parts = []
        for _ in range(3):
            split = self.op("Reshape", self.linear(x, width, width),
                            np.array([1, length, heads, head], np.int64))
            parts.append(self.op("Transpose", split, perm=[0, 2, 1, 3]))
        keys = self.op("Transpose", parts[1], perm=[0, 1, 3, 2])
        scores = self.op("Mul", self.op("MatMul", parts[0], keys), np.float32(head ** -0.5))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), parts[2])
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                         np.array([1, length, width], np.int64))
        return self.linear(joined, width, width)

    def encode(self, x, length, width, heads):
        x = self.op("Add", x, self.attend(self.normalize_layer(x, width), length, width, heads))
        hidden = self.gelu(self.linear(self.normalize_layer(x, width), width, 4 * width))
        return self.op("Add", x, self.linear(hidden, 4 * width, width))


def residual_tower(writer):
    """A board game's network: 8x8 maps, squeeze-and-excite, a policy and nothing else."""
    channels = 128
    x = writer.op("Relu", writer.convolve("x", 32, channels, 3))
    for _ in range(8):
        inner = writer.op("Relu", writer.convolve(x, channels, channels, 3))
        inner = writer.squeeze_excite(writer.convolve(inner, channels, channels, 3), channels)
        x = writer.op("Relu", writer.op("Add", inner, x))
    return {"x": [1, 32, 8, 8]}, writer.convolve(x, channels, 73, 1)


def vision_encoder(writer):
    """A small vision transformer."""
    width, length = 192, 196
    patches = writer.op("Conv", "x", writer.weight(width, 3, 16, 16), writer.weight(width),
                        kernel_shape=[16, 16], strides=[16, 16])
    flat = writer.op("Reshape", patches, np.array([1, width, length], np.int64))
    x = writer.op("Transpose", flat, perm=[0, 2, 1])
    for _ in range(6):
        x = writer.encode(x, length, width, 3)
    pooled = writer.op("ReduceMean", writer.normalize_layer(x, width), axes=[1], keepdims=0)
    return {"x": [1, 3, 224, 224]}, writer.linear(pooled, width, 1000)


def detector(writer):
    """A one-stage detector: SiLU, split paths, an upsampled neck."""
    def unit(x, inputs, outputs, size, stride=1):
        return writer.silu(writer.normalize_batch(
            writer.convolve(x, inputs, outputs, size, stride), outputs))

    def stage(x, channels, depth):
        left, right = unit(x, channels, channels // 2, 1), unit(x, channels, channels // 2, 1)
        for _ in range(depth):
            inner = unit(unit(left, channels // 2, channels // 2, 1), channels // 2,
                         channels // 2, 3)
            left = writer.op("Add", left, inner)
        return unit(writer.op("Concat", left, right, axis=1), channels, channels, 1)

    x = unit(unit("x", 3, 16, 3, 2), 16, 32, 3, 2)
    x = stage(x, 32, 1)
    middle = stage(unit(x, 32, 64, 3, 2), 64, 2)
    deep = stage(unit(middle, 64, 128, 3, 2), 128, 2)
    top = stage(unit(deep, 128, 256, 3, 2), 256, 1)
    up = writer.op("Resize", unit(top, 256, 128, 1), "", np.array([1, 1, 2, 2], np.float32),
                   mode="nearest", coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")
    neck = unit(writer.op("Concat", up, deep, axis=1), 256, 128, 1)
    return {"x": [1, 3, 256, 256]}, writer.convolve(stage(neck, 128, 1), 128, 85, 1)


def mobile_hard_swish(writer):
    """Inverted residuals with hard-swish and 5x5 depthwise kernels."""
    x = writer.op("HardSwish", writer.convolve("x", 3, 16, 3, 2))
    channels = 16
    for outputs, stride, size in ((24, 2, 3), (24, 1, 3), (40, 2, 5), (40, 1, 5), (80, 2, 3),
                                  (80, 1, 3), (112, 1, 3), (160, 2, 5), (160, 1, 5)):
        wide = channels * 4
        inner = writer.op("HardSwish", writer.convolve(x, channels, wide, 1))
        inner = writer.op("HardSwish", writer.convolve(inner, wide, wide, size, stride, wide))
        inner = writer.convolve(writer.squeeze_excite(inner, wide), wide, outputs, 1)
        x = writer.op("Add", x, inner) if stride == 1 and channels == outputs else inner
        channels = outputs
    pooled = writer.op("Flatten", writer.op("GlobalAveragePool", x))
    return {"x": [1, 3, 224, 224]}, writer.linear(pooled, channels, 1000)


def wave_encoder(writer):
    """Strided convolutions over a sound, then an encoder."""
    width, length = 192, 250
    x = "x"
    channels = 1
    for outputs, size, stride in ((64, 10, 5), (128, 8, 4), (width, 4, 2)):
        x = writer.gelu(writer.op(
            "Conv", x, writer.weight(outputs, channels, size), writer.weight(outputs),
            kernel_shape=[size], strides=[stride], pads=[size - stride, 0]))
        channels = outputs
    x = writer.op("Transpose", x, perm=[0, 2, 1])
    for _ in range(3):
        x = writer.encode(x, length, width, 4)
    return {"x": [1, 1, 10000]}, writer.linear(x, width, 32)


def temporal_blocks(writer):
    """Dilated depthwise 1-D convolutions, as speech separation has them."""
    x = writer.op("Conv", "x", writer.weight(128, 64, 1), writer.weight(128), kernel_shape=[1])
    for layer in range(8):
        reach = 2 ** (layer % 4)
        inner = writer.op("PRelu", writer.op("Conv", x, writer.weight(256, 128, 1),
                                             writer.weight(256), kernel_shape=[1]),
                          np.full((1, 1), 0.2, np.float32))
        inner = writer.op("Conv", inner, writer.weight(256, 1, 3), writer.weight(256),
                          kernel_shape=[3], dilations=[reach], pads=[reach, reach], group=256)
        inner = writer.op("Conv", inner, writer.weight(128, 256, 1), writer.weight(128),
                          kernel_shape=[1])
        x = writer.op("Add", x, inner)
    return {"x": [1, 64, 400]}, writer.op("Sigmoid", x)


def mixer(writer):
    """An MLP-mixer."""
    length, width = 64, 256
    x = "x"
    for _ in range(4):
        turned = writer.op("Transpose", writer.normalize_layer(x, width), perm=[0, 2, 1])
        mixed = writer.linear(writer.gelu(writer.linear(turned, length, 128)), 128, length)
        x = writer.op("Add", x, writer.op("Transpose", mixed, perm=[0, 2, 1]))
        hidden = writer.gelu(writer.linear(writer.normalize_layer(x, width), width, 1024))
        x = writer.op("Add", x, writer.linear(hidden, 1024, width))
    return {"x": [1, length, width]}, x


def generator(writer):
    """Transposed convolutions from a vector to a picture."""
    x = writer.op("Reshape", writer.linear("x", 100, 256 * 16), np.array([1, 256, 4, 4], np.int64))
    channels = 256
    for outputs in (128, 64, 32, 3):
        x = writer.op("ConvTranspose", x, writer.weight(channels, outputs, 4, 4),
                      kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])
        if outputs > 3:
            x = writer.op("Relu", writer.normalize_batch(x, outputs))
        channels = outputs
    return {"x": [1, 100]}, writer.op("Tanh", x)


def ranking(writer):
    """Products of few rows: dense layers over a batch of 8, with a cross of features."""
    x, width = "x", 512
    for _ in range(3):
        x = writer.op("Add", writer.op("Mul", "x", writer.linear(x, width, width)), x)
    for rows, columns in ((512, 1024), (1024, 512), (512, 256)):
        x = writer.op("Relu", writer.linear(x, rows, columns))
    return {"x": [8, width]}, writer.op("Sigmoid", writer.linear(x, 256, 1))


def evaluator(writer):
    """The small network of a chess engine: one board at a time, clipped layers."""
    x = "x"
    for rows, columns in ((768, 512), (512, 32), (32, 32)):
        x = writer.op("Clip", writer.linear(x, rows, columns), np.float32(0), np.float32(1))
    return {"x": [1, 768]}, writer.linear(x, 32, 1)


def super_resolution(writer):
    """Convolutions at full size and a pixel shuffle."""
    x = writer.op("Relu", writer.convolve("x", 3, 32, 5))
    for _ in range(3):
        x = writer.op("Relu", writer.convolve(x, 32, 32, 3))
    return {"x": [1, 3, 120, 160]}, writer.op("DepthToSpace", writer.convolve(x, 32, 12, 3),
                                              blocksize=2)


def grouped_residual(writer):
    """Grouped 3x3 convolutions between pointwise ones."""
    x = writer.op("MaxPool", writer.op("Relu", writer.convolve("x", 3, 64, 7, 2)),
                  kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for outputs, stride in ((128, 1), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        inner = writer.op("Relu", writer.convolve(x, channels, outputs, 1))
        inner = writer.op("Relu", writer.convolve(inner, outputs, outputs, 3, stride, 32))
        inner = writer.convolve(inner, outputs, outputs, 1)
        skip = x if stride == 1 and channels == outputs else writer.convolve(
            x, channels, outputs, 1, stride)
        x = writer.op("Relu", writer.op("Add", inner, skip))
        channels = outputs
    pooled = writer.op("Flatten", writer.op("GlobalAveragePool", x))
    return {"x": [1, 3, 160, 160]}, writer.linear(pooled, channels, 100)


NETWORKS = (residual_tower, vision_encoder, detector, mobile_hard_swish, wave_encoder,
            temporal_blocks, mixer, generator, ranking, evaluator, super_resolution,
            grouped_residual)


def write_network(network, folder, seed=0, make_writer=NetworkWriter):
    """Writes FOLDER/NAME/model.onnx and returns its path."""
    writer = make_writer(seed)
    inputs, output = network(writer)
    path = pathlib.Path(folder) / network.__name__ / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(writer.model(inputs, output, opset=14), path)
    return path


def write_all(networks, description, example, make_writer=NetworkWriter):
    """The program that writes the networks into a folder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"example: {example}")
    parser.add_argument("folder", type=pathlib.Path, help="gets a folder for each network")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: 0)")
    arguments = parser.parse_args()
    for network in networks:
        print(write_network(network, arguments.folder, arguments.seed, make_writer))


if __name__ == "__main__":
    write_all(NETWORKS, __doc__, "bench/more_networks.py build/more_networks")
