#!/usr/bin/env python3
"""Fused groups that are compiled (backend jit), beside the same nodes on Tessera's own kernels,
oneDNN (through Tessera), ONNX Runtime and OpenVINO: GELU, SiLU, softmax, layer and RMS
normalization at three sizes, and a chain of 1,100 adds and multiplications, which is one kernel.

All are called through Python, in one process. They take turns in blocks, and a block begins only
when no thread computes any more, because threads of ONNX Runtime spin after a run. The times are
medians of runs in microseconds; that of memcpy is the limit of what only moves data. With --memory
new, each run returns arrays of its own; with bound, each run writes to the same memory, which was
bound before."""

import functools
import json
import statistics
import sys

from harness.arguments import Parser, fail
from harness.runtimes import BoundOnnxRuntime, OnnxRuntime, OpenVino, Tessera, differences
from harness.turns import take_turns, timer_of
from networks.graph_writer import model_of

import numpy as np
from onnx import helper

COLUMNS = 512
SIZES = {"16 KiB": 4096, "1 MiB": 262_144, "64 MiB": 16_777_216}
CHAIN = 1100
MEAN = {"axes": [-1]}
# Rows (op, inputs, output, attributes) of the nodes from x to y.
GROUPS = {
    "gelu": [("Div", ["x", "root"], "a", {}), ("Erf", ["a"], "b", {}),
             ("Add", ["b", "one"], "c", {}), ("Mul", ["x", "c"], "d", {}),
             ("Mul", ["d", "half"], "y", {})],
    "silu": [("Sigmoid", ["x"], "s", {}), ("Mul", ["x", "s"], "y", {})],
    "softmax": [("Mul", ["x", "half"], "a", {}), ("Softmax", ["a"], "y", {"axis": -1})],
    "layer norm": [("ReduceMean", ["x"], "m", MEAN), ("Sub", ["x", "m"], "d", {}),
                   ("Mul", ["d", "d"], "q", {}), ("ReduceMean", ["q"], "v", MEAN),
                   ("Add", ["v", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
                   ("Div", ["d", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
    "rms norm": [("Mul", ["x", "x"], "q", {}), ("ReduceMean", ["q"], "m", MEAN),
                 ("Add", ["m", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
                 ("Div", ["x", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
}


def cases():
    """(name, rows, shape)"""
    for name, rows in GROUPS.items():
        for size, elements in SIZES.items():
            yield f"{name}, {size}", rows, [elements // COLUMNS, COLUMNS]
    names = ["x", *(f"v{at}" for at in range(CHAIN - 1)), "y"]
    rows = [("Add" if at % 2 else "Mul", [names[at], "half"], names[at + 1], {})
            for at in range(CHAIN)]
    for elements in (1, 1024):
        yield f"{CHAIN} in a row, {elements}", rows, [elements]


def make_model(rows, shape):
    constants = {"root": 2 ** 0.5, "one": 1, "half": 0.5, "eps": 1e-5,
                 "gain": np.linspace(0.5, 1, shape[-1])}
    used = {name for _, inputs, _, _ in rows for name in inputs}
    nodes = [helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes)
             for op, inputs, output, attributes in rows]
    return model_of(nodes, {"x": shape}, {"y": shape}, {
        name: np.asarray(value, np.float32) for name, value in constants.items() if name in used}
    ).SerializeToString()


def load(model, inputs, threads, is_bound):
    """Name -> a function that computes the model once."""
    backends = {"jit": "jit", "native": "native", "oneDNN": "onednn"}
    loaded = {name: Tessera(model, inputs, threads, [backend, "reference"])
              for name, backend in backends.items()}
    if is_bound:
        for runtime in loaded.values():
            runtime.executor.bind_output("y", np.zeros_like(inputs["x"]))
    peer = (BoundOnnxRuntime if is_bound else OnnxRuntime)(model, inputs, threads)
    # With shared outputs, results are views of OpenVINO's own memory.
    openvino = functools.partial(OpenVino(model, inputs, threads).run, share_outputs=is_bound)
    return {**{name: runtime.run for name, runtime in loaded.items()}, "ONNX Runtime": peer.run,
            "OpenVINO": openvino}


def measure(arguments, rows, shape):
    """Name -> median microseconds of a run."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    calls = load(make_model(rows, shape), {"x": x}, arguments.threads, arguments.memory == "bound")
    expected = [np.array(calls["ONNX Runtime"]()[0])]
    for name, text in differences(expected, {name: [np.asarray(call()[0])]
                                             for name, call in calls.items()}).items():
        fail(f"{name} differs from ONNX Runtime: {text}")
    # Into memory that was written before.
    calls["memcpy"] = functools.partial(np.copyto, np.zeros_like(x), x)
    timers = {name: timer_of(call) for name, call in calls.items()}
    return {name: 1e6 * statistics.median(times)
            for name, times in take_turns(timers, arguments.seconds).items()}


def parse_arguments():
    parser = Parser(__doc__, "--threads 2 --memory bound")
    parser.option("--seconds", 0.3, "for each runtime of a row")
    parser.option("--memory", "new", "of the outputs", choices=["new", "bound"])
    parser.option("--only", "", "rows whose names begin so", metavar="TEXT")
    parser.flag("--json", "print JSON")
    parser.share("module_dir", threads=1)
    return parser.parse()


def main():
    arguments = parse_arguments()
    import openvino  # noqa: F401  its copy of oneTBB is the newest, and is used by all

    rows = []
    for name, nodes, shape in cases():
        if not name.startswith(arguments.only):
            continue
        rows.append({"row": name, **measure(arguments, nodes, shape)})
        if not arguments.json:
            if len(rows) == 1:
                print("| group | " + " | ".join(list(rows[0])[1:]) + " |")
                print("|---" * len(rows[0]) + "|")
            values = [f"{value:,.1f}" for value in list(rows[-1].values())[1:]]
            print(f"| {name} | " + " | ".join(values) + " |", flush=True)
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "memory": arguments.memory,
                          "rows_us": rows}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
