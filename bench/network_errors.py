#!/usr/bin/env python3
"""Errors of whole networks in float32, against the same network in float64.

Each network runs on ordinary random inputs, and on the same inputs with one element of --outlier.
An error is the largest difference to float64, as a share of the root mean square of the output; of
several outputs the largest counts. The network in float64 is the model with all float32 changed to
float64, computed by Tessera's reference, which shares no code with the kernels that are judged.
Exit code 1 if an error of Tessera exceeds --limit times that of ONNX Runtime."""

import os
import sys

from harness.arguments import Parser, some_of
from harness.report import Table, width_of
from harness.runtimes import OWN, PEERS, Tessera, random_inputs

import numpy as np
import onnx

# Errors below are those of a few roundings of the output itself.
LEAST_ERROR = 2e-7


def in_double(model):
    """The model with float64 in place of float32, except where ONNX allows float32 only."""
    float32, float64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    fixed = {name for node in model.graph.node if node.op_type in ("Resize", "Upsample")
             for name in list(node.input)[1:]}

    def change_tensor(tensor):
        if tensor.data_type == float32 and tensor.name not in fixed:
            array = onnx.numpy_helper.to_array(tensor).astype("float64")
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))

    def change_graph(graph):
        for tensor in graph.initializer:
            change_tensor(tensor)
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.elem_type == float32 and value.name not in fixed:
                value.type.tensor_type.elem_type = float64
        for node in graph.node:
            change_node(node)

    def change_node(node):
        if node.op_type == "Constant" and node.output[0] in fixed:
            return
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                change_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                change_graph(attribute.g)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == float32:
                attribute.i = float64
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                array = onnx.helper.get_attribute_value(attribute)
                tensor = onnx.helper.make_tensor("", float64, [] if isinstance(array, float) else [
                    len(array)], [array] if isinstance(array, float) else array)
                attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))

    change_graph(model.graph)
    return model


def with_outlier(inputs, size):
    """One element in the middle of the first input of floats, or None without such an input."""
    changed = {name: array.copy() for name, array in inputs.items()}
    for array in changed.values():
        if array.dtype == np.float32:
            array.reshape(-1)[(array.size // 2 + array.shape[-1] // 2) % array.size] = size
            return changed
    return None


def error_of(found, exact):
    worst = 0.0
    for one, other in zip(found, exact, strict=True):
        if one.dtype.kind != "f" or one.size == 0:
            continue
        scale = np.sqrt(np.mean(np.square(other)))
        worst = max(worst, float(np.abs(one - other).max() / scale) if scale > 0 else 0.0)
    return worst


def parse_arguments():
    parser = Parser(__doc__, "--models resnet18,squeezenet --optimize")
    parser.share("models")
    parser.option("--outlier", 1e4, "size of the one element")
    parser.option("--limit", 8.0, "times the error of ONNX Runtime")
    parser.flag("--optimize", "Tessera measures kernels first; else oneDNN computes most")
    parser.option("--peers", list(PEERS), "the others", some_of(PEERS), "LIST")
    parser.share("module_dir")
    return parser.parse()


def outputs_of(runtime, values):
    runtime.inputs = {name: values[name] for name in runtime.inputs}
    return [output.copy() for output in runtime.run()]


def errors_of_network(arguments, model):
    """Yields kinds of inputs and the error of each runtime."""
    inputs = random_inputs(str(model), {})
    exact = Tessera(in_double(onnx.load(model)).SerializeToString(), inputs,
                    len(os.sched_getaffinity(0)), ["reference"])
    runtimes = {OWN: Tessera(str(model), inputs, 1, optimize=arguments.optimize),
                **{peer: PEERS[peer](str(model), inputs, 1) for peer in arguments.peers}}
    for kind, values in (("ordinary", inputs),
                         ("outlier", with_outlier(inputs, arguments.outlier))):
        if values is not None:
            wanted = outputs_of(exact, {
                name: array.astype(np.float64) if array.dtype == np.float32 else array
                for name, array in values.items()})
            yield kind, {name: error_of(outputs_of(runtime, values), wanted)
                         for name, runtime in runtimes.items()}


def main():
    arguments = parse_arguments()
    names = [OWN, *arguments.peers]
    table = Table(("network", width_of(arguments.models)), ("input", "<10"),
                  *((name, "13.1e") for name in names), ("ratio", "7.2f"))
    table.print_titles()
    is_fine = True
    for network, model in arguments.models.items():
        for kind, errors in errors_of_network(arguments, model):
            ratio = errors[OWN] / max(errors["onnxruntime"], LEAST_ERROR) \
                if "onnxruntime" in errors else 0.0
            is_fine &= ratio <= arguments.limit
            table.print(network, kind, *(errors[name] for name in names), ratio)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
