#!/usr/bin/env python3
"""Errors of whole networks in float32, against the same network in float64.

Each network runs on ordinary random inputs, and on the same inputs with one element of --outlier.
An error is the largest difference to float64, as a share of the root mean square of the output; of
several outputs the largest counts. The network in float64 is the model with all float32 changed to
float64, computed by Tessera's reference, which shares no code with the kernels that are judged.
Exit code 1 if an error of Tessera exceeds --limit times that of ONNX Runtime."""

import argparse
import os
import pathlib
import sys

import compare

# Errors below are those of a few roundings of the output itself.
LEAST_ERROR = 2e-7


def in_double(onnx, model):
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


def with_outlier(np, inputs, size):
    """One element in the middle of the first input of floats, or None without such an input."""
    changed = {name: array.copy() for name, array in inputs.items()}
    for array in changed.values():
        if array.dtype == np.float32:
            array.reshape(-1)[(array.size // 2 + array.shape[-1] // 2) % array.size] = size
            return changed
    return None


def error_of(np, found, exact):
    worst = 0.0
    for one, other in zip(found, exact, strict=True):
        if one.dtype.kind != "f" or one.size == 0:
            continue
        scale = np.sqrt(np.mean(np.square(other)))
        worst = max(worst, float(np.abs(one - other).max() / scale) if scale > 0 else 0.0)
    return worst


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/network_errors.py --models resnet18,squeezenet --optimize")
    parser.add_argument("--models", default="", metavar="LIST",
                        help="names of the zoo, or files (default: every model of the zoo)")
    parser.add_argument("--outlier", type=float, default=1e4, metavar="SIZE",
                        help="of the one element (default: 1e4)")
    parser.add_argument("--limit", type=float, default=8, metavar="N",
                        help="times the error of ONNX Runtime (default: 8)")
    parser.add_argument("--optimize", action="store_true",
                        help="Tessera measures kernels first; else oneDNN computes most")
    parser.add_argument("--peers", type=compare.names_of_peers, default=list(compare.PEERS),
                        metavar="LIST", help="the others (default: " + ",".join(compare.PEERS) + ")")
    parser.add_argument("--module-dir", type=pathlib.Path,
                        default=compare.ROOT / "build" / "release" / "python")
    return parser.parse_args()


def outputs_of(name, model, inputs, arguments, tessera, runtimes):
    """A function from inputs to outputs."""
    if name in runtimes.PEERS:
        peer = runtimes.PEERS[name](str(model), inputs, 1)

        def run(values):
            peer.inputs = {key: values[key] for key in peer.inputs}
            return [output.copy() for output in peer.run()]

        return run
    bound = tessera.load(model).bind(
        {key: array.shape for key, array in inputs.items()}, threads=1,
        optimize=arguments.optimize)
    return lambda values: [output.copy() for output in bound.run(values)]


def main():
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    sys.path.insert(0, str(arguments.module_dir.resolve()))
    import numpy as np
    import onnx
    import runtimes
    import tessera

    names = [compare.OWN, *arguments.peers]
    print(f"{'network':22}{'input':10}" + "".join(f"{name:>13}" for name in names) + "  ratio")
    is_fine = True
    for network, model in compare.find_models(arguments.models).items():
        inputs = runtimes.random_inputs(str(model), {})
        kinds = {"ordinary": inputs, "outlier": with_outlier(np, inputs, arguments.outlier)}
        double = in_double(onnx, onnx.load(model))
        shapes = {name: array.shape for name, array in inputs.items()}
        exact = tessera.load(double.SerializeToString()).bind(
            shapes, threads=len(os.sched_getaffinity(0)), backends=["reference"], optimize=False)
        runs = {name: outputs_of(name, model, inputs, arguments, tessera, runtimes)
                for name in names}
        for kind, values in kinds.items():
            if values is None:
                continue
            wanted = exact.run({name: array.astype(np.float64) if array.dtype == np.float32
                                else array for name, array in values.items()})
            errors = {name: error_of(np, run(values), wanted) for name, run in runs.items()}
            ratio = 0.0
            if "onnxruntime" in errors:
                ratio = errors[compare.OWN] / max(errors["onnxruntime"], LEAST_ERROR)
            is_fine &= ratio <= arguments.limit
            print(f"{network:22}{kind:10}"
                  + "".join(f"{errors[name]:13.1e}" for name in names) + f"{ratio:7.2f}",
                  flush=True)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
