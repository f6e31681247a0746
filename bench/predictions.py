#!/usr/bin/env python3
"""Compares what tuning predicts with what a later process measures.

Each model is tuned in one process, and immediately run with the costs in a second one, because the
machine's speed drifts within minutes. `isolated` is the sum of kernel times measured alone,
`predicted` the sum of those measured in context, `measured` the lower quartile of 30 runs from
Python."""

import sys
import tempfile

from harness.arguments import Parser
from harness.processes import run_process, task_of
from harness.report import Report, Table, width_of
from harness.tuning import run_plans, tune_anew

import numpy as np


def parse_arguments():
    parser = Parser(__doc__, "--models resnet50,chess --threads 2")
    parser.share("models", "threads", tune_budget=60.0)
    parser.option("--runs", 30)
    parser.share("json", "module_dir")
    return parser.parse()


def predict_and_measure(arguments, file, threads):
    """The predictions of the first process with the measurements of the second."""
    with tempfile.TemporaryDirectory() as folder:
        costs = f"{folder}/costs.json"
        told = tune_anew(arguments, file, threads, costs)
        again = run_process(run_plans, task_of(arguments, file, threads, plans=[costs],
                                               runs=arguments.runs), caches="")
    steps = told.pop("steps")
    return {**told, "measured_ms": again["quartiles_ms"][0], "is_same": again["steps"] == [steps]}


def errors_of(rows, name):
    """|prediction / measured - 1| of each row."""
    return [abs(row[name] / row["measured_ms"] - 1) for row in rows]


def main():
    arguments = parse_arguments()
    report = Report(arguments, steps=1)
    table = Table(("model", width_of(arguments.models, "model")), ("threads", "7"),
                  ("isolated", "10.3f"), ("off", "8"), ("predicted", "11.3f"), ("off", "8"),
                  ("measured ms", "13.3f"), ("proven", "8"), ("solve ms", "10.1f"),
                  ("tuning s", "10.1f"), ("", "<1"))
    table.print_titles()

    def measure(name, file, threads):
        report.say("tuning, and running")
        row = {"model": name, "threads": threads, **predict_and_measure(arguments, file, threads)}
        cells = []
        for key in ("isolated_ms", "predicted_ms"):
            cells += [row[key], f"{100 * (row[key] / row['measured_ms'] - 1):+.1f}%"]
        marks = ("" if row["is_same"] else " another plan") + (
            " out of time" if row["is_out_of_time"] else "")
        report.print_row(table, row, name, threads, *cells, row["measured_ms"],
                         "yes" if row["is_proven"] else "no", row["solve_ms"], row["seconds"],
                         marks)

    report.each_case(measure)
    for name in ("isolated_ms", "predicted_ms") if report.rows else ():
        errors = errors_of(report.rows, name)
        print(f"{name.removesuffix('_ms')}: off by {100 * np.median(errors):.1f} % (median), "
              f"{100 * max(errors):.1f} % (worst)")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
