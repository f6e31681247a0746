"""The models of a soak test: a few families, each with two sets of weights and several shapes."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPS = ("Add", "Clip", "Conv", "MatMul", "MaxPool", "ReduceMean", "Relu", "Sigmoid", "Softmax", "Tanh")
WEIGHT_SEEDS = (0, 1)  # two sets: such models share a plan, but have different outputs


@dataclasses.dataclass(frozen=True)
class Case:
    model: str  # name of its file
    shape: tuple  # of its only input, "x"


class Graph:
    """Collects nodes and weights; each node's output is the next one's input."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.last = [], [], "x"

    def weight(self, *shape):
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        array = self.random.standard_normal(shape).astype(np.float32) * np.float32(fan_in**-0.5)
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, op, *others, **attributes):
        assert op in OPS, op
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *others], [name], f"n{len(self.nodes)}",
                                           **attributes))
        self.last = name
        return name

    def save(self, path, dims):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def convolutions(graph):
    graph.add("Conv", graph.weight(16, 8, 3, 3), pads=[1] * 4)
    kept = graph.add("Relu")
    graph.add("Conv", graph.weight(16, 16, 3, 3), pads=[1] * 4)
    graph.add("Add", kept)
    graph.add("Conv", graph.weight(12, 16, 1, 1))
    return ["N", 8, "H", "W"]


def depthwise(graph):
    graph.add("Conv", graph.weight(24, 1, 3, 3), group=24, pads=[1] * 4)
    graph.add("Clip")
    graph.add("Conv", graph.weight(16, 24, 1, 1))
    graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    return ["N", 24, "H", "W"]


def perceptron(graph):
    graph.add("MatMul", graph.weight(96, 128))
    graph.add("Relu")
    graph.add("MatMul", graph.weight(128, 64))
    graph.add("Softmax", axis=-1)
    return ["N", 96]


def normalized(graph):
    graph.add("MatMul", graph.weight(48, 48))
    graph.add("Sigmoid")
    graph.add("MatMul", graph.weight(48, 48))
    graph.add("ReduceMean", axes=[1], keepdims=0)
    graph.add("Tanh")
    return ["N", "length", 48]


def rectified(graph):
    """Mainly Relu, the op that the plug-ins support which are installed and removed."""
    graph.add("Relu")
    graph.add("MatMul", graph.weight(32, 8))
    return ["N", "length", 32]


FAMILIES = {
    convolutions: ((1, 8, 16, 16), (1, 8, 9, 13), (2, 8, 24, 24)),
    depthwise: ((1, 24, 16, 16), (1, 24, 10, 8), (3, 24, 12, 12)),
    perceptron: ((1, 96), (7, 96), (32, 96)),
    normalized: ((1, 10, 48), (2, 33, 48), (4, 5, 48)),
    rectified: ((1, 400, 32), (2, 900, 32), (1, 3, 32)),
}


def all_cases():
    return [Case(f"{family.__name__}_{seed}.onnx", shape)
            for family, shapes in FAMILIES.items() for seed in WEIGHT_SEEDS for shape in shapes]


def write_models(folder):
    for family in FAMILIES:
        for seed in WEIGHT_SEEDS:
            graph = Graph(seed)
            dims = family(graph)
            graph.save(folder / f"{family.__name__}_{seed}.onnx", dims)
