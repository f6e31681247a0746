"""Networks whose sizes are open: of each, how it is made, and which shapes its inputs may have.

Each function returns (onnx.ModelProto, sizes): `sizes` gives for the name of a symbol the range
from which it may be drawn; the inputs name the symbols.
"""

import numpy as np
from onnx import TensorProto, numpy_helper

from open_image_models import IMAGE_MODELS
from open_layers import finish, ints, list_of, number, places_of, shape_part, size_of
from open_run_models import RUN_MODELS
from open_signal_models import SIGNAL_MODELS
from open_token_models import TOKEN_MODELS
from self_made_models import Network


def perceptron():
    net = Network("perceptron", 13)
    x = net.input("x", ["batch", 12])
    x = net.node("Relu", net.node("Gemm", x, net.normal(12, 24, deviation=0.3), net.normal(24)))
    x = net.node("Clip", net.linear(x, 24, 8), number(net, -1), number(net, 1))
    total = net.node("ReduceSum", x, ints(net, 1), keepdims=1)
    best = net.node("ArgMax", x, axis=1)
    net.output(net.node("Div", x, net.node("Add", net.node("Abs", total), number(net, 1))))
    net.output(best, TensorProto.INT64)
    return finish(net), {"batch": (0, 300)}


def pairs():
    """Every row of one input with every row of another: two symbols that meet in broadcasting."""
    net = Network("pairs", 17)
    left = net.input("left", ["left rows", 6])
    right = net.input("right", ["right rows", 6])
    difference = net.node("Sub", net.node("Unsqueeze", left, ints(net, 1)),
                          net.node("Unsqueeze", right, ints(net, 0)))
    squared = net.node("ReduceSum", net.node("Mul", difference, difference), ints(net, 2),
                       keepdims=0)
    products = net.node("MatMul", left, net.node("Transpose", right, perm=[1, 0]))
    net.output(net.node("Sqrt", squared))
    net.output(net.node("Exp", net.node("Neg", net.node("Abs", products))))
    return finish(net), {"left rows": (0, 40), "right rows": (1, 90)}


def sorter():
    net = Network("sorter", 17)
    x = net.input("x", [2, "length"])
    count = net.node("Min", shape_part(net, x, 1), ints(net, 5))
    values, places = net.node("TopK", x, count, outputs=2, axis=1)
    net.output(net.node("CumSum", values, net.constant(np.int64(1))))
    net.output(places, TensorProto.INT64)
    net.output(net.node("GatherElements", x, places, axis=1))
    return finish(net), {"length": (1, 80)}


def expander():
    """Tile, Expand, ConstantOfShape and Split by sizes."""
    net = Network("expander", 17)
    x = net.input("x", ["rows", 4])
    wide = net.node("Expand", net.normal(1, 4), list_of(net, shape_part(net, x, 0), 4))
    ones = net.node("ConstantOfShape", net.node("Shape", x), value=numpy_helper.from_array(
        np.array([0.5], np.float32)))
    repeated = net.node("Tile", net.node("Add", net.node("Mul", x, wide), ones), ints(net, 2, 1))
    left, right = net.node("Split", repeated, ints(net, 1, 3), outputs=2, axis=1)
    net.output(net.node("Mul", left, right))
    return finish(net), {"rows": (0, 70)}


def cutter():
    """Parts of open axes: from the end, backwards, every second one, and unequal halves."""
    net = Network("cutter", 18)
    x = net.input("x", ["rows", "columns"])
    whole = 2**62
    net.output(net.node("Slice", x, ints(net, -1), ints(net, -whole), ints(net, 0), ints(net, -1)))
    net.output(net.node("Slice", x, ints(net, -3), ints(net, whole), ints(net, 0)))
    net.output(net.node("Slice", x, ints(net, 1, 0), ints(net, whole, -1), ints(net, 0, 1),
                        ints(net, 2, 1)))
    left, right = net.node("Split", x, outputs=2, axis=1, num_outputs=2)
    net.output(net.node("Concat", right, left, right, axis=1))
    net.output(net.node("Trilu", x, net.constant(np.int64(1)), upper=0))
    last = net.node("Gather", x, net.constant(np.int64(-1)), axis=0)
    net.output(net.node("Add", x, last))
    half = net.node("Div", shape_part(net, x, 0), ints(net, 2))
    net.output(net.node("Concat", net.node("Slice", x, half, ints(net, whole), ints(net, 0)),
                        net.node("Slice", x, ints(net, 0), half, ints(net, 0)), axis=0))
    net.output(net.node("Pad", x, ints(net, 0, 1, 0, 1), mode="edge"))
    return finish(net), {"rows": (3, 40), "columns": (2, 50)}


