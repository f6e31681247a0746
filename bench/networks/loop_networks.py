"""Small models with loops, branches and lists: what control flow costs beside the kernels."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

UNITS = 128
SIDE = 256
STEPS = 20
OPSET, IR_VERSION = 17, 10


def value(name, shape, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def number(name):
    return value(name, [], TensorProto.INT64)


def flag(name):
    return value(name, [], TensorProto.BOOL)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                             ir_version=IR_VERSION)
    onnx.checker.check_model(made)
    return made


def body(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def loop(nodes, carried, results):
    """A Loop with a number of iterations, over `nodes`, with carried values (name, next name, value
    at the beginning, type)."""
    inside = body([*nodes, node("Identity", "go", "goes_on")],
                  [number("iteration"), flag("go"), *(kind(name) for name, _, _, kind in carried)],
                  [flag("goes_on"), *(kind(after) for _, after, _, kind in carried)])
    first = ["count", "", *(begin for _, _, begin, _ in carried)]
    return helper.make_node("Loop", first, results, body=inside)


def tensor(*shape):
    return lambda name: value(name, list(shape))


def add_loop():
    """A Loop over one Add on one element."""
    nodes = [loop([node("Add", "x one", "next")], [("x", "next", "start", tensor(1))], ["y"])]
    return model(nodes, [number("count"), value("start", [1])], [value("y", [1])],
                 [constant("one", np.ones(1, np.float32))]), {"start": np.zeros(1, np.float32)}


def cell():
    """An LSTM's step from `x`, `hidden` and `memory` to `hidden_next` and `memory_next`."""
    return [node("Concat", "x hidden", "joined", axis=1), node("Gemm", "joined W B", "gates"),
            node("Split", "gates parts", "i f o c", axis=1), node("Sigmoid", "i", "input"),
            node("Sigmoid", "f", "forget"), node("Sigmoid", "o", "output"),
            node("Tanh", "c", "new"), node("Mul", "forget memory", "kept"),
            node("Mul", "input new", "added"), node("Add", "kept added", "memory_next"),
            node("Tanh", "memory_next", "shown"), node("Mul", "output shown", "hidden_next")]


def cell_weights():
    drawn = np.random.default_rng(0).standard_normal((2 * UNITS, 4 * UNITS))
    return [constant("W", (0.05 * drawn).astype(np.float32)),
            constant("B", np.zeros(4 * UNITS, np.float32)), constant("parts", [UNITS] * 4)]


def cell_feeds(*shape):
    rng = np.random.default_rng(1)
    return {"x0": rng.standard_normal((*shape, 1, UNITS)).astype(np.float32),
            "h0": np.zeros((1, UNITS), np.float32), "m0": np.zeros((1, UNITS), np.float32)}


def cell_loop():
    """A Loop over an LSTM's step."""
    carried = [("hidden", "hidden_next", "h0", tensor(1, UNITS)),
               ("memory", "memory_next", "m0", tensor(1, UNITS))]
    nodes = [loop([node("Identity", "x0", "x"), *cell()], carried, ["h", "m"])]
    states = [value(name, [1, UNITS]) for name in ("x0", "h0", "m0")]
    return model(nodes, [number("count"), *states], [value("h", [1, UNITS])],
                 cell_weights()), cell_feeds()


def cell_scan(count):
    """A Scan over the same step."""
    state = tensor(1, UNITS)
    inside = body([*cell(), node("Identity", "hidden_next", "each")],
                  [state("hidden"), state("memory"), state("x")],
                  [state("hidden_next"), state("memory_next"), state("each")])
    nodes = [helper.make_node("Scan", ["h0", "m0", "x0"], ["h", "m", "all"], body=inside,
                              num_scan_inputs=1)]
    return model(nodes, [state("h0"), state("m0"), value("x0", [count, 1, UNITS])],
                 [state("h"), value("all", [count, 1, UNITS])], cell_weights()), cell_feeds(count)


def product_loop():
    """A Loop over a MatMul."""
    nodes = [loop([node("MatMul", "x M", "next")], [("x", "next", "start", tensor(SIDE, SIDE))],
                  ["y"])]
    start = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
    return model(nodes, [number("count"), value("start", [SIDE, SIDE])],
                 [value("y", [SIDE, SIDE])],
                 [constant("M", np.eye(SIDE, dtype=np.float32))]), {"start": start}


def branch_chain():
    """An If in a chain of small steps."""
    nodes, last = [], "x"
    for step in range(STEPS):
        if step == STEPS // 2:
            branches = {name: body([node(op, last, f"{op}_of")], [], [value(f"{op}_of", [16])])
                        for name, op in (("then_branch", "Sin"), ("else_branch", "Cos"))}
            nodes.append(node("If", "condition", "chosen", **branches))
            last = "chosen"
        nodes.append(node("CumSum", f"{last} axis", f"sum_{step}"))
        last = f"sum_{step}"
    return model(nodes, [flag("condition"), value("x", [16])], [value(last, [16])],
                 [constant("axis", 0)]), {"condition": np.array(True), "x": np.zeros(16, np.float32)}


def list_loop():
    """A list that a Loop builds, one tensor after the other, and that is concatenated."""
    def tensors(name):
        return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)

    added = [node("Add", "x one", "element"), node("SequenceInsert", "list element", "longer")]
    nodes = [node("SequenceEmpty", "", "empty"),
             loop(added, [("list", "longer", "empty", tensors)], ["all"]),
             node("ConcatFromSequence", "all", "y", axis=0)]
    return model(nodes, [number("count"), value("x", [1, 64])], [value("y", [None, 64])],
                 [constant("one", np.ones(1, np.float32))]), {"x": np.zeros((1, 64), np.float32)}


# Name -> what makes the model and its inputs, and the number of iterations; 0: no loop.
LOOPS = {"add": (add_loop, 10000), "cell": (cell_loop, 1000), "product": (product_loop, 200),
         "scan": (cell_scan, 1000), "branch": (branch_chain, 0), "list": (list_loop, 1000)}


def make(name, iterations=None):
    """The model and its inputs."""
    factory, usual = LOOPS[name]
    count = iterations or usual
    if factory is cell_scan:
        return cell_scan(count)
    made, feeds = factory()
    return made, feeds if usual == 0 else {"count": np.array(count), **feeds}
