"""Networks in which sizes are known only in the run: those that elements decide, and those of what
nested graphs give."""

import numpy as np
from onnx import TensorProto, helper

from open_layers import finish, ints, list_of, number, shape_part
from self_made_models import Network


def found_pixels():
    """The pixels above a threshold: their places, their features, and a sum over them."""
    net = Network("found_pixels", 18)
    x = net.input("x", ["batch", 3, "height", "width"])
    features = net.node("Relu", net.convolution(x, 3, 8, 3, pads=[1, 1, 1, 1]))
    strength = net.node("ReduceMean", features, ints(net, 1), keepdims=0)
    found = net.node("NonZero", net.node("Greater", strength, number(net, 0.4)))
    places = net.node("Transpose", found, perm=[1, 0])
    strong = net.node("GatherND", strength, places)
    column = net.node("Reshape", strong, list_of(net, shape_part(net, places, 0), 1))
    net.output(places, TensorProto.INT64)
    net.output(net.linear(column, 1, 5))
    net.output(net.node("ReduceSum", net.node("Exp", strong), keepdims=0))
    net.output(net.node("GlobalAveragePool", features))
    net.output(net.node("Shape", features), TensorProto.INT64)
    return finish(net), {"batch": (1, 3), "height": (2, 40), "width": (2, 40)}


def suppressed_boxes():
    net = Network("suppressed_boxes", 17)
    corner = net.input("corner", ["count", 2])
    scores = net.node("Sigmoid", net.linear(corner, 2, 1))
    boxes = net.node("Concat", corner, net.node("Add", corner, number(net, 0.7)), axis=1)
    chosen = net.node("NonMaxSuppression", net.node("Unsqueeze", boxes, ints(net, 0)),
                      net.node("Unsqueeze", net.node("Transpose", scores, perm=[1, 0]),
                               ints(net, 0)),
                      ints(net, 30), net.constant(np.array([0.3], np.float32)))
    index = net.node("Squeeze", net.node("Slice", chosen, ints(net, 2), ints(net, 3), ints(net, 1)),
                     ints(net, 1))
    net.output(net.node("Gather", boxes, index))
    net.output(net.node("Mul", net.node("Gather", scores, index), number(net, 2)))
    return finish(net), {"count": (1, 60)}


def graph_of(net, name, outputs, inputs=()):
    """A nested graph of the nodes that were added to `net`."""
    return helper.make_graph(
        net.nodes, name, [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in outputs],
        [helper.make_tensor(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array)
         for key, array in net.weights.items()])


def renamed(net, prefix):
    """`net` with names that no other graph has."""
    for node in net.nodes:
        node.name = prefix + node.name
        for names in (node.input, node.output):
            names[:] = [prefix + name if name.startswith(("value_", "weight_")) else name
                        for name in names]
    net.weights = {prefix + name: array for name, array in net.weights.items()}
    return net


def branch(prefix, op):
    inner = Network(prefix, 17)
    x = inner.node(op, inner.linear("outer", 6, 6))
    rows = inner.node("Cast", shape_part(inner, "outer", 0), to=TensorProto.FLOAT)
    y = prefix + inner.node("Div", x, rows)
    return graph_of(renamed(inner, prefix), prefix, [y])


def chosen_branch():
    net = Network("chosen_branch", 17)
    x = net.input("x", ["rows", 6])
    net.input("unused", ["rows", 2])
    net.nodes.append(helper.make_node("Relu", [x], ["outer"], "relu"))
    total = net.node("ReduceSum", x, keepdims=0)
    y = net.node("If", net.node("Greater", total, number(net, 0)), then_branch=branch("yes_", "Tanh"),
                 else_branch=branch("no_", "Neg"))
    net.output(net.node("Softmax", net.node("Add", net.linear(y, 6, 6), x), axis=-1))
    return finish(net), {"rows": (1, 50)}


def repeated_layer():
    """A Loop over a state of open size, as often as a condition on its elements holds; it collects
    means, and sizes, which its body need not compute in each run."""
    net = Network("repeated_layer", 17)
    x = net.input("x", ["rows", 6])
    body = Network("body", 17)
    state = body.node("Tanh", body.node("Add", body.linear("state", 6, 6), "start"))
    largest = body.node("ReduceMax", state, keepdims=0)
    goes_on = body.node("Less", largest, number(body, 0.9))
    mean = body.node("ReduceMean", state, axes=[1], keepdims=0)
    sizes = body.node("Shape", state)
    body = renamed(body, "body_")
    graph = graph_of(body, "body", [], [("step", TensorProto.INT64, []),
                                        ("before", TensorProto.BOOL, []),
                                        ("state", TensorProto.FLOAT, None)])
    for name, element in ((goes_on, TensorProto.BOOL), (state, TensorProto.FLOAT),
                          (mean, TensorProto.FLOAT), (sizes, TensorProto.INT64)):
        graph.output.append(helper.make_tensor_value_info("body_" + name, element, None))
    net.nodes.append(helper.make_node("Mul", [x, x], ["start"], "start"))
    last, means, sizes = net.node("Loop", net.constant(np.int64(5)), net.constant(np.bool_(True)), x,
                                  outputs=3, body=graph)
    net.output(net.node("Sub", last, x))
    net.output(means)
    net.output(sizes, TensorProto.INT64)
    return finish(net), {"rows": (1, 40)}


RUN_MODELS = (found_pixels, suppressed_boxes, chosen_branch, repeated_layer)
