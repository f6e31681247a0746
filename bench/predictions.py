#!/usr/bin/env python3
"""Compares what tuning predicts with what a later process measures.

Each model is tuned in one process, and immediately run with the costs in a second one, because the
machine's speed drifts within minutes. `isolated` is the sum of kernel times measured alone,
`predicted` the sum of those measured in context, `measured` the lower quartile of 30 runs from
Python."""

import argparse
import json
import pathlib
import sys
import tempfile

import compare


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/predictions.py --models resnet50,chess --threads 2")
    parser.add_argument("--models", default="", metavar="LIST",
                        help="as of bench/compare.py (default: every model of the zoo)")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[1, 2], metavar="LIST")
    parser.add_argument("--tune-budget", type=compare.seconds, default=60.0, metavar="S")
    parser.add_argument("--runs", type=compare.whole_number, default=30, metavar="N")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return compare.parse_with_cores(parser)


def predict_and_measure(arguments, file, threads):
    """The predictions of the first process with the measurements of the second, or the reason for a
    failure."""
    with tempfile.TemporaryDirectory() as folder:
        costs = str(pathlib.Path(folder) / "costs.json")
        task = {"model": str(file), "threads": threads, "costs_in": "", "costs_out": costs,
                "budget_seconds": arguments.tune_budget, "module_dir": str(arguments.module_dir),
                "cores": compare.choose_cores(threads), "runs": 0}
        tuned, failure = compare.run_process(task, "plan_process.py")
        if failure:
            return None, failure
        again, failure = compare.run_process({**task, "costs_in": costs, "runs": arguments.runs},
                                             "plan_process.py")
        if failure:
            return None, failure
    return {**tuned, "measured_ms": again["measured_ms"],
            "is_same": again["digest"] == tuned["digest"]}, ""


def errors_of(rows, name):
    """|prediction / measured - 1| of each row."""
    return [abs(row[name] / row["measured_ms"] - 1) for row in rows]


def print_rows(rows):
    import numpy as np

    print(f"{'model':18}{'threads':>8}{'isolated':>10}{'predicted':>10}{'measured':>10}"
          f"{'error':>8}{'error':>8}{'proven':>8}{'solve':>8}{'tuning':>8}")
    print(f"{'':26}{'ms':>10}{'ms':>10}{'ms':>10}{'first':>8}{'second':>8}{'':>8}{'ms':>8}{'s':>8}")
    for row in rows:
        first, second = (row[name] / row["measured_ms"] - 1
                         for name in ("isolated_ms", "predicted_ms"))
        marks = ("" if row["is_same"] else " another plan") + (
            " out of time" if row["is_out_of_time"] else "")
        print(f"{row['model']:18}{row['threads']:>8}{row['isolated_ms']:>10.3f}"
              f"{row['predicted_ms']:>10.3f}{row['measured_ms']:>10.3f}{100 * first:>+7.1f}%"
              f"{100 * second:>+7.1f}%{'yes' if row['is_proven'] else 'no':>8}"
              f"{row['solve_ms']:>8.1f}{row['tuning_seconds']:>8.1f}{marks}")
    for name, title in (("isolated_ms", "first"), ("predicted_ms", "second")):
        errors = errors_of(rows, name)
        print(f"{title} prediction: off by {100 * np.median(errors):.1f} % (median), "
              f"{100 * max(errors):.1f} % (worst)")


def main():
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    models = compare.find_models(arguments.models)
    rows, failures = [], []
    progress = compare.Progress(len(models) * len(arguments.threads))
    for threads in arguments.threads:
        for name, file in models.items():
            progress.say(f"{name}, {threads} threads")
            row, failure = predict_and_measure(arguments, file, threads)
            if failure:
                failures.append(f"{name}, {threads} threads: {failure}")
            else:
                rows.append({"model": name, "threads": threads, **row})
    progress.clear()
    if rows:
        print_rows(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "failures": failures}, indent=1) + "\n")
    for failure in failures:
        print(f"predictions: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