def reductions():
    """Reductions of open axes, alone and together with others."""
    net = Network("reductions", 18)
    x = net.input("x", ["left", 5, "right"])
    net.output(net.node("ReduceMax", x, ints(net, 0), keepdims=0))
    net.output(net.node("ReduceL2", x, ints(net, 0, 2), keepdims=0))
    net.output(net.node("ReduceLogSumExp", x, ints(net, 2)))
    net.output(net.node("ReduceMean", x, ints(net, 0, 1), keepdims=0))
    net.output(net.node("ReduceSumSquare", x, keepdims=0))
    net.output(net.node("ReduceMin", x, ints(net, -1, -2), keepdims=1))
    net.output(net.node("ArgMin", x, axis=0, keepdims=0), TensorProto.INT64)
    net.output(net.node("CumSum", x, net.constant(np.int64(0)), reverse=1, exclusive=1))
    net.output(net.node("Softmax", x, axis=0))
    net.output(net.node("LogSoftmax", x, axis=1))
    return finish(net), {"left": (1, 40), "right": (1, 40)}


def graph_layers():
    """Messages along edges, summed where they arrive."""
    net = Network("graph_layers", 18)
    x = net.input("x", ["nodes", 6])
    edges = net.input("edges", [2, "edges"], TensorProto.INT64)
    edges = net.node("Mod", edges, shape_part(net, x, 0))
    sources, targets = (net.node("Gather", edges, net.constant(np.int64(index)))
                        for index in range(2))
    inputs = 6
    for outputs in (8, 4):
        messages = net.node("Relu", net.linear(net.node("Gather", x, sources), inputs, outputs))
        zeros = net.node("ConstantOfShape", list_of(net, shape_part(net, x, 0), outputs))
        arrived = net.node("ScatterND", zeros, net.node("Unsqueeze", targets, ints(net, 1)),
                           messages, reduction="add")
        x = net.node("Tanh", net.node("Add", arrived, net.linear(x, inputs, outputs)))
        inputs = outputs
    net.output(x)
    net.output(net.node("ReduceMean", x, ints(net, 0), keepdims=0))
    return finish(net), {"nodes": (1, 30), "edges": (0, 80)}


def one_hots():
    """Tokens as rows of a matrix as wide as there are tokens."""
    net = Network("one_hots", 18)
    tokens = net.input("tokens", ["batch", "length"], TensorProto.INT64)
    length = size_of(net, tokens, 1)
    wrapped = net.node("Mod", tokens, length)
    hot = net.node("OneHot", wrapped, length, net.constant(np.array([0.25, 1], np.float32)))
    places = net.node("Cast", places_of(net, tokens, 1), to=TensorProto.FLOAT)
    net.output(net.node("MatMul", hot, places))
    net.output(net.node("MatMul", net.node("Transpose", hot, perm=[0, 2, 1]), hot))
    later = net.node("Greater", net.node("Unsqueeze", places, ints(net, 0)),
                     net.node("Unsqueeze", places, ints(net, 1)))
    net.output(net.node("Where", later, hot, number(net, 2)))
    is_same = net.node("Equal", net.node("Unsqueeze", wrapped, ints(net, 1)),
                       net.node("Unsqueeze", wrapped, ints(net, 2)))
    net.output(net.node("ReduceSum", net.node("Cast", is_same, to=TensorProto.FLOAT), ints(net, 2),
                        keepdims=0))
    return finish(net), {"batch": (1, 4), "length": (1, 30)}


MODELS = (*TOKEN_MODELS, *IMAGE_MODELS, *SIGNAL_MODELS, *RUN_MODELS, perceptron, pairs, sorter,
          expander, cutter, reductions, graph_layers, one_hots)

# How often a symbol gets the smallest size of its range, besides by chance.
SMALLEST_SHARE = 0.1


def draw_inputs(model, sizes, random):
    """Arrays for the inputs of `model`, of sizes drawn from their ranges."""
    drawn = {}
    for symbol, (low, high) in sizes.items():
        is_smallest = random.random() < SMALLEST_SHARE
        drawn[symbol] = low if is_smallest else int(random.integers(low, high + 1))
    arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [drawn[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type == TensorProto.INT64:
            # Token ids, or a mask whose first element is always set.
            arrays[value.name] = random.integers(0, 2 if value.name == "mask" else 20, shape)
            if value.name == "mask":
                arrays[value.name][:, 0] = 1
        else:
            arrays[value.name] = random.standard_normal(shape).astype(np.float32)
    return arrays
