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

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

import compare

MODELS = "resnet50,mobilenet_v2,bert_mini"
OWN = "tessera"
FIGURES = ("requests_per_second", "median_s", "p90_s", "p99_s", "max_s")
BENCHMARK_APP = pathlib.Path(sys.executable).parent / "benchmark_app"


def all_runtimes():
    """The runtimes that can be measured here, Tessera first."""
    names = [OWN, "tessera.Pool", "onnxruntime", "openvino"]
    return names + (["benchmark_app"] if BENCHMARK_APP.exists() else [])


def names_of_runtimes(text):
    names = text.split(",")
    for name in names:
        if name not in all_runtimes():
            raise compare.wrong("some of " + ", ".join(all_runtimes()), name)
    return [OWN, *(name for name in names if name != OWN)]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: bench/streams.py --models bert_mini --streams 2 --rounds 3 --seconds 1",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS, metavar="LIST",
                        help="names of folders under build/zoo, or files, separated by commas "
                             f"(default: {MODELS})")
    parser.add_argument("--streams", type=compare.whole_numbers, default=[1, 2, 4], metavar="LIST",
                        help="numbers of streams, separated by commas (default: 1,2,4)")
    parser.add_argument("--rounds", type=compare.whole_number, default=5, metavar="N",
                        help="processes of each runtime (default: 5)")
    parser.add_argument("--seconds", type=compare.seconds, default=5.0, metavar="S",
                        help="time to measure in each process (default: 5)")
    parser.add_argument("--runtimes", type=names_of_runtimes, default=None, metavar="LIST",
                        help="what to compare with tessera, separated by commas (default: all: "
                             + ",".join(all_runtimes()[1:]) + ")")
    parser.add_argument("--optimize", action="store_true",
                        help="Tessera chooses by prices, which a process measures before")
    parser.add_argument("--shape", type=compare.named_shape, action="append", default=[],
                        metavar="NAME=DIMxDIM",
                        help="of an input that the model leaves open; may be repeated")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything that was measured")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return parser.parse_args()


def run_benchmark_app(task):
    """The result of OpenVINO's own program, which prints text; or the reason for its failure."""
    streams = str(task["streams"])
    command = [sys.executable, BENCHMARK_APP, "-m", task["model"], "-d", "CPU", "-hint", "none",
               "-nstreams", streams, "-nthreads", streams, "-nireq", streams, "-infer_precision",
               "f32", "-t", str(max(1, round(task["seconds"])))]
    if task["shapes"]:
        command += ["-shape", ",".join(f"{name}[{','.join(map(str, dims))}]"
                                       for name, dims in task["shapes"].items())]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, task["cores"]))

    def figure(title):
        found = re.search(rf"{title}:\s+([\d.]+)", done.stdout)
        return float(found[1]) if found else None

    throughput, runs = figure("Throughput"), figure("Count")
    if done.returncode != 0 or throughput is None:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        return None, lines[-1] if lines else f"ended with exit code {done.returncode}"
    # It prints no percentiles but the median.
    times = {f"{name}_s": None if ms is None else ms / 1000
             for name, ms in (("median", figure("Median")), ("p90", None), ("p99", None),
                              ("max", figure("Max")))}
    return {"requests_per_second": throughput, "runs": int(runs or 0), **times,
            "difference": ""}, ""


def explain_difference(expected, found):
    """How the outputs in two files differ; "" if they do not."""
    import numpy as np
    import runtimes

    arrays = [[file[name] for name in file.files] for file in (np.load(expected), np.load(found))]
    return runtimes.explain_difference(*arrays)


def measure_round(arguments, task, folder, order, progress):
    """The result of each runtime, in `order`; and why the round failed, or ""."""
    results = {}
    for runtime in order:
        progress.say(f"{task['name']}, {task['streams']} streams, {runtime}")
        outputs = folder / f"{runtime}.npz"
        one = {**task, "runtime": runtime, "outputs": str(outputs)}
        result, failure = (run_benchmark_app(one) if runtime == "benchmark_app"
                           else compare.run_process(one, "streams_process.py"))
        failure = failure or result["difference"]
        if failure:
            return {}, f"{runtime}: {failure}"
        results[runtime] = result
    for runtime in order:
        if runtime in (OWN, "benchmark_app"):
            continue
        difference = explain_difference(folder / f"{OWN}.npz", folder / f"{runtime}.npz")
        if difference:
            return {}, f"{runtime} computes something else than {OWN}: {difference}"
    return results, ""


