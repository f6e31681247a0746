"""Layers with random weights, for the sets of small networks in this folder."""

import math

import numpy as np

from networks.graph_writer import GraphWriter


class Value(str):
    """The name of a value, with the number of features that the layers before it made: its
    channels, or the width of its last axis."""

    features = 0


def with_features(name, features):
    value = Value(name)
    value.features = features
    return value


class NetworkWriter(GraphWriter):
    """The weights are the same for the same seed."""

    def __init__(self, seed=0, element=np.float32):
        super().__init__(element)
        self.random = np.random.default_rng(seed)
        self.inputs, self.input_elements = {}, {}

    def input(self, *shape, name="x", features=0, element=None):
        """An input; its features are the channels of a feature map, otherwise the last axis. A text
        among its sizes is the name of a dimension that stays open; `element` is its type, if that
        is not the writer's."""
        self.inputs[name] = list(shape)
        if element:
            self.input_elements[name] = element
        return with_features(name, features or shape[1 if len(shape) > 3 else -1])

    def op(self, name, *inputs, **attributes):
        """A node; its result has the features of its first input that has any."""
        made = super().op(name, *inputs, **attributes)
        return with_features(made, next((each.features for each in inputs
                                         if isinstance(each, Value)), 0))

    def weight(self, *shape):
        fan_in = math.prod(shape[1:]) or 1
        return (self.random.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)

    # --- Elements and shapes ---

    def relu(self, x):
        return self.op("Relu", x)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        inner = self.op("Erf", self.op("Div", x, math.sqrt(2)))
        return self.op("Mul", self.op("Mul", x, 0.5), self.op("Add", inner, 1.0))

    def add(self, x, other):
        return self.op("Add", x, other)

    def mul(self, x, other):
        return self.op("Mul", x, other)

    def reshape(self, x, *sizes, features=0):
        return with_features(self.op("Reshape", x, list(sizes)), features or x.features)

    def permute(self, x, *order, features=0):
        return with_features(self.op("Transpose", x, perm=list(order)), features or x.features)

    def cut(self, x, begin, end, axis):
        return self.op("Slice", x, [begin], [end], [axis])

    def halves(self, x):
        """Of the channels."""
        half = x.features // 2
        return (with_features(self.cut(x, 0, half, 1), half),
                with_features(self.cut(x, half, 2 * half, 1), half))

    def concatenate(self, *parts):
        """Along the channels."""
        return with_features(self.op("Concat", *parts, axis=1), sum(x.features for x in parts))

    def enlarge(self, x, factor, mode="nearest"):
        transformation = "asymmetric" if mode == "nearest" else "half_pixel"
        return self.op("Resize", x, "", np.array([1, 1, factor, factor], np.float32), mode=mode,
                       coordinate_transformation_mode=transformation, nearest_mode="floor")

    # --- Layers ---

    def convolve(self, x, outputs, size, stride=1, groups=1, pads=None, dilation=1):
        """`size`: of a square, or a list with the size of each axis."""
        sizes = [size] * 2 if isinstance(size, int) else size
        weight = self.weight(outputs, x.features // groups, *sizes)
        made = self.op("Conv", x, weight, self.weight(outputs), kernel_shape=sizes, group=groups,
                       strides=[stride] * len(sizes), dilations=[dilation] * len(sizes),
                       pads=pads or [dilation * (each // 2) for each in sizes] * 2)
        return with_features(made, outputs)

    def unit(self, x, outputs, size, stride=1, groups=1, act=None, **options):
        """A convolution with batch normalization, and `act` behind it."""
        x = self.normalize_batch(self.convolve(x, outputs, size, stride, groups, **options))
        return act(x) if act else x

    def convolve_transposed(self, x, outputs):
        """Doubles the sides."""
        made = self.op("ConvTranspose", x, self.weight(x.features, outputs, 4, 4),
                       kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])
        return with_features(made, outputs)

    def linear(self, x, columns):
        weight = self.random.standard_normal((x.features, columns)) / math.sqrt(x.features)
        made = self.add(self.op("MatMul", x, weight), self.weight(columns))
        return with_features(made, columns)

    def multiply(self, x, columns):
        """A product without a bias."""
        made = self.op("MatMul", x, self.weight(x.features, columns) / 4)
        return with_features(made, columns)

    def feed_forward(self, x, factor, act):
        return self.linear(act(self.linear(x, factor * x.features)), x.features)

    def classify(self, x, classes):
        return self.linear(self.op("Flatten", self.op("GlobalAveragePool", x)), classes)

    def squeeze_excite(self, x, ratio=4):
        squeezed = self.convolve(self.op("GlobalAveragePool", x), x.features // ratio, 1)
        return self.mul(x, self.op("Sigmoid", self.convolve(self.relu(squeezed), x.features, 1)))

    # --- Normalizations ---

    def normalize_batch(self, x):
        scale, bias, mean = (self.weight(x.features) for _ in range(3))
        variance = self.random.uniform(0.5, 1.5, x.features).astype(np.float32)
        return self.op("BatchNormalization", x, 1 + scale, bias, mean, variance, epsilon=1e-5)

    def normalize_instance(self, x):
        return self.op("InstanceNormalization", x, 1 + self.weight(x.features),
                       self.weight(x.features))

    def mean_of_last(self, x):
        return self.op("ReduceMean", x, axes=[-1], keepdims=1)

    def normalize_layer(self, x):
        mean = self.mean_of_last(x)
        centred = self.op("Sub", x, mean)
        variance = self.mean_of_last(self.mul(centred, centred))
        root = self.op("Sqrt", self.add(variance, 1e-5))
        scaled = self.mul(self.op("Div", centred, root), 1 + self.weight(x.features))
        return self.add(scaled, self.weight(x.features))

    def normalize_last(self, x):
        """The same as PyTorch's exporter writes it."""
        centred = self.op("Sub", x, self.mean_of_last(x))
        variance = self.mean_of_last(self.op("Pow", centred, 2.0))
        scaled = self.op("Div", centred, self.op("Sqrt", self.add(variance, 1e-6)))
        return self.add(self.mul(scaled, 1 + self.weight(x.features)), self.weight(x.features))

    def normalize_root(self, x):
        """Division by the root of the mean square."""
        mean = self.mean_of_last(self.op("Pow", x, 2.0))
        root = self.op("Sqrt", self.add(mean, 1e-6))
        return self.mul(self.mul(x, self.op("Reciprocal", root)), 1 + self.weight(x.features))

    # --- Attention ---

    def mix(self, queries, keys, values, scale, mask=None):
        """Attention: [..., rows, width] from three such tensors."""
        scores = self.mul(self.op("MatMul", queries, self.permute(keys, 0, 1, 3, 2)), scale)
        scores = scores if mask is None else self.add(scores, mask)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), values)

    def split_heads(self, x, length, heads, batch=1):
        parts = self.reshape(x, batch, length, heads, x.features // heads)
        return self.permute(parts, 0, 2, 1, 3)

    def join_heads(self, x, length, width, batch=1):
        return self.reshape(self.permute(x, 0, 2, 1, 3), batch, length, width, features=width)

    def attend(self, x, length, heads, batch=1):
        width = x.features
        parts = [self.split_heads(self.linear(x, width), length, heads, batch) for _ in range(3)]
        mixed = self.mix(*parts, (width // heads) ** -0.5)
        return self.linear(self.join_heads(mixed, length, width, batch), width)

    def encode(self, x, length, heads):
        x = self.add(x, self.attend(self.normalize_layer(x), length, heads))
        return self.add(x, self.feed_forward(self.normalize_layer(x), 4, self.gelu))
