#!/usr/bin/env python3
"""What a synchronisation costs: a chain of small steps on one device, in bulks of 1, 8, 64 steps, and
of as many as the plan allows.

The fake device of the tests counts how often the host waits; for other devices, the number follows
from the plan. The medians are over runs in turns."""

import argparse
import ctypes
import json
import pathlib
import statistics
import sys
import tempfile
import time

import compare

BULKS = [1, 8, 64, 0]
WARM_UP_RUNS = 5


def save_chain(path, length, elements):
    import onnx
    from onnx import TensorProto, helper

    names = [f"v{index}" for index in range(length + 1)]
    nodes = [helper.make_node("Neg" if index % 2 else "Abs", [names[index]], [names[index + 1]],
                              name=f"n{index}") for index in range(length)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, elements])
            for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


class FakeCounters:
    """The counter of synchronisations of tests/backends/fake, found in the opened library."""

    def __init__(self, library):
        self._library = ctypes.CDLL(str(library))
        self._counters = (ctypes.c_int64 * 64)()

    def synchronisations(self):
        self._library.fake_get_counters(ctypes.c_int32(-1), self._counters)
        return self._counters[2]  # fake_counters::synchronisations


def bind(model, device, bulk):
    import tessera

    pins = [tessera.Pin("n*", device.backend)]
    return model.bind(threads=1, optimize=False, backends=[device.backend], pins=pins,
                      devices=[device.name], max_bulk_steps=bulk)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/bulk.py --backend fake --path build/release/tests/backends/fake.so")
    parser.add_argument("--backend", default="opencl", help="(default: opencl)")
    parser.add_argument("--device", default="", help="(default: named as the backend)")
    parser.add_argument("--path", type=pathlib.Path, help="of a plug-in in no usual folder")
    parser.add_argument("--steps", type=int, default=1100, help="(default: 1100)")
    parser.add_argument("--elements", type=int, default=64, help="of each value (default: 64)")
    parser.add_argument("--runs", type=int, default=30, help="of each bulk (default: 30)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    module_dir = compare.ROOT / "build/release/python"
    compare.enter_environment(module_dir)
    sys.path.insert(0, str(module_dir))
    import numpy as np
    import tessera

    backends = tessera.Backends()
    counters = None
    if arguments.path:
        backends.load_backend(str(arguments.path))
        if arguments.backend == "fake":
            counters = FakeCounters(arguments.path)
    device = argparse.Namespace(backend=arguments.backend, steps=arguments.steps,
                                name=arguments.device or arguments.backend)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chain.onnx"
        save_chain(path, arguments.steps, arguments.elements)
        model = tessera.load(path, backends=backends, log=lambda message: None)
        executors = {bulk: bind(model, device, bulk) for bulk in BULKS}
    elements = np.ones((1, arguments.elements), np.float32)
    times = {bulk: [] for bulk in BULKS}
    waits = dict.fromkeys(BULKS)
    for turn in range(WARM_UP_RUNS + arguments.runs):
        for bulk, executor in executors.items():
            before = counters.synchronisations() if counters else 0
            start = time.perf_counter()
            executor.run({"v0": elements})
            seconds = time.perf_counter() - start
            if counters:
                waits[bulk] = counters.synchronisations() - before
            if turn >= WARM_UP_RUNS:
                times[bulk].append(seconds)
    rows = []
    for bulk in BULKS:
        steps = len(executors[bulk].plan().steps)
        expected = -(-steps // bulk) if bulk else 1
        rows.append({"bulk": bulk or "all", "run_ms": 1e3 * statistics.median(times[bulk]),
                     "synchronisations": expected if waits[bulk] is None else waits[bulk]})
    if arguments.json:
        print(json.dumps({"backend": arguments.backend, "steps": arguments.steps, "rows": rows}))
        return
    print(f"{arguments.steps} steps on {device.name}, median of {arguments.runs} runs in turns")
    print(f"{'bulk':>5}  {'ms a run':>9}  {'us a step':>9}  synchronisations")
    for row in rows:
        print(f"{row['bulk']:>5}  {row['run_ms']:9.3f}  "
              f"{1e3 * row['run_ms'] / arguments.steps:9.3f}  {row['synchronisations']:>16}")


if __name__ == "__main__":
    main()