def measure_case(arguments, name, model, streams, chosen, progress):
    """The results of all rounds for one model and number of streams."""
    cores = compare.choose_cores(min(streams, len(os.sched_getaffinity(0))))
    task = {"name": name, "model": str(model), "streams": streams, "cores": cores,
            "seconds": arguments.seconds, "shapes": dict(arguments.shape),
            "optimize": arguments.optimize, "module_dir": str(arguments.module_dir.resolve())}
    order_of = random.Random(f"{name} {streams}")
    rounds = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        if arguments.optimize:
            os.environ["TESSERA_CACHE_DIR"] = text
            progress.say(f"{name}, {streams} streams, measuring prices")
            _, failure = compare.run_process(
                {**task, "runtime": OWN, "seconds": 0.1, "outputs": str(folder / "tuning.npz")},
                "streams_process.py")
            if failure:
                return [], failure
        for _ in range(arguments.rounds):
            order = list(chosen)
            order_of.shuffle(order)
            results, failure = measure_round(arguments, task, folder, order, progress)
            if failure:
                return [], failure
            rounds.append(results)
    return rounds, ""


def row_of(rounds, runtime):
    """The medians of one runtime over the rounds, and its ratio."""
    from ratios import ratio_of

    row = {"runtime": runtime}
    for figure in FIGURES:
        values = [results[runtime][figure] for results in rounds]
        row[figure] = None if None in values else statistics.median(values)
    row["rounds"] = [results[runtime] for results in rounds]
    own, other = ([results[name]["requests_per_second"] for results in rounds]
                  for name in (OWN, runtime))
    return row | ratio_of(own, other).as_dict()


def ms_text(seconds):
    return "-" if seconds is None else f"{seconds * 1000:.2f}"


def print_case(case):
    print(f"\n{case['model']}, {case['streams']} streams on {case['cores']} cores")
    print(f"{'':14}{'requests/s':>12}{'median ms':>12}{'p90':>10}{'p99':>10}{'max':>10}   ratio")
    for row in case["rows"]:
        interval = row["ratio_interval"]
        ratio = "" if row["runtime"] == OWN else f"{row['ratio']:.2f}" + (
            f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
        print(f"{row['runtime']:14}{row['requests_per_second']:12.1f}{ms_text(row['median_s']):>12}"
              f"{ms_text(row['p90_s']):>10}{ms_text(row['p99_s']):>10}{ms_text(row['max_s']):>10}"
              f"   {ratio}".rstrip())


def print_means(cases):
    import numpy as np

    print("\nrequests per second, Tessera over the other: geometric mean over the models")
    for streams in sorted({case["streams"] for case in cases}):
        found = {}
        for case in cases:
            if case["streams"] != streams:
                continue
            for row in case["rows"]:
                found.setdefault(row["runtime"], []).append(row["ratio"])
        print(f"{streams} streams: " + ", ".join(
            f"{runtime} {np.exp(np.mean(np.log(ratios))):.2f}"
            for runtime, ratios in found.items() if runtime != OWN))


def main():
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    models = compare.find_models(arguments.models)
    chosen = arguments.runtimes or all_runtimes()
    total = len(models) * len(arguments.streams) * (
        arguments.rounds * len(chosen) + arguments.optimize)
    progress = compare.Progress(total)
    cases, failures = [], []
    for name, model in models.items():
        for streams in arguments.streams:
            rounds, failure = measure_case(arguments, name, model, streams, chosen, progress)
            if failure:
                failures.append(f"{name}, {streams} streams: {failure}")
                continue
            cases.append({"model": name, "streams": streams,
                          "cores": min(streams, len(os.sched_getaffinity(0))),
                          "rows": [row_of(rounds, runtime) for runtime in chosen]})
            progress.clear()
            print_case(cases[-1])
    progress.clear()
    if cases and len(chosen) > 1:
        print_means(cases)
    if arguments.json:
        arguments.json.write_text(json.dumps(cases, indent=1) + "\n")
    for failure in failures:
        print(f"streams: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
