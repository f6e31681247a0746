#!/usr/bin/env python3
"""What a synchronisation costs: a chain of small steps on one device, in bulks of 1, 8, 64 steps,
and of as many as the plan allows.

The fake device of the tests counts how often the host waits; for other devices, the number follows
from the plan. The medians are over runs in turns."""

import ctypes
import json
import pathlib
import statistics
import sys

from harness.arguments import Parser
from harness.report import Table
from harness.turns import alternate, timer_of
from networks.graph_writer import model_of

import numpy as np
from onnx import helper

BULKS = [1, 8, 64, 0]
WARM_UP_RUNS = 5


def chain(length, elements):
    names = [f"v{index}" for index in range(length + 1)]
    nodes = [helper.make_node("Neg" if index % 2 else "Abs", [names[index]], [names[index + 1]],
                              name=f"n{index}") for index in range(length)]
    return model_of(nodes, {names[0]: [1, elements]}, {names[-1]: [1, elements]})


class FakeCounters:
    """The counter of synchronisations of tests/backends/fake, found in the opened library."""

    def __init__(self, library):
        self._library = ctypes.CDLL(str(library))
        self._counters = (ctypes.c_int64 * 64)()

    def synchronisations(self):
        self._library.fake_get_counters(ctypes.c_int32(-1), self._counters)
        return self._counters[2]  # fake_counters::synchronisations


def parse_arguments():
    parser = Parser(__doc__, "--backend fake --path build/release/tests/backends/fake.so")
    parser.option("--backend", "opencl", metavar="NAME")
    parser.option("--device", "", "(default: named as the backend)", metavar="NAME")
    parser.option("--path", None, "of a plug-in in no usual folder", pathlib.Path, "FILE")
    parser.option("--steps", 1100)
    parser.option("--elements", 64, "of each value")
    parser.option("--runs", 30, "of each bulk")
    parser.flag("--json", "print JSON")
    parser.share("module_dir")
    return parser.parse()


def main():
    arguments = parse_arguments()
    import tessera

    backend, device = arguments.backend, arguments.device or arguments.backend
    backends = tessera.Backends()
    if arguments.path:
        backends.load_backend(str(arguments.path))
    model = tessera.load(chain(arguments.steps, arguments.elements).SerializeToString(),
                         backends=backends, log=lambda message: None)
    executors = {bulk: model.bind(
        threads=1, optimize=False, backends=[backend], pins=[tessera.Pin("n*", backend)],
        devices=[device], max_bulk_steps=bulk) for bulk in BULKS}
    inputs = {"v0": np.ones((1, arguments.elements), np.float32)}
    runs = {bulk: lambda executor=executor: executor.run(inputs)
            for bulk, executor in executors.items()}
    times = alternate({bulk: timer_of(run) for bulk, run in runs.items()}, arguments.runs,
                      WARM_UP_RUNS)
    counters = FakeCounters(arguments.path) if arguments.path and backend == "fake" else None
    rows = []
    for bulk, executor in executors.items():
        waits = -(-len(executor.plan().steps) // bulk) if bulk else 1
        if counters:
            before = counters.synchronisations()
            runs[bulk]()
            waits = counters.synchronisations() - before
        rows.append({"bulk": bulk or "all", "run_ms": 1e3 * statistics.median(times[bulk]),
                     "synchronisations": waits})
    if arguments.json:
        print(json.dumps({"backend": backend, "steps": arguments.steps, "rows": rows}))
        return
    print(f"{arguments.steps} steps on {device}, median of {arguments.runs} runs in turns")
    table = Table(("bulk", "5"), ("ms a run", "11.3f"), ("us a step", "11.3f"),
                  ("synchronisations", "18"))
    table.print_titles()
    for row in rows:
        table.print(row["bulk"], row["run_ms"], 1e3 * row["run_ms"] / arguments.steps,
                    row["synchronisations"])


if __name__ == "__main__":
    sys.exit(main())
