#!/usr/bin/env python3
"""Loops, branches and lists beside ONNX Runtime: models of which the kernels are a small part
(networks/loop_networks.py). Both run in one process, by turns.

  iterations  of the loop
  us          the median of a run
  ratio       ONNX Runtime's time over Tessera's
  ns          for each iteration"""

import json
import statistics
import sys

from harness.arguments import Parser, some_of
from harness.turns import take_turns, timer_of
from networks.loop_networks import LOOPS, make

import numpy as np
import onnxruntime


def load_both(name, iterations, threads, optimize):
    import tessera

    model, feeds = make(name, iterations)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options)
    shapes = {name: array.shape for name, array in feeds.items()}
    executor = tessera.load(data, log=lambda message: None).bind(shapes, threads=threads,
                                                                 optimize=optimize)
    runs = {"onnxruntime": lambda: session.run(None, feeds), "tessera": lambda: executor.run(feeds)}
    for found, expected in zip(runs["tessera"](), runs["onnxruntime"](), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    return runs


def measure(name, iterations, threads, arguments):
    runs = load_both(name, iterations, threads, arguments.optimize)
    times = take_turns({row: timer_of(run) for row, run in runs.items()}, arguments.seconds)
    seconds = {row: statistics.median(times[row]) for row in runs}
    count = 0 if LOOPS[name][1] == 0 else iterations or LOOPS[name][1]
    return {"model": name, "threads": threads, "iterations": count,
            **{f"{row}_us": 1e6 * each for row, each in seconds.items()},
            "ratio": seconds["onnxruntime"] / seconds["tessera"]}


def main():
    parser = Parser(__doc__, "--loops add,scan --threads 1")
    parser.option("--loops", list(LOOPS), "which, separated by commas", some_of(LOOPS), "LIST")
    parser.option("--iterations", 0, "of the loops; 0: the usual number of each")
    parser.share("threads")
    parser.option("--seconds", 1.0, "for each runtime and model")
    parser.flag("--optimize", "Tessera chooses by measured prices")
    parser.flag("--json", "print JSON")
    parser.share("module_dir")
    arguments = parser.parse()
    rows = [measure(name, arguments.iterations, threads, arguments)
            for threads in arguments.threads for name in arguments.loops]
    if arguments.json:
        print(json.dumps(rows))
        return 0
    print("threads  model    iterations  onnxruntime, us  tessera, us  ratio  ns, ns an iteration")
    for row in rows:
        each = "" if row["iterations"] == 0 else (
            f"{1e3 * row['onnxruntime_us'] / row['iterations']:7.0f}"
            f"{1e3 * row['tessera_us'] / row['iterations']:7.0f}")
        print(f"{row['threads']:7}  {row['model']:7}  {row['iterations']:10}"
              f"  {row['onnxruntime_us']:15.1f}  {row['tessera_us']:11.1f}  {row['ratio']:5.2f}{each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
