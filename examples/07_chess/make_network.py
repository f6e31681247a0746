#!/usr/bin/env python3
"""Writes a network for chess_evaluator: one that evaluates any number of positions at once.

From a network of the zoo, which evaluates one (--from), or a small one of the same shape with random
weights, for trying the program out.

example: examples/07_chess/make_network.py --from build/zoo/chess/model.onnx build/chess/model.onnx"""

import argparse
import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH = "batch"


def small_network(channels=16, seed=0):
    """A block with two convolutions, and heads for moves, outcomes and the moves left."""
    random = np.random.default_rng(seed)
    nodes, weights = [], []

    def weight(name, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(
            (scale * random.standard_normal(shape)).astype(np.float32), name))
        return name

    def op(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def convolve(x, name, outputs, inputs):
        return op("Conv", [x, weight(f"{name}_weight", outputs, inputs, 3, 3)], name, pads=[1] * 4)

    x = op("Relu", [convolve("x", "stem", channels, 112)], "stem_relu")
    y = op("Relu", [convolve(x, "first", channels, channels)], "first_relu")
    y = op("Add", [convolve(y, "second", channels, channels), x], "sum")
    body = op("Relu", [y], "body")
    op("Flatten", [convolve(body, "moves", 80, channels)], "policy")
    flat = op("Flatten", [body], "flat")
    hidden = op("MatMul", [flat, weight("outcome_weight", 64 * channels, 3)], "outcome_scores")
    op("Softmax", [hidden], "outcomes", axis=1)
    left = op("MatMul", [flat, weight("left_weight", 64 * channels, 1)], "left_score")
    op("Relu", [left], "moves_left")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "chess", [value("x", TensorProto.FLOAT, [BATCH, 112, 8, 8])],
        [value("policy", TensorProto.FLOAT, [BATCH, 5120]),
         value("outcomes", TensorProto.FLOAT, [BATCH, 3]),
         value("moves_left", TensorProto.FLOAT, [BATCH, 1])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def open_batch(model, folder):
    """Lets the first dimension of inputs and outputs be any number. External data is in `folder`."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = BATCH
    # Shapes of inner values are inferred again.
    del graph.value_info[:]
    for node in graph.node:
        if node.op_type != "Reshape" or node.input[1] not in constants:
            continue
        tensor = constants[node.input[1]]
        shape = numpy_helper.to_array(tensor, str(folder)).copy()
        if shape[0] == 1:
            shape[0] = -1
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=pathlib.Path,
                        help="an ONNX file whose weights are in files beside it, or in it")
    parser.add_argument("output", type=pathlib.Path, help="the file to write; weights go beside it")
    arguments = parser.parse_args()
    folder = arguments.output.parent
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.source is None:
        onnx.save(small_network(), arguments.output)
        return
    if not arguments.source.exists():
        parser.error(f"--from: expected an ONNX file, found none called {arguments.source}")
    model = onnx.load(arguments.source, load_external_data=False)
    open_batch(model, arguments.source.parent)
    files = {entry.value for tensor in model.graph.initializer for entry in tensor.external_data
             if entry.key == "location"}
    for name in files:
        shutil.copyfile(arguments.source.parent / name, folder / name)
    arguments.output.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
