#!/usr/bin/env python3
"""The overhead of a step in addition to its kernel: a chain of one-element adds, in Tessera and in
ONNX Runtime.

Each add reads the two values before it, so that no runtime fuses several into one kernel. Tessera
runs on `native` alone, with bound arrays; ONNX Runtime with I/O binding and all its optimisations.
They take turns; the medians are over all runs."""

import json
import statistics
import sys

from harness.arguments import Parser, fail
from harness.runtimes import BoundOnnxRuntime, load_tessera
from harness.turns import alternate, timer_of
from networks.graph_writer import model_of

import numpy as np
from onnx import helper

WARM_UP_RUNS = 50


def chain(length):
    names = ["first", "second"] + [f"sum{index}" for index in range(length)]
    nodes = [helper.make_node("Add", [names[index], names[index + 1]], [names[index + 2]])
             for index in range(length)]
    # The last value but one is an output too; otherwise only one node would read it.
    return model_of(nodes, dict.fromkeys(names[:2], [1]), dict.fromkeys(names[-2:], [1]))


def main():
    parser = Parser(__doc__, "--length 100 --runs 100")
    parser.option("--length", 1000, "adds in the chain")
    parser.option("--runs", 1000, "runs of each")
    parser.flag("--json", "print JSON")
    parser.share("module_dir")
    arguments = parser.parse()
    model = chain(arguments.length).SerializeToString()
    executor = load_tessera(model).bind(threads=1, backends=["native"])
    if (steps := len(executor.plan().steps)) != arguments.length:
        fail(f"expected {arguments.length} steps, found {steps}: something was fused")
    for value in executor.inputs:
        executor.bind_input(value.name, np.zeros(1, np.float32))
    for value in executor.outputs:
        executor.bind_output(value.name, np.zeros(1, np.float32))
    inputs = {value.name: np.zeros(1, np.float32) for value in executor.inputs}
    timers = {"tessera": timer_of(executor.run_bound),
              "onnxruntime": timer_of(BoundOnnxRuntime(model, inputs, threads=1).run)}
    result = {name: 1e9 * statistics.median(times) / arguments.length
              for name, times in alternate(timers, arguments.runs, WARM_UP_RUNS).items()}
    result["tessera, no kernels"] = executor.measure_dispatch_ns()
    if arguments.json:
        print(json.dumps(result))
        return 0
    print(f"ns for each of {arguments.length} adds, median of {arguments.runs} runs in turns")
    for name, nanoseconds in result.items():
        print(f"{name:>20}  {nanoseconds:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
