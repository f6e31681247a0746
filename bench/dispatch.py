#!/usr/bin/env python3
"""The overhead of a step in addition to its kernel: a chain of one-element adds, in Tessera and in
ONNX Runtime.

Each add reads the two values before it, so that no runtime fuses several into one kernel. Tessera
runs on `native` alone, with bound arrays; ONNX Runtime with I/O binding and all its optimisations.
They take turns; the medians are over all runs."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import compare

WARM_UP_RUNS = 50


def save_chain(path, length):
    import onnx
    from onnx import TensorProto, helper

    names = ["first", "second"] + [f"sum{index}" for index in range(length)]
    nodes = [helper.make_node("Add", [names[index], names[index + 1]], [names[index + 2]])
             for index in range(length)]
    # The last value but one is an output too; otherwise only one node would read it.
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
              for name in (*names[:2], *names[-2:])]
    graph = helper.make_graph(nodes, "chain", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return names[:2], names[-2:]


def tessera_runner(path, inputs, outputs):
    import numpy as np
    import tessera

    executor = tessera.load(path, log=lambda message: None).bind(threads=1, backends=["native"])
    for name in inputs:
        executor.bind_input(name, np.zeros(1, np.float32))
    for name in outputs:
        executor.bind_output(name, np.zeros(1, np.float32))
    return executor, executor.run_bound


def onnxruntime_runner(path, inputs, outputs):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name in inputs:
        binding.bind_cpu_input(name, np.zeros(1, np.float32))
    for name in outputs:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32))
        binding.bind_ortvalue_output(name, value)
    return lambda: session.run_with_iobinding(binding)


def measure(runners, runs):
    """For each runner, its medians in nanoseconds, with runs taken in turns."""
    times = {name: [] for name in runners}
    for turn in range(WARM_UP_RUNS + runs):
        for name, run in runners.items():
            start = time.perf_counter_ns()
            run()
            if turn >= WARM_UP_RUNS:
                times[name].append(time.perf_counter_ns() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1000, help="adds in the chain (1000)")
    parser.add_argument("--runs", type=int, default=1000, help="runs of each (1000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    module_dir = compare.ROOT / "build/release/python"
    compare.enter_environment(module_dir)
    sys.path.insert(0, str(module_dir))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chain.onnx"
        inputs, outputs = save_chain(path, arguments.length)
        executor, run = tessera_runner(path, inputs, outputs)
        steps = len(executor.plan().steps)
        if steps != arguments.length:
            sys.exit(f"expected {arguments.length} steps, found {steps}: something was fused")
        medians = measure({"tessera": run, "onnxruntime": onnxruntime_runner(
            path, inputs, outputs)}, arguments.runs)
        result = {name: median / arguments.length for name, median in medians.items()}
        result["tessera, no kernels"] = executor.measure_dispatch_ns()
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"ns for each of {arguments.length} adds, median of {arguments.runs} runs in turns")
    for name, nanoseconds in result.items():
        print(f"{name:>20}  {nanoseconds:7.1f}")


if __name__ == "__main__":
    main()
