#!/usr/bin/env python3
"""Binds and runs many small graphs once each, with measured prices and without.

A program that always binds new graphs cannot spend seconds on each. Graphs with the same backends
share measurements, so only new layers cost time. The graphs are chains of nodes drawn from a few
layers with few shapes. Each half runs in a separate process without stored artifacts; the time
includes load, bind and one run of all graphs."""

import collections
import json
import pathlib
import sys
import tempfile
import time

from harness.arguments import Parser
from harness.processes import run_process

import numpy as np

SEED = 11
IMAGE, ROWS = (1, 16, 14, 14), (8, 64)
WEIGHTS = {
    IMAGE: {"w1": (16, 16, 1, 1), "w3": (16, 16, 3, 3), "scale": (1, 16, 1, 1)},
    ROWS: {"square": (64, 64), "bias": (64,), "gain": (64,)},
}
# Layers from a value x to one of the same shape: op, inputs, attributes.
LAYERS = {
    IMAGE: (
        ("Conv", ["x", "w1"], {"pads": [0] * 4}), ("Conv", ["x", "w3"], {"pads": [1] * 4}),
        ("Relu", ["x"], {}), ("Sigmoid", ["x"], {}), ("Tanh", ["x"], {}),
        ("Softmax", ["x"], {"axis": 1}),
        ("MaxPool", ["x"], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("AveragePool", ["x"], {"kernel_shape": [3, 3], "pads": [1] * 4}), ("Add", ["x", "x"], {}),
        ("Mul", ["x", "scale"], {})),
    ROWS: (
        ("MatMul", ["x", "square"], {}), ("Gemm", ["x", "square", "bias"], {}),
        ("Add", ["x", "bias"], {}), ("Mul", ["x", "gain"], {}),
        ("LayerNormalization", ["x", "gain", "bias"], {}), ("Softmax", ["x"], {"axis": -1}),
        ("Relu", ["x"], {}), ("Tanh", ["x"], {}), ("Sigmoid", ["x"], {}), ("Abs", ["x"], {})),
}


def make_graphs(folder, count, nodes):
    """Files of `count` graphs with `nodes` nodes each, drawn from these layers."""
    import onnx
    from networks.graph_writer import model_of

    rng = np.random.default_rng(SEED)
    weights = {name: (rng.standard_normal(shape) * 0.1).astype(np.float32)
               for shapes in WEIGHTS.values() for name, shape in shapes.items()}
    files = []
    for index in range(count):
        shape = (IMAGE, ROWS)[index % 2]
        drawn = [LAYERS[shape][rng.integers(len(LAYERS[shape]))] for _ in range(nodes)]
        made = [onnx.helper.make_node(op, [f"v{at}" if name == "x" else name for name in inputs],
                                      [f"v{at + 1}"], **attributes)
                for at, (op, inputs, attributes) in enumerate(drawn)]
        read = {name for _, inputs, _ in drawn for name in inputs}
        files.append(str(folder / f"graph{index:03}.onnx"))
        onnx.save(model_of(made, {"v0": shape}, {f"v{nodes}": shape},
                           {name: weights[name] for name in weights if name in read}), files[-1])
    return files


def measure(task):
    """For run_process(): the seconds for each graph, and what was measured for it."""
    import tessera

    backends = tessera.Backends()
    seconds, measured, tuning, phases = [], [], [], collections.Counter()
    for file in task["files"]:
        started = time.perf_counter()
        model = tessera.load(file, backends=backends)
        executor = model.bind(threads=task["threads"], optimize=task["optimize"])
        value, = executor.inputs
        executor.run({value.name: np.ones(value.shape, np.float32)})
        seconds.append(time.perf_counter() - started)
        told = executor.plan().tuning
        measured.append(told.measured)
        tuning.append(told.seconds)
        phases.update(told.phases)
    return {"seconds": seconds, "measured": measured, "tuning": tuning, "phases": phases}


def parse_arguments():
    parser = Parser(__doc__, "--graphs 200 --threads 2")
    parser.option("--graphs", 200)
    parser.option("--nodes", 10)
    parser.share("module_dir", threads=2)
    parser.flag("--json", "print JSON")
    return parser.parse()


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        files = make_graphs(pathlib.Path(folder), arguments.graphs, arguments.nodes)
        task = {"files": files, "threads": arguments.threads,
                "module_dir": str(arguments.module_dir)}
        plain, tuned = (run_process(measure, {**task, "optimize": optimize}, caches=folder)
                        for optimize in (False, True))
    ratio = sum(tuned["seconds"]) / sum(plain["seconds"])
    if arguments.json:
        print(json.dumps({"plain": plain, "tuned": tuned, "ratio": ratio}))
        return 0
    new = sum(1 for count in tuned["measured"] if count > 0)
    print(f"{len(files)} graphs of {arguments.nodes} nodes, {arguments.threads} threads; load, "
          "bind and one run of each")
    print(f"  without prices  {sum(plain['seconds']):8.3f} s")
    print(f"  measured first  {sum(tuned['seconds']):8.3f} s   {ratio:.2f} times")
    print(f"  {sum(tuned['measured'])} candidates and conversions measured, in {new} of the "
          f"graphs; the longest tuning took {1e3 * max(tuned['tuning']):.0f} ms")
    for phase, spent in sorted(tuned["phases"].items(), key=lambda entry: -entry[1]):
        print(f"    {phase:12}{spent:8.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
