#!/usr/bin/env python3
"""Measures errors where all elements of a sum are equal, beside ONNX Runtime and OpenVINO.

Then each addition rounds in the same direction, which is the worst case. Printed is the largest
error of a few such inputs, as a multiple of the bound that docs/accuracy.md states for the op; "-"
where a backend does not compute it."""

import sys
import tempfile

from harness.arguments import Parser
from harness.runtimes import PEERS, load_tessera
from networks.graph_writer import model_of

import numpy as np
from onnx import helper

BACKENDS = ("reference", "native", "onednn", "jit", "openvino", "opencl")
PEER_COLUMNS = {"onnxruntime": "onnxruntime", "openvino's own": "openvino"}
WEIGHT = np.float32(0.7)
EPSILON = 2.0**-23
INPUTS = 15


def sums():
    """Name, nodes, shape, constants, exact result of one number, epsilons of the bound."""
    for length in (32, 63, 256, 1024, 1 << 16, 1 << 20):
        for name, shape, axes in (("row", (1, length), [1]), ("vector", (length,), [0]),
                                  ("columns", (length, 16), [0]),
                                  ("channels", (1, length, 1, 1), [1])):
            yield (f"ReduceMean of a {name}, {length}",
                   [helper.make_node("Relu", ["x"], ["r"]),
                    helper.make_node("ReduceMean", ["r"], ["y"], axes=axes)],
                   shape, {}, lambda number: number, 4)
    for side in (5, 7, 14, 28, 112):
        yield (f"GlobalAveragePool, {side * side}",
               [helper.make_node("GlobalAveragePool", ["x"], ["y"])],
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


def run_of_backend(loaded, backend, shape, cache):
    """A function of an input, or None."""
    import tessera

    # Regions of OpenVINO are only used where they are measured or pinned.
    pins = [tessera.Pin("*", backend)] if backend == "openvino" else []
    try:
        executor = loaded.bind(
            {"x": shape}, backends=list(dict.fromkeys([backend, "reference"])), pins=pins,
            threads=1, optimize=False, cache_dir=cache)
    except tessera.Error:
        return None
    if backend not in {step.backend for step in executor.plan().steps}:
        return None
    return lambda x: executor.run({"x": x})[0]


def run_of_peer(model, peer, shape):
    runtime = PEERS[peer](model, {"x": np.zeros(shape, np.float32)}, threads=1)

    def run(x):
        runtime.inputs = {"x": x}
        return runtime.run()[0]

    return run


def worst_of(run, shape, exact, epsilons):
    """The largest error over a few inputs, as a multiple of the bound."""
    random = np.random.default_rng(3)
    worst = 0.0
    for _ in range(INPUTS):
        number = np.float32(random.uniform(0.5, 1))
        right = exact(np.float64(number))
        bound = np.spacing(np.float32(right)) + epsilons * EPSILON * right
        found = run(np.full(shape, number, np.float32)).astype(np.float64)
        worst = max(worst, float(np.max(np.abs(found - right)) / bound))
    return worst


def main():
    parser = Parser(__doc__, "> equal_elements.md")
    parser.share("module_dir")
    parser.parse()
    columns = (*BACKENDS, *PEER_COLUMNS)
    print("| sum, elements | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory() as cache:
        for name, nodes, shape, constants, exact, epsilons in sums():
            model = model_of(nodes, {"x": shape}, {"y": None}, constants, 13).SerializeToString()
            loaded = load_tessera(model)
            runs = [run_of_backend(loaded, backend, shape, cache) for backend in BACKENDS]
            runs += [run_of_peer(model, peer, shape) for peer in PEER_COLUMNS.values()]
            cells = [f"{worst_of(run, shape, exact, epsilons):.2f}" if run else "-" for run in runs]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
