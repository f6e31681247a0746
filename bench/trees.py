#!/usr/bin/env python3
"""Ensembles of trees, and the other ops of ai.onnx.ml, beside ONNX Runtime, for few and many rows
(networks/tree_models.py). Both run in one process, by turns.

  ms        the median of a run
  ratio     ONNX Runtime's time over Tessera's
  lightgbm  the same trees in LightGBM, if it is installed: ms, and its time over Tessera's"""

import json
import statistics
import sys

from harness.arguments import Parser, some_of
from harness.report import Table
from harness.runtimes import OnnxRuntime, Tessera, explain_difference
from harness.turns import take_turns, timer_of
from networks.tree_models import ENSEMBLES, FEATURES, OPS, Trees

import numpy as np


def lightgbm_of(trees):
    """The same trees as a function of rows and threads, or None."""
    try:
        import lightgbm
    except ImportError:
        return None
    booster = lightgbm.Booster(model_str=lightgbm_text(trees))
    return lambda rows, threads: booster.predict(rows, num_threads=threads)


def lightgbm_text(trees):
    """What LightGBM reads: leaves have the numbers ~0, ~1, ... in the order of the lists."""
    lines = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
             f"max_feature_idx={FEATURES - 1}", "objective=regression",
             "feature_names=" + " ".join(f"f{index}" for index in range(FEATURES)),
             "feature_infos=" + " ".join(["[-9:9]"] * FEATURES), ""]
    for tree in range(int(trees.tree[-1]) + 1):
        of = trees.tree == tree
        is_leaf = trees.is_leaf[of]
        place = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
        inner = ~is_leaf
        lists = {"split_feature": trees.feature[of][inner], "threshold": trees.threshold[of][inner],
                 "decision_type": np.full(inner.sum(), 2),
                 "left_child": place[trees.left[of][inner]],
                 "right_child": place[trees.right[of][inner]],
                 "leaf_value": trees.random.random(is_leaf.sum())}
        lines += [f"Tree={tree}", f"num_leaves={is_leaf.sum()}", "num_cat=0",
                  *(f"{name}={' '.join(map(str, values.tolist()))}"
                    for name, values in lists.items()), "is_linear=0", "shrinkage=1", "", ""]
    return "\n".join([*lines, "end of trees", ""])


def measure(name, model, inputs, threads, arguments, others=None):
    """Medians of both, and of `others`, functions by name."""
    data = model.SerializeToString()
    runs = {"onnxruntime": OnnxRuntime(data, inputs, threads).run,
            "tessera": Tessera(data, inputs, threads).run}
    wrong = explain_difference(list(runs["onnxruntime"]()), list(runs["tessera"]()))
    times = take_turns({row: timer_of(run) for row, run in {**runs, **(others or {})}.items()},
                       arguments.seconds)
    medians = {f"{row}_ms": 1e3 * statistics.median(each) for row, each in times.items()}
    return {"model": name, "rows": len(next(iter(inputs.values()))), "threads": threads,
            "wrong": wrong, **medians, "ratio": medians["onnxruntime_ms"] / medians["tessera_ms"]}


def measure_all(arguments):
    for name in arguments.cases:
        random = np.random.default_rng(0)
        if name in ENSEMBLES:
            model = ENSEMBLES[name](arguments.trees, arguments.depth)
            make_inputs = OPS["scaler"][1]
        else:
            make, make_inputs = OPS[name]
            model = make(random)
        beside = None
        if name == "regressor" and arguments.lightgbm:
            beside = lightgbm_of(Trees(arguments.trees, arguments.depth))
        for rows in arguments.rows:
            inputs = make_inputs(random, rows)
            for threads in arguments.threads:
                others = {"lightgbm": lambda: beside(inputs["x"], threads)} if beside else {}
                yield measure(name, model, inputs, threads, arguments, others)


def main():
    parser = Parser(__doc__, "--cases regressor --rows 1,1000000 --threads 1")
    known = [*ENSEMBLES, *OPS]
    parser.option("--cases", known, "which, separated by commas", some_of(known), "LIST")
    parser.option("--rows", [1, 100, 100000], "numbers of rows")
    parser.option("--trees", 500, "of an ensemble")
    parser.option("--depth", 8, "of the trees")
    parser.share("threads")
    parser.option("--seconds", 0.5, "for each runtime, model and number of rows")
    parser.flag("--lightgbm", "run the regressor in LightGBM, too")
    parser.share("module_dir", "json")
    arguments = parser.parse()
    table = Table(("model", "<18"), ("rows", "9"), ("threads", "9"), ("onnxruntime, ms", "17.3f"),
                  ("tessera, ms", "13.3f"), ("ratio", "8.2f"), ("lightgbm, ms", "14.3f"),
                  ("ratio", "8.2f"))
    table.print_titles()
    results = []
    for row in measure_all(arguments):
        results.append(row)
        peer = row.get("lightgbm_ms")
        table.print(row["model"], str(row["rows"]), str(row["threads"]), row["onnxruntime_ms"],
                    row["tessera_ms"], row["ratio"], peer, peer and peer / row["tessera_ms"])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [row for row in results if row["wrong"]]
    for row in wrong:
        print(f"{row['model']} {row['rows']}: {row['wrong']}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
