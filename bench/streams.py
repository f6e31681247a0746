#!/usr/bin/env python3
"""Compares how many requests a second Tessera, ONNX Runtime and OpenVINO complete if several run at
the same time, and how long each takes.

A stream has one thread. Tessera: an executor for each stream, called by a thread of Python
("tessera"); and a Pool of as many executors, to which as many threads submit ("tessera.Pool"). ONNX
Runtime: a session for each stream, called by a thread. OpenVINO: its throughput hint, as many
streams and threads, and an AsyncInferQueue ("openvino"); and its own program, if it is installed
("benchmark_app"). All compute in float32.

Each row of a round is a process of its own; in each round, the runtimes come in a new random order.
Processes are restricted to as many cores as there are streams, as far as the machine has them.
Before it measures, a process compares the outputs of its streams, and they are compared with those
of the first runtime. Figures are medians over the rounds. A ratio is Tessera's requests per second
over the other's, so if it is above 1, Tessera completes more; brackets contain its 95 % interval, by
bootstrap over rounds. Exit codes: 1, outputs differ or a process failed; 2, wrong arguments."""

import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from harness.arguments import Parser, some_of
from harness.processes import (ProcessFailed, choose_cores, last_line, pin_to, run_process, shuffled,
                               task_of)
from harness.ratios import ratio_of, ratio_text
from harness.report import Report, Table
from harness.runtimes import OWN, explain_difference
from streams_process import RUNTIMES, measure_streams

import numpy as np

FIGURES = ("requests_per_second", "median_s", "p90_s", "p99_s", "max_s")
PROGRAM = "benchmark_app"
PROGRAM_FILE = pathlib.Path(sys.executable).parent / PROGRAM
KNOWN = [*RUNTIMES, *([PROGRAM] if PROGRAM_FILE.exists() else [])]


def parse_arguments():
    parser = Parser(__doc__, "--models bert_mini --streams 2 --rounds 3 --seconds 1")
    parser.share(models="resnet50,mobilenet_v2,bert_mini")
    parser.option("--streams", [1, 2, 4], "numbers of streams, separated by commas")
    parser.option("--rounds", 5, "processes of each runtime")
    parser.option("--seconds", 5.0, "time to measure in each process")
    parser.option("--runtimes", KNOWN[1:], "what to compare with tessera, separated by commas",
                  some_of(KNOWN), "LIST")
    parser.flag("--optimize", "Tessera chooses by prices, which a process measures before")
    parser.share("shape", "json", "module_dir")
    arguments = parser.parse()
    arguments.runtimes = [OWN, *(name for name in arguments.runtimes if name != OWN)]
    return arguments


def run_benchmark_app(task):
    """The result of OpenVINO's own program, which prints text."""
    streams = str(task["streams"])
    command = [sys.executable, PROGRAM_FILE, "-m", task["model"], "-d", "CPU", "-hint", "none",
               "-nstreams", streams, "-nthreads", streams, "-nireq", streams, "-infer_precision",
               "f32", "-t", str(max(1, round(task["seconds"])))]
    if task["shapes"]:
        command += ["-shape", ",".join(f"{name}[{','.join(map(str, dims))}]"
                                       for name, dims in task["shapes"].items())]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          preexec_fn=pin_to(task["cores"]))
    found = dict(re.findall(r"(Throughput|Count|Median|Max):\s+([\d.]+)", done.stdout))
    if done.returncode != 0 or "Throughput" not in found:
        raise ProcessFailed(last_line(done.stdout + done.stderr,
                                      f"ended with exit code {done.returncode}"))
    # It prints no percentiles but the median.
    times = {f"{name}_s": float(found[title]) / 1000 if title in found else None
             for name, title in (("median", "Median"), ("p90", ""), ("p99", ""), ("max", "Max"))}
    return {"requests_per_second": float(found["Throughput"]), "runs": int(found.get("Count", 0)),
            **times}


