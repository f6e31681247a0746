"""Small networks with the structure of real ones, built in code with seeded weights.

Each function returns an onnx.ModelProto whose inner types are declared as onnx infers them.
Standard deviations are chosen so that values stay near 1 and a mistake anywhere changes the output.
"""

import numpy as np
import onnx
from onnx import TensorProto
from small_models import model_of, node, tensor_type


class Network:
    """Collects nodes and weights; every method returns the name of the value that it adds."""

    def __init__(self, name: str, opset: int):
        self.name = name
        self.opset = opset
        self.nodes = []
        self.weights = {}
        self.inputs = {}
        self.outputs = {}
        self.random = np.random.default_rng(len(name) * 1000 + opset)

    def input(self, name, shape, element=TensorProto.FLOAT):
        self.inputs[name] = tensor_type(element, shape)
        return name

    def constant(self, array) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights[name] = array
        return name

    def normal(self, *shape, deviation=1.0, mean=0.0) -> str:
        values = self.random.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
        return self.constant(values + np.float32(mean))

    def positive(self, *shape) -> str:
        return self.constant(self.random.uniform(0.5, 1.5, shape).astype(np.float32))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"value_{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(node(op, inputs, names, f"node_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def convolution(self, source, inputs, outputs, kernel, group=1, bias=True, **attributes):
        fan_in = inputs // group * kernel * kernel
        weight = self.normal(outputs, inputs // group, kernel, kernel, deviation=fan_in**-0.5)
        biases = [self.normal(outputs)] if bias else []
        return self.node("Conv", source, weight, *biases, group=group, **attributes)

    def batch_normalization(self, source, channels, **attributes):
        return self.node("BatchNormalization", source, self.positive(channels),
                         self.normal(channels), self.normal(channels), self.positive(channels),
                         **attributes)

    def linear(self, source, inputs, outputs):
        product = self.node("MatMul", source, self.normal(inputs, outputs, deviation=inputs**-0.5))
        return self.node("Add", product, self.normal(outputs))

    def output(self, name, element=TensorProto.FLOAT):
        self.outputs[name] = tensor_type(element, None)

    def model(self) -> onnx.ModelProto:
        model = model_of(self.nodes, self.inputs, self.outputs, self.weights, opset=self.opset,
                         name=self.name)
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def residual_network() -> onnx.ModelProto:
    net = Network("residual_network", 9)
    x = net.input("image", [1, 3, 33, 29])
    x = net.convolution(x, 3, 8, 7, strides=[2, 2], pads=[3, 3, 3, 3], bias=False)
    x = net.node("Relu", net.batch_normalization(x, 8))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    shortcut = net.convolution(x, 8, 12, 1)
    x = net.node("Relu", net.batch_normalization(net.convolution(x, 8, 12, 3, pads=[1] * 4), 12))
    x = net.convolution(x, 12, 12, 3, pads=[2] * 4, dilations=[2, 2])
    x = net.node("Relu", net.node("Sum", x, shortcut))
    x = net.node("LRN", x, size=5)
    x = net.node("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    x = net.node("Dropout", net.node("GlobalAveragePool", x))
    x = net.node("Reshape", x, net.constant(np.array([0, -1], np.int64)))
    x = net.node("Gemm", x, net.normal(10, 12, deviation=0.3), net.normal(10), transB=1)
    net.output(net.node("Softmax", x))
    return net.model()


def shuffled_depthwise_network() -> onnx.ModelProto:
    net = Network("shuffled_depthwise_network", 20)
    x = net.input("image", [2, 6, 17, 15])
    x = net.convolution(x, 6, 6, 3, group=6, pads=[1, 1, 1, 1], strides=[2, 1])
    x = net.node("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))
    left, right = net.node("Split", x, outputs=2, axis=1, num_outputs=2)
    left = net.node("HardSwish", net.convolution(left, 3, 6, 1))
    right = net.node("Mul", right, net.node("Sigmoid", right))
    x = net.node("Concat", left, right, axis=1)
    x = net.convolution(x, 9, 12, 3, group=3, auto_pad="SAME_LOWER")
    x = net.node("Reshape", x, net.constant(np.array([2, 3, 4, 9, 15], np.int64)))
    x = net.node("Transpose", x, perm=[0, 2, 1, 3, 4])
    x = net.node("Reshape", x, net.constant(np.array([0, 12, 9, 15], np.int64)))
    x = net.node("ReduceMean", x, net.constant(np.array([2, 3], np.int64)), keepdims=0)
    net.output(net.node("LogSoftmax", net.linear(x, 12, 5)))
    return net.model()


def upsampling_network() -> onnx.ModelProto:
    net = Network("upsampling_network", 17)
    x = net.input("image", [1, 4, 12, 10])
    skip = net.node("LeakyRelu", net.convolution(x, 4, 8, 3, pads=[1] * 4), alpha=0.2)
    x = net.node("InstanceNormalization", skip, net.positive(8), net.normal(8))
    x = net.convolution(x, 8, 16, 2, strides=[2, 2])
    weight = net.normal(16, 4, 2, 2, deviation=0.25)
    x = net.node("ConvTranspose", x, weight, net.normal(8), strides=[2, 2], group=2)
    x = net.node("Concat", x, skip, axis=1)
    x = net.node("Pad", x, net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)), mode="edge")
    x = net.node("Tanh", net.convolution(x, 16, 6, 3))
    scales = net.constant(np.array([1, 1, 2, 1.5], np.float32))
    net.output(net.node("Resize", x, "", scales, mode="linear"))
    return net.model()


def attention_network() -> onnx.ModelProto:
    """Token ids of any batch and length: shapes are computed in the graph."""
    net = Network("attention_network", 20)
    width, heads = 16, 2
    tokens = net.input("tokens", ["batch", "length"], TensorProto.INT64)
    x = net.node("Gather", net.normal(50, width), tokens)
    shape = net.node("Shape", x)
    batch = net.node("Gather", shape, net.constant(np.array([0], np.int64)))
    length = net.node("Gather", shape, net.constant(np.array([1], np.int64)))
    split_shape = net.node("Concat", batch, length,
                           net.constant(np.array([heads, width // heads], np.int64)), axis=0)
    normalized = net.node("LayerNormalization", x, net.positive(width), net.normal(width))

    def by_head(permutation):
        projected = net.node("Reshape", net.linear(normalized, width, width), split_shape)
        return net.node("Transpose", projected, perm=permutation)

    scores = net.node("MatMul", by_head([0, 2, 1, 3]), by_head([0, 2, 3, 1]))
    scores = net.node("Div", scores, net.constant(np.float32(8**0.5)))
    attended = net.node("MatMul", net.node("Softmax", scores), by_head([0, 2, 1, 3]))
    attended = net.node("Transpose", attended, perm=[0, 2, 1, 3])
    merged = net.node("Concat", batch, length, net.constant(np.array([width], np.int64)), axis=0)
    x = net.node("Add", x, net.node("Reshape", attended, merged))
    x = net.node("Add", x, net.linear(net.node("Gelu", net.linear(x, width, 32)), 32, width))
    last = net.node("Slice", x, net.constant(np.array([-1], np.int64)),
                    net.constant(np.array([2**62], np.int64)),
                    net.constant(np.array([1], np.int64)))
    net.output(net.node("Squeeze", last, net.constant(np.array([1], np.int64))))
    return net.model()


def recurrent_network() -> onnx.ModelProto:
    net = Network("recurrent_network", 14)
    hidden = 6
    tokens = net.input("tokens", [7, 3], TensorProto.INT64)
    x = net.node("Gather", net.normal(20, 5), tokens)
    weight = net.normal(2, 4 * hidden, 5, deviation=0.4)
    recurrence = net.normal(2, 4 * hidden, hidden, deviation=0.4)
    every, last, _ = net.node("LSTM", x, weight, recurrence,
                              net.normal(2, 8 * hidden, deviation=0.3), outputs=3,
                              hidden_size=hidden, direction="bidirectional")
    x = net.node("Transpose", every, perm=[0, 2, 1, 3])
    x = net.node("Reshape", x, net.constant(np.array([0, 0, -1], np.int64)))
    net.output(net.node("Softmax", net.linear(x, 2 * hidden, 4), axis=-1))
    net.output(net.node("ReduceSum", last, net.constant(np.array([0], np.int64)), keepdims=0))
    return net.model()


MODELS = (
    residual_network,
    shuffled_depthwise_network,
    upsampling_network,
    attention_network,
    recurrent_network,
)
SHAPES = {"attention_network": {"tokens": "2x9"}}
