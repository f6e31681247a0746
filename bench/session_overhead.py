#!/usr/bin/env python3
"""What InferenceSession.run() costs: a model of one Add, run by onnxruntime and by
tessera.onnxruntime, in turns.

The kernel takes less than a microsecond, so the time of a run is that of the session around it. The
rows "bound" run with I/O binding. Each side has the options of onnxruntime's default, with all
kernels measured by Tessera before; "not measured" is Tessera before that, or with a lower
optimisation level."""

import json
import statistics
import sys

from harness.arguments import Parser
from harness.turns import alternate, timer_of
from networks.graph_writer import model_of

import numpy as np
from onnx import helper

SIZES = (4, 1000)
BLOCK = 200  # runs between two readings of the clock


def timer_of_block(run):
    def block():
        for _ in range(BLOCK):
            run()

    return timer_of(block)


def make_runs(size):
    """By name, a function for each row of the table. Checks that all compute the same."""
    import onnxruntime
    import tessera.onnxruntime

    model = model_of([helper.make_node("Add", ["x", "y"], ["z"])],
                     dict.fromkeys("xy", [1, size]), {"z": [1, size]}).SerializeToString()
    random = np.random.default_rng(size)
    feed = {name: random.standard_normal((1, size)).astype(np.float32) for name in "xy"}

    def tessera_session(optimize):
        options = tessera.onnxruntime.SessionOptions()
        options.add_session_config_entry("tessera.optimize", optimize)
        return tessera.onnxruntime.InferenceSession(model, options)

    rows = {}
    for name, module, session in (
            ("onnxruntime", onnxruntime, onnxruntime.InferenceSession(
                model, providers=["CPUExecutionProvider"])),
            ("tessera", tessera.onnxruntime, tessera_session("now")),
            ("tessera, not measured", tessera.onnxruntime, tessera_session("off"))):
        binding = session.io_binding()
        for key, array in feed.items():
            binding.bind_cpu_input(key, array)
        result = module.OrtValue.ortvalue_from_shape_and_type([1, size], np.float32)
        binding.bind_ortvalue_output("z", result)
        rows[name] = lambda session=session: session.run(None, feed)
        rows[f"{name}, bound"] = lambda session=session, binding=binding: (
            session.run_with_iobinding(binding))
        rows[f"{name}, bound"]()
        for array in (rows[name]()[0], result.numpy()):
            np.testing.assert_array_equal(array, feed["x"] + feed["y"])
    return rows


def main():
    parser = Parser(__doc__, "--blocks 20")
    parser.option("--blocks", 200, f"blocks of {BLOCK} runs")
    parser.flag("--json", "print JSON")
    parser.share("module_dir")
    arguments = parser.parse()
    results = {}
    for size in SIZES:
        timers = {name: timer_of_block(run) for name, run in make_runs(size).items()}
        times = alternate(timers, arguments.blocks, warm_ups=1)
        results[size] = {name: 1e9 * statistics.median(found) / BLOCK
                         for name, found in times.items()}
    if arguments.json:
        print(json.dumps(results))
        return 0
    print(f"µs for one run, median of {arguments.blocks} blocks of {BLOCK} runs in turns")
    print(f"{'':>30}" + "".join(f"{f'Add [1,{size}]':>14}" for size in SIZES))
    for name in results[SIZES[0]]:
        print(f"{name:>30}" + "".join(f"{results[size][name] / 1000:14.2f}" for size in SIZES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