def explain_difference_of_files(expected, found):
    """How the outputs in two files differ; "" if they do not."""
    return explain_difference(*([file[name] for name in file.files]
                                for file in (np.load(expected), np.load(found))))


def measure_round(task, folder, order, say):
    """The result of each runtime, in `order`."""
    results = {}
    for runtime in order:
        say(runtime)
        one = {**task, "runtime": runtime, "outputs": f"{folder}/{runtime}.npz"}
        try:
            results[runtime] = (run_benchmark_app(one) if runtime == PROGRAM
                                else run_process(measure_streams, one, task["caches"]))
        except ProcessFailed as failure:
            raise ProcessFailed(f"{runtime}: {failure}") from failure
    for runtime in order:
        difference = runtime != PROGRAM and explain_difference_of_files(
            f"{folder}/{OWN}.npz", f"{folder}/{runtime}.npz")
        if difference:
            raise ProcessFailed(f"{runtime} computes something else than {OWN}: {difference}")
    return results


def measure_rounds(arguments, name, model, streams, say):
    """The results of all rounds for one model and number of streams."""
    with tempfile.TemporaryDirectory() as folder:
        task = task_of(arguments, model, streams, streams=streams, seconds=arguments.seconds,
                       optimize=arguments.optimize,
                       caches=f"{folder}/caches" if arguments.optimize else None)
        if arguments.optimize:
            say("measuring prices")
            measure_round({**task, "seconds": 0.1}, folder, [OWN], say)
        return [measure_round(task, folder, shuffled(arguments.runtimes, f"{name} {streams} {index}"),
                              say) for index in range(arguments.rounds)]


def row_of(rounds, runtime):
    """The medians of one runtime over the rounds, and its ratio."""
    row = {"runtime": runtime, "rounds": [results[runtime] for results in rounds]}
    for figure in FIGURES:
        values = [one[figure] for one in row["rounds"]]
        row[figure] = None if None in values else statistics.median(values)
    own, other = ([results[name]["requests_per_second"] for results in rounds]
                  for name in (OWN, runtime))
    return row | ratio_of(own, other).as_dict()


def print_case(case):
    print(f"\n{case['model']}, {case['streams']} streams on {case['cores']} cores")
    table = Table(("", "<14"), ("requests/s", "12.1f"), ("median ms", "12.2f"), ("p90", "10.2f"),
                  ("p99", "10.2f"), ("max", "10.2f"), ("   ratio", "<1"))
    table.print_titles()
    for row in case["rows"]:
        times = [None if row[figure] is None else 1e3 * row[figure] for figure in FIGURES[1:]]
        table.print(row["runtime"], row["requests_per_second"], *times,
                    "" if row["runtime"] == OWN else f"   {ratio_text(row)}")


def print_means(cases):
    print("\nrequests per second, Tessera over the other: geometric mean over the models")
    for streams in sorted({case["streams"] for case in cases}):
        found = {}
        for row in (row for case in cases if case["streams"] == streams for row in case["rows"]):
            found.setdefault(row["runtime"], []).append(row["ratio"])
        print(f"{streams} streams: " + ", ".join(
            f"{runtime} {np.exp(np.mean(np.log(ratios))):.2f}"
            for runtime, ratios in found.items() if runtime != OWN))


def main():
    arguments = parse_arguments()
    report = Report(arguments, arguments.rounds * len(arguments.runtimes) + arguments.optimize)

    def measure(name, model, streams):
        rounds = measure_rounds(arguments, name, model, streams, report.say)
        case = {"model": name, "streams": streams, "cores": len(choose_cores(streams)),
                "rows": [row_of(rounds, runtime) for runtime in arguments.runtimes]}
        report.rows.append(case)
        report.progress.clear()
        print_case(case)

    report.each_case(measure, arguments.streams, "stream")
    if report.rows and len(arguments.runtimes) > 1:
        print_means(report.rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
