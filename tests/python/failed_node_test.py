"""Which node an integer division by zero is blamed on, if its kernel computes several nodes."""

import numpy as np
import pytest
from onnx import TensorProto
from small_models import node, tensor_type

FEED = {"x": np.array([[6, 7, -8], [9, 10, 11]]), "good": np.array([[1, 2, 3], [-1, 5, 1]]),
        "bad": np.array([[1, 2, 3], [4, 0, 6]])}


def chain(*steps):
    """Nodes that follow each other: (name, op, second operand, attributes)."""
    nodes, last = [], "x"
    for at, (name, op, other, *attributes) in enumerate(steps):
        output = "y" if at == len(steps) - 1 else f"v{at}"
        inputs = [last] if other is None else [last, other]
        nodes.append(node(op, inputs, [output], name, **(attributes or [{}])[0]))
        last = output
    return nodes


CASES = {"the first node": (chain(("wrong", "Div", "bad"), ("b", "Add", "x"), ("c", "Neg", None)),
                            "Div"),
         "in the middle": (chain(("a", "Add", "good"), ("wrong", "Div", "bad"), ("c", "Mul", "x")),
                           "Div"),
         "the last node": (chain(("a", "Add", "good"), ("b", "Neg", None), ("wrong", "Div", "bad")),
                           "Div"),
         "Mod": (chain(("a", "Add", "good"), ("wrong", "Mod", "bad"), ("c", "Mul", "x")), "Mod"),
         "Mod that truncates": (chain(("a", "Add", "good"), ("wrong", "Mod", "bad", {"fmod": 1}),
                                      ("c", "Mul", "x")), "Mod"),
         "the second of three": (chain(("a", "Div", "good"), ("wrong", "Div", "bad"),
                                       ("c", "Div", "good")), "Div"),
         "Div before Mod": (chain(("wrong", "Div", "bad"), ("b", "Mod", "good"),
                                  ("c", "Abs", None)), "Div"),
         "Mod behind Div": (chain(("a", "Div", "good"), ("wrong", "Mod", "bad"),
                                  ("c", "Abs", None)), "Mod"),
         "two branches": ([node("Div", "x good", "p", "a"), node("Mod", "x bad", "q", "wrong"),
                           node("Sub", "p q", "y", "c")], "Mod"),
         "nodes that the rewriter drops": (
             [node("Identity", "x", "i", "i"), node("Neg", "i", "n", "n"),
              node("Identity", "n", "j", "j"), node("Div", "j bad", "d", "wrong"),
              node("Identity", "d", "k", "k"), node("Add", "k good", "y", "c")], "Div"),
         "the same twice": ([node("Div", "x bad", "p", "wrong"), node("Div", "x bad", "q", "again"),
                             node("Add", "p q", "y", "c")], "Div"),
         "a node without a name": ([node("Div", "x bad", "wrong"), node("Neg", "wrong", "y", "c")],
                                   "Div")}


def save(save_model, nodes, element):
    dims = [2, 3]
    names = sorted({name for node in nodes for name in node.input} & set(FEED))
    return save_model(nodes, {name: tensor_type(element, dims) for name in names},
                      {"y": tensor_type(element, dims)})


@pytest.mark.parametrize("backends", ["native,reference", "reference", "all"])
@pytest.mark.parametrize("case", CASES)
def test_the_node_that_divides_is_named(tessera, save_model, needs_native, case, backends):
    nodes, op = CASES[case]
    for element, dtype in ((TensorProto.INT64, np.int64), (TensorProto.INT32, np.int32),
                           (TensorProto.INT8, np.int8)):
        model = tessera.load(save(save_model, nodes, element))
        executor = model.bind(backends=[] if backends == "all" else backends.split(","))
        feed = {value.name: FEED[value.name].astype(dtype) for value in model.inputs}
        with pytest.raises(tessera.InvalidArgument) as caught:
            executor.run(feed)
        assert caught.value.where == f"node 'wrong' ({op})"
        assert caught.value.message == "expected divisors other than zero for integers, found 0"
        executor.run(feed | {"bad": feed["x"]})


def test_a_name_that_is_longer_than_a_message(tessera, save_model, needs_native):
    nodes = chain(("n" * 3000, "Div", "bad"), ("c", "Neg", None))
    model = tessera.load(save(save_model, nodes, TensorProto.INT64))
    with pytest.raises(tessera.InvalidArgument) as caught:
        model.bind(backends=["native", "reference"]).run({"x": FEED["x"], "bad": FEED["bad"]})
    assert caught.value.where == f"node '{'n' * 3000}' (Div)"
