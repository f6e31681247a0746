"""Models of ops that the test plug-in `compiler` compiles (tests/backends/compiler)."""

import onnx
from onnx import TensorProto, helper


def save_model(path, slopes, size, also=()):
    """A LeakyRelu for each slope; ops of `also` between them, which make it another model."""
    names = [f"x{at}" for at in range(len(slopes))]
    nodes = []
    for at, slope in enumerate(slopes):
        nodes.append(helper.make_node("LeakyRelu", [names[at]], [f"a{at}"], f"leaky{at}",
                                      alpha=slope))
        value = f"a{at}"
        for op in also:
            nodes.append(helper.make_node(op, [value], [f"{value}_{op}"], f"{op}{at}"))
            value = f"{value}_{op}"
        nodes.append(helper.make_node("Identity", [value], [f"y{at}"], f"end{at}"))
    ends = [[helper.make_tensor_value_info(f"{end}{at}", TensorProto.FLOAT, [size])
             for at in range(len(slopes))] for end in "xy"]
    graph = helper.make_graph(nodes, path.stem, *ends)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path
