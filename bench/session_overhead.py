#!/usr/bin/env python3
"""What InferenceSession.run() costs: a model of one Add, run by onnxruntime and by
tessera.onnxruntime, in turns.

The kernel takes less than a microsecond, so the time of a run is that of the session around it. The
rows "bound" run with I/O binding. Each side has the options of onnxruntime's default, with all
kernels measured by Tessera before; "not measured" is Tessera before that, or with a lower
optimisation level."""

import argparse
import json
import pathlib
import statistics
import sys
import time

import compare

SIZES = (4, 1000)
BLOCK = 200  # runs between two readings of the clock


def add_model(size):
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "add", values[:2],
                              values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def runners(module, session, feed):
    """Functions that run a session: on arrays, and with I/O binding."""
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    result = module.OrtValue.ortvalue_from_shape_and_type(list(feed["x"].shape), feed["x"].dtype)
    binding.bind_ortvalue_output("z", result)
    return (lambda: session.run(None, feed)), (lambda: session.run_with_iobinding(binding)), result


def make_runners(size):
    """By name, a function for each row of the table. Checks that all compute the same."""
    import numpy as np
    import onnxruntime
    import tessera.onnxruntime

    content = add_model(size)
    random = np.random.default_rng(size)
    feed = {name: random.standard_normal((1, size)).astype(np.float32) for name in "xy"}

    def tessera_session(optimize):
        options = tessera.onnxruntime.SessionOptions()
        options.add_session_config_entry("tessera.optimize", optimize)
        return tessera.onnxruntime.InferenceSession(content, options)

    sessions = {
        "onnxruntime": (onnxruntime, onnxruntime.InferenceSession(
            content, providers=["CPUExecutionProvider"])),
        "tessera": (tessera.onnxruntime, tessera_session("now")),
        "tessera, not measured": (tessera.onnxruntime, tessera_session("off")),
    }
    rows = {}
    for name, (module, session) in sessions.items():
        rows[name], rows[f"{name}, bound"], result = runners(module, session, feed)
        rows[f"{name}, bound"]()
        for array in (rows[name]()[0], result.numpy()):
            np.testing.assert_array_equal(array, feed["x"] + feed["y"])
    return rows


def measure(rows, blocks):
    """For each row, the median of its blocks, in nanoseconds a run; blocks are taken in turns."""
    times = {name: [] for name in rows}
    for block in range(blocks + 1):
        for name, run in rows.items():
            start = time.perf_counter_ns()
            for _ in range(BLOCK):
                run()
            if block > 0:
                times[name].append((time.perf_counter_ns() - start) / BLOCK)
    return {name: statistics.median(found) for name, found in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=200, help=f"blocks of {BLOCK} runs (200)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--module-dir", type=pathlib.Path,
                        default=compare.ROOT / "build/release/python", help="folder of the module tessera (build/release/python)")
    arguments = parser.parse_args()
    compare.enter_environment(arguments.module_dir)
    sys.path.insert(0, str(arguments.module_dir))
    results = {size: measure(make_runners(size), arguments.blocks) for size in SIZES}
    if arguments.json:
        print(json.dumps(results))
        return
    print(f"µs for one run, median of {arguments.blocks} blocks of {BLOCK} runs in turns")
    print(f"{'':>30}" + "".join(f"{f'Add [1,{size}]':>14}" for size in SIZES))
    for name in results[SIZES[0]]:
        print(f"{name:>30}" + "".join(f"{results[size][name] / 1000:14.2f}" for size in SIZES))


if __name__ == "__main__":
    main()
