#!/usr/bin/env python3
"""Compares the speed of Tessera with ONNX Runtime and OpenVINO, all from Python, in float32.

For every model and number of threads, several new processes are started one after the other, each
restricted to as many cores as it may have threads. In a process, all runtimes load the model, their
outputs on the same random inputs are compared, and then they take turns: blocks of about 50 ms, in
a new random order in each round, so that noise of the machine affects all of them alike.

The runtimes are configured to do the same work. ONNX Runtime: all optimisations, sequential.
OpenVINO: float32, no dynamic quantisation, one stream, latency hint, pinning off. Both get their
inputs without a copy if possible. By default, ONNX Runtime's threads spin while they wait, and this
is kept. So that they do not take time from the next runtime, each block begins only after all
threads of the process are idle, and its first run, which wakes threads, is not counted.

A time is the median over processes of the median of a process's runs. A ratio is the other's time
over Tessera's, so if it is above 1, Tessera is faster; brackets contain its 95 % interval, by
bootstrap over processes. Exit codes: 1, outputs differ or a process failed; 2, wrong arguments."""

import sys
import tempfile

from harness.arguments import Parser, some_of
from harness.processes import run_process, task_of
from harness.ratios import geometric_mean, ratio_of, ratio_text
from harness.report import Report, Table, count_text, width_of
from harness.runtimes import NAN_FAST_ROW, OWN, PEERS, UNFUSED_ROW, compare_runtimes
from harness.tuning import tune_anew

import numpy as np

BEST = "the better peer"
MEAN = "geometric mean"


def parse_arguments():
    parser = Parser(__doc__, "--models resnet50,chess --threads 1 --backends onednn")
    parser.share("models", "threads")
    parser.option("--processes", 5, "fresh processes for each model and number of threads")
    parser.option("--seconds", 1.0, "time to measure each runtime in each process")
    parser.option("--backends", [], "one more row: Tessera on these backends; may be repeated", str,
                  "LIST", action="append")
    parser.flag("--nan-fast", "one more row: Tessera with nan=fast")
    parser.flag("--unfused", "one more row: Tessera without fused groups that are compiled")
    parser.flag("--optimize", "Tessera chooses by prices that a process of its own measures first")
    parser.share("tune_budget")
    parser.option("--peers", list(PEERS), "the others, separated by commas; \"\" for none",
                  some_of(PEERS), "LIST")
    parser.share("shape", "json", "module_dir")
    return parser.parse()


# --- Measuring ---


def runtimes_of(arguments):
    """Name of a row -> the backends of Tessera; none for peers."""
    rows = {f"{OWN}:{backends}": backends.split(",") for backends in arguments.backends}
    others = [NAN_FAST_ROW] * arguments.nan_fast + [UNFUSED_ROW] * arguments.unfused
    return {OWN: [], **rows, **{name: [] for name in others + arguments.peers}}


def measure_model(arguments, name, model, threads, say):
    """The row of one model and number of threads, and the versions of the runtimes."""
    runtimes = runtimes_of(arguments)
    costs, tuning = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.optimize:
            say("measuring prices")
            for row in [row for row in runtimes if row not in PEERS]:
                costs[row] = f"{folder}/{len(costs)}.json"
                tuning[row] = tune_anew(arguments, model, threads, costs[row], row, runtimes[row])
                del tuning[row]["steps"]
        results = []
        for index in range(arguments.processes):
            say(f"process {index + 1} of {arguments.processes}")
            results.append(run_process(compare_runtimes, task_of(
                arguments, model, threads, runtimes=runtimes, costs=costs, seed=index,
                seconds=arguments.seconds)))
    return row_of(name, threads, results, tuning), results[0]["versions"]


def row_of(model, threads, results, tuning):
    """The report on one model and number of threads; `results` has one entry for each process."""
    medians = {runtime: [float(np.median(result["times"][runtime])) * 1e3 for result in results]
               for runtime in results[0]["times"]}
    return {"model": model, "threads": threads, "tuning": tuning, "runtimes": {
        runtime: {
            "median_ms": float(np.median(times)),
            "process_median_ms": times,
            "runs": [len(result["times"][runtime]) for result in results],
            "load_ms": float(np.median([result["load_ms"][runtime] for result in results])),
            **ratio_of(times, medians[OWN]).as_dict(),
        } for runtime, times in medians.items()}}


