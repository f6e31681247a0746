#!/usr/bin/env python3
"""What a new shape costs beside the kernels: encoders with few columns and more and more layers,
whose lengths change in each run.

An executor is bound to a range of lengths. One loop runs the same length again and again, another
one runs two lengths by turns, and both loops take turns. The difference of their medians is the
work for a new shape: the sizes of all values, which type rules give, offsets in the arena, and what
the steps take over of both.

  nodes, steps  of the network and of its plan
  us            of a run, and of a run whose length differs from that of the run before
  new           the difference, in all, and for each step"""

import functools
import itertools
import json
import statistics
import sys
import tempfile
from pathlib import Path

from harness.arguments import Parser, whole_numbers
from harness.runtimes import load_tessera
from harness.turns import alternate, timer_of
from networks.open_networks import text_encoder
from write_networks import write_network

import numpy as np
import onnx

WIDTH, HEADS = 16, 2
SHORT, LONG, MOST = 8, 9, 32
WARM_UP_RUNS = 50


def measure(layers, runs):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_network(functools.partial(text_encoder, layers=layers, width=WIDTH, heads=HEADS), path)
        nodes = len(onnx.load(path).graph.node)
        model = load_tessera(path)
        same, new = (model.bind({"tokens": (1, range(2, MOST + 1))}, threads=1, optimize=False,
                                backends=["native"]) for _ in range(2))
    ids = {length: np.ones((1, length), np.int64) for length in (SHORT, LONG)}
    lengths = itertools.cycle((LONG, SHORT))
    times = alternate({"same": timer_of(lambda: same.run(ids[SHORT])),
                       "new": timer_of(lambda: new.run(ids[next(lengths)]))}, runs, WARM_UP_RUNS)
    same_us, new_us = (1e6 * statistics.median(times[name]) for name in ("same", "new"))
    return {"layers": layers, "node_count": nodes, "step_count": len(new.plan().steps),
            "same_us": same_us, "new_us": new_us, "new_shape_us": new_us - same_us}


def main():
    parser = Parser(__doc__, "--layers 2,4 --runs 100")
    parser.option("--layers", [2, 4, 8, 16, 32], "of the encoders", whole_numbers, "LIST")
    parser.option("--runs", 1000, "runs of each loop")
    parser.flag("--json", "print JSON")
    parser.share("module_dir")
    arguments = parser.parse()
    rows = [measure(layers, arguments.runs) for layers in arguments.layers]
    if arguments.json:
        print(json.dumps(rows))
        return 0
    print("layers  nodes  steps  same, us  other, us  new, us  ns a step")
    for row in rows:
        print(f"{row['layers']:6}  {row['node_count']:5}  {row['step_count']:5}"
              f"  {row['same_us']:8.1f}  {row['new_us']:9.1f}  {row['new_shape_us']:7.1f}"
              f"  {1e3 * row['new_shape_us'] / row['step_count']:9.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
