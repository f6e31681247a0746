#!/usr/bin/env python3
"""Measures errors where all elements of a sum are equal, beside ONNX Runtime and OpenVINO.

Then each addition rounds in the same direction, which is the worst case. Printed is the largest error
of a few such inputs, as a multiple of the bound that docs/accuracy.md states for the op; "-" where a
backend does not compute it."""

import argparse
import sys
import tempfile

import numpy as np
import onnxruntime
import openvino
import tessera
from onnx import TensorProto, helper, numpy_helper

BACKENDS = ("reference", "native", "onednn", "jit", "openvino", "opencl")
WEIGHT = np.float32(0.7)
EPSILON = 2.0**-23
INPUTS = 15


def sums():
    """Name, nodes, shape, constants, exact result of one number, epsilons of the bound."""
    for length in (32, 63, 256, 1024, 1 << 16, 1 << 20):
        for name, shape, axes in (("row", (1, length), [1]), ("vector", (length,), [0]),
                                  ("columns", (length, 16), [0]), ("channels", (1, length, 1, 1), [1])):
            yield (f"ReduceMean of a {name}, {length}",
                   [helper.make_node("Relu", ["x"], ["r"]),
                    helper.make_node("ReduceMean", ["r"], ["y"], axes=axes)],
                   shape, {}, lambda number: number, 4)
    for side in (5, 7, 14, 28, 112):
        yield (f"GlobalAveragePool, {side * side}", [helper.make_node("GlobalAveragePool", ["x"], ["y"])],
               (1, 16, side, side), {}, lambda number: number, 4)
    for side in (3, 5, 7, 16):
        yield (f"AveragePool, {side * side}",
               [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[side, side])],
               (1, 16, 24, 24), {}, lambda number: number, 4)
    for depth in (64, 256, 1024, 4096, 65536):
        yield (f"MatMul, {depth}", [helper.make_node("MatMul", ["x", "w"], ["y"])], (4, depth),
               {"w": np.full((depth, 32), WEIGHT)},
               lambda number, depth=depth: number * depth * np.float64(WEIGHT), 16)
    for channels, side in ((64, 1), (512, 1), (2048, 1), (64, 3), (512, 3)):
        terms = channels * side * side
        yield (f"Conv {side}x{side}, {terms}", [helper.make_node("Conv", ["x", "w"], ["y"])],
               (1, channels, 10, 10), {"w": np.full((32, channels, side, side), WEIGHT)},
               lambda number, terms=terms: number * terms * np.float64(WEIGHT), 16)


def runners(model, shape, cache):
    """Column -> function of an input, or None."""
    loaded = tessera.load(model, log=lambda message: None)
    for backend in BACKENDS:
        names = list(dict.fromkeys([backend, "reference"]))
        # Regions of OpenVINO are only used where they are measured or pinned.
        pins = [tessera.Pin("*", backend)] if backend == "openvino" else []
        try:
            executor = loaded.bind({"x": shape}, backends=names, pins=pins, threads=1, optimize=False,
                                   cache_dir=cache)
        except tessera.Error:
            yield backend, None
            continue
        is_used = backend in {step.backend for step in executor.plan().steps}
        yield backend, (lambda x, executor=executor: executor.run({"x": x})[0]) if is_used else None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    yield "onnxruntime", lambda x: session.run(None, {"x": x})[0]
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    yield "openvino's own", lambda x: compiled(x)[0]


def main():
    argparse.ArgumentParser(description=__doc__,
                            formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    columns = (*BACKENDS, "onnxruntime", "openvino's own")
    print("| sum, elements | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory() as cache:
        for name, nodes, shape, constants, exact, epsilons in sums():
            graph = helper.make_graph(
                nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                [numpy_helper.from_array(value, key) for key, value in constants.items()])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                      ir_version=8).SerializeToString()
            cells = []
            for _, run in runners(model, shape, cache):
                if run is None:
                    cells.append("-")
                    continue
                random = np.random.default_rng(3)
                worst = 0.0
                for _ in range(INPUTS):
                    number = np.float32(random.uniform(0.5, 1))
                    right = exact(np.float64(number))
                    bound = np.spacing(np.float32(right)) + epsilons * EPSILON * right
                    found = run(np.full(shape, number, np.float32)).astype(np.float64)
                    worst = max(worst, float(np.max(np.abs(found - right)) / bound))
                cells.append(f"{worst:.2f}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