# --- Reporting ---


def times_of(row, runtime):
    return row["runtimes"][runtime]["process_median_ms"]


def means_of(rows):
    """Geometric means over the models of `rows`, for each runtime; also for the better peer of each
    model."""
    means = {runtime: geometric_mean([(times_of(row, runtime), times_of(row, OWN)) for row in rows])
             for runtime in rows[0]["runtimes"] if runtime != OWN}
    peers = [name for name in means if name in PEERS]
    if len(peers) > 1:
        means[BEST] = geometric_mean(
            [(min((times_of(row, peer) for peer in peers), key=np.median), times_of(row, OWN))
             for row in rows])
    return {runtime: mean.as_dict() for runtime, mean in means.items()}


def print_table(rows, others, means):
    """Compares Tessera with `others`, of which two fit into 100 columns."""
    width = width_of([row["model"] for row in rows])
    Table(("", width), (OWN, "10"), *((name, "32") for name in others)).print_titles()
    table = Table(("model", width), ("ms", "10.3f"),
                  *(("ms", "11.3f"), ("ratio", "21")) * len(others))
    table.print_titles()
    for row in rows:
        entries = [row["runtimes"][name] for name in others]
        table.print(row["model"], row["runtimes"][OWN]["median_ms"], *(
            cell for entry in entries for cell in (entry["median_ms"], ratio_text(entry))))
    if others:
        table.print(MEAN, "", *(cell for name in others for cell in ("", ratio_text(means[name]))))
    print()


def print_tuning(rows):
    """What measuring prices took, what it predicted, and how much of the plan is compiled groups.
    Two predictions: the sum of kernel times measured alone, and of those measured in context."""
    table = Table(("model", width_of([row["model"] for row in rows])), ("row", "<18"),
                  ("tuning s", "8.1f"), ("isolated ms", "12.3f"), ("predicted ms", "13.3f"),
                  ("measured ms", "12.3f"), ("groups", "7"), ("of time", "8.0%"))
    table.print_titles()
    errors = {"isolated_ms": [], "predicted_ms": []}
    for row in rows:
        for name, told in row["tuning"].items():
            measured = row["runtimes"][name]["median_ms"]
            table.print(row["model"], name, told["seconds"], told["isolated_ms"],
                        told["predicted_ms"], measured, told["fused"]["groups"],
                        told["fused"]["share"])
            for key, found in errors.items():
                found.append(100 * abs(told[key] / measured - 1))
    for key, found in errors.items():
        print(f"{key.removesuffix('_ms')}: off by {np.median(found):.1f} % (median), "
              f"{max(found):.1f} % (worst)")
    print()


def print_rows(rows, means):
    others = [name for name in rows[0]["runtimes"] if name != OWN]
    print(f"{count_text(rows[0]['threads'])}; medians over processes; "
          "ratio: the other's time / Tessera's [95 %]")
    for start in range(0, max(1, len(others)), 2):
        print_table(rows, others[start:start + 2], means)
    if rows[0]["tuning"]:
        print_tuning(rows)
    if BEST in means:
        print(f"{BEST} of each model: {ratio_text(means[BEST])}\n")


def main():
    arguments = parse_arguments()
    report = Report(arguments, arguments.processes + arguments.optimize)
    versions, rows, means = {}, {}, {}

    def measure(name, model, threads):
        row, found = measure_model(arguments, name, model, threads, report.say)
        rows.setdefault(threads, []).append(row)
        report.rows.append(row)
        versions.update(found)

    report.each_case(measure)
    report.print_header(", ".join(" ".join(pair) for pair in versions.items()))
    for threads, some in rows.items():
        means[threads] = means_of(some)
        print_rows(some, means[threads])
    return report.finish(
        versions=versions, processes=arguments.processes, seconds=arguments.seconds,
        geometric_means=[{"threads": threads, "runtime": runtime, **mean}
                         for threads, found in means.items() for runtime, mean in found.items()])


if __name__ == "__main__":
    sys.exit(main())
