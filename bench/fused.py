#!/usr/bin/env python3
"""Fused groups that are compiled (backend jit), beside the same nodes on Tessera's own kernels, ONNX
Runtime and OpenVINO: GELU, SiLU, softmax, layer and RMS normalization at three sizes, and a chain
of 1,100 adds and multiplications, which is one kernel.

All runtimes take turns in one process, and are called through Python. The times are medians of runs
in microseconds; that of memcpy is the limit of what only moves data. With more than one thread, the
threads of ONNX Runtime spin while the others run."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import compare

COLUMNS = 512
SIZES = {"16 KiB": 4096, "1 MiB": 262_144, "64 MiB": 16_777_216}
CHAIN = 1100


def rows_of_groups():
    """Name -> rows (op, inputs, output, attributes) of the nodes from x to y."""
    return {
        "gelu": [("Div", ["x", "root"], "a", {}), ("Erf", ["a"], "b", {}),
                 ("Add", ["b", "one"], "c", {}), ("Mul", ["x", "c"], "d", {}),
                 ("Mul", ["d", "half"], "y", {})],
        "silu": [("Sigmoid", ["x"], "s", {}), ("Mul", ["x", "s"], "y", {})],
        "softmax": [("Mul", ["x", "half"], "a", {}), ("Softmax", ["a"], "y", {"axis": -1})],
        "layer norm": [
            ("ReduceMean", ["x"], "m", {"axes": [-1]}), ("Sub", ["x", "m"], "d", {}),
            ("Mul", ["d", "d"], "q", {}), ("ReduceMean", ["q"], "v", {"axes": [-1]}),
            ("Add", ["v", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
            ("Div", ["d", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
        "rms norm": [
            ("Mul", ["x", "x"], "q", {}), ("ReduceMean", ["q"], "m", {"axes": [-1]}),
            ("Add", ["m", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
            ("Div", ["x", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
    }


def chain_rows():
    names = ["x", *(f"v{at}" for at in range(CHAIN - 1)), "y"]
    return [("Add" if at % 2 else "Mul", [names[at], "half"], names[at + 1], {})
            for at in range(CHAIN)]


def save_model(path, rows, shape):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants = {"root": 2 ** 0.5, "one": 1, "half": 0.5, "eps": 1e-5,
                 "gain": np.linspace(0.5, 1, shape[-1])}
    used = {name for _, inputs, _, _ in rows for name in inputs}
    nodes = [helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes)
             for op, inputs, output, attributes in rows]
    graph = helper.make_graph(
        nodes, "group", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(value, np.float32), name)
         for name, value in constants.items() if name in used])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


def make_runs(path, inputs, threads):
    """Name -> a function that runs the model once."""
    import numpy as np
    import runtimes

    loaded = {
        "jit": runtimes.Tessera(path, inputs, threads, ["jit", "reference"]),
        "native": runtimes.Tessera(path, inputs, threads, ["native", "reference"]),
        "ONNX Runtime": runtimes.OnnxRuntime(path, inputs, threads),
        "OpenVINO": runtimes.OpenVino(path, inputs, threads),
    }
    expected = np.asarray(loaded["ONNX Runtime"].run()[0])
    for name in ("jit", "native"):
        difference = runtimes.explain_difference([expected], [np.asarray(loaded[name].run()[0])])
        if difference:
            sys.exit(f"fused: {name} differs from ONNX Runtime: {difference}")
    runs = {name: runtime.run for name, runtime in loaded.items()}
    target = np.empty_like(inputs["x"])
    runs["memcpy"] = lambda: np.copyto(target, inputs["x"])
    return runs


def measure(runs, seconds):
    """Name -> median microseconds of runs in turns."""
    times = {name: [] for name in runs}
    begin = time.perf_counter()
    while len(times["jit"]) < 5 or time.perf_counter() - begin < seconds:
        for name, run in runs.items():
            start = time.perf_counter_ns()
            run()
            times[name].append((time.perf_counter_ns() - start) / 1000)
    return {name: statistics.median(of_name) for name, of_name in times.items()}


def cases():
    """(name, rows, shape)"""
    for name, rows in rows_of_groups().items():
        for size, elements in SIZES.items():
            yield f"{name}, {size}", rows, [elements // COLUMNS, COLUMNS]
    for elements in (1, 1024):
        yield f"{CHAIN} in a row, {elements}", chain_rows(), [elements]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/fused.py --threads 1 --seconds 1")
    parser.add_argument("--threads", type=int, default=1, help="(default: 1)")
    parser.add_argument("--seconds", type=float, default=1, help="for each row (default: 1)")
    parser.add_argument("--only", default="", help="rows whose names begin so")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    module_dir = compare.ROOT / "build/release/python"
    compare.enter_environment(module_dir)
    sys.path.insert(0, str(module_dir))
    import numpy as np

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for name, nodes, shape in cases():
            if not name.startswith(arguments.only):
                continue
            save_model(path, nodes, shape)
            x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            rows.append({"row": name,
                         **measure(make_runs(path, {"x": x}, arguments.threads),
                                   arguments.seconds)})
            if not arguments.json:
                if len(rows) == 1:
                    print("| group | " + " | ".join(list(rows[0])[1:]) + " |")
                    print("|---" * len(rows[0]) + "|")
                values = [f"{value:,.1f}" for value in list(rows[-1].values())[1:]]
                print(f"| {name} | " + " | ".join(values) + " |", flush=True)
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "rows_us": rows}, indent=2))


if __name__ == "__main__":
    main()
