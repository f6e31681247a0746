#!/usr/bin/env python3
"""Compares the latency of requests that all have other sizes: Tessera beside ONNX Runtime and
OpenVINO, all from Python, in float32.

networks/open_networks.py has networks that leave dimensions open: the length of a text (an encoder,
a decoder) or of a sound (LSTM), both sides of an image, a batch. The sizes of the requests are
drawn from ranges, without repetition. In a process, all runtimes load the network with its
dimensions open, and run its largest sizes; Tessera's bind() is given the ranges. Then they serve
one request after the other, each in a new random order. A turn begins after all threads of the
process are idle, with a run of the sizes before, which wakes threads and is not counted. What
counts is the first run of the new sizes: its latency, and the processor time of all threads in that
time. Three more runs of the same sizes are the later ones. All outputs are compared.

In one more process for each runtime, it alone runs the same requests, to measure memory.

  50 %, 99 %, worst  of all requests, in milliseconds
  / later            the first run of new sizes over the median of the later ones, the median over
                     the requests
  MiB                how much more memory is resident after the requests than before them, when the
                     largest sizes had run
  ratio              the other's latency over Tessera's, the median over the requests: above 1,
                     Tessera is faster; brackets contain its 95 % interval, by bootstrap over
                     requests

Exit codes: 1, outputs differ or a process failed; 2, wrong arguments."""

import gc
import math
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.arguments import Parser, fail, some_of
from harness.processes import run_process, task_of
from harness.ratios import geometric_mean, ratio_of, ratio_text
from harness.report import Report, Table, count_text
from harness.runtimes import (OPEN_PEERS, OWN, PEERS, PLANS_ROW, check_agreement, load_all,
                              versions_of)
from harness.tuning import tune_anew
from harness.turns import rest, timer_of
from memory import MEBI, status_bytes
from networks.open_networks import NETWORKS, RANGES
from write_networks import write_network

import numpy as np
import onnx

WARM_UP_RUNS = 3  # of the largest sizes
LATER_RUNS = 3
PERCENTILES = {"median": 50, "p99": 99, "worst": 100}


def parse_arguments():
    parser = Parser(__doc__, "--networks text_encoder --threads 1 --requests 50")
    parser.option("--networks", list(NETWORKS), "which, separated by commas", some_of(NETWORKS),
                  "LIST")
    parser.share("threads")
    parser.option("--requests", 100, "requests in each process")
    parser.option("--processes", 1, "fresh processes for each network and number of threads")
    parser.flag("--plans", "one more row: Tessera with a plan for each set of sizes")
    parser.flag("--optimize", "Tessera chooses by prices that a process of its own measures first, "
                "for the largest sizes")
    parser.share("tune_budget")
    parser.option("--peers", list(PEERS), "the others, separated by commas; \"\" for none",
                  some_of(PEERS), "LIST")
    parser.share("json", "module_dir")
    arguments = parser.parse()
    for name in arguments.networks:
        most = count_sizes(RANGES[name]) - 1
        if arguments.requests > most:
            fail(f"--requests: {name} has {most} different sizes, found {arguments.requests}")
    return arguments


# --- Sizes ---


def count_sizes(ranges):
    return math.prod(high - low + 1 for low, high in ranges.values())


def largest_sizes(ranges):
    return {name: high for name, (_, high) in ranges.items()}


def draw_sizes(ranges, count, seed):
    """`count` different sizes, name of a dimension -> number; without the largest of all."""
    drawn = []
    for index in random.Random(seed).sample(range(count_sizes(ranges) - 1), count):
        sizes = {}
        for name, (low, high) in ranges.items():
            index, offset = divmod(index, high - low + 1)
            sizes[name] = low + offset
        drawn.append(sizes)
    return drawn


def declared_shapes(model):
    """Name of an input -> its sizes, of which those that are open are names."""
    return {value.name: [dim.dim_param or dim.dim_value
                         for dim in value.type.tensor_type.shape.dim]
            for value in onnx.load(model).graph.input}


def shapes_at(declared, sizes):
    return {name: [sizes.get(dim, dim) for dim in dims] for name, dims in declared.items()}


# --- One process ---


def parts_of(whole, shapes):
    """Arrays of these shapes: the first elements of the arrays `whole`, so a request allocates
    none."""
    return {name: array.reshape(-1)[:math.prod(shapes[name])].reshape(shapes[name])
            for name, array in whole.items()}


def set_inputs(runtime, whole, shapes):
    inputs = parts_of(whole, shapes)
    runtime.inputs = {name: inputs[name] for name in runtime.inputs}


def serve(runtime, whole, shapes):
    """The turn of a runtime in a request: its outputs, and its figures."""
    rest()
    runtime.run()
    set_inputs(runtime, whole, shapes)
    processor, begin = time.process_time(), time.perf_counter()
    outputs = runtime.run()
    latency, processor = time.perf_counter() - begin, time.process_time() - processor
    timer = timer_of(runtime.run)
    later = statistics.median(timer() for _ in range(LATER_RUNS))
    return outputs, {"latency_ms": latency * 1e3, "processor_ms": processor * 1e3,
                     "later_ms": later * 1e3}


def load_open(task):
    """The runtimes, after runs of the largest sizes, and arrays of inputs of these."""
    loaded, _ = load_all(task, OPEN_PEERS)
    whole = next(iter(loaded.values())).inputs
    for runtime in loaded.values():
        for _ in range(WARM_UP_RUNS):
            runtime.run()
    return loaded, whole


def measure_latency(task):
    """For run_process(): the figures of each runtime of `task["runtimes"]` in each request."""
    loaded, whole = load_open(task)
    figures = {name: [] for name in loaded}
    order = random.Random(task["seed"])
    gc.disable()
    for sizes in task["requests"]:
        shapes, outputs = shapes_at(task["declared"], sizes), {}
        for name in order.sample(list(loaded), len(loaded)):
            outputs[name], found = serve(loaded[name], whole, shapes)
            figures[name].append(found)
        try:
            check_agreement({name: outputs[name] for name in loaded})
        except SystemExit as difference:
            raise SystemExit(f"{sizes}: {difference}") from difference
    return {"versions": versions_of(loaded), "figures": figures}


def measure_memory(task):
    """For run_process(): what is resident before the requests and after each."""
    loaded, whole = load_open(task)
    [runtime] = loaded.values()
    resident = [status_bytes("VmRSS")]
    for sizes in task["requests"]:
        set_inputs(runtime, whole, shapes_at(task["declared"], sizes))
        runtime.run()
        resident.append(status_bytes("VmRSS"))
    return resident


# --- All processes ---


def measure_network(arguments, name, model, threads, say):
    """The row of a network and a number of threads, and the versions of the runtimes."""
    names = [OWN, *[PLANS_ROW] * arguments.plans, *arguments.peers]
    declared = declared_shapes(model)
    largest = shapes_at(declared, largest_sizes(RANGES[name]))
    ranges = shapes_at(declared, {size: list(range_) for size, range_ in RANGES[name].items()})
    costs, latency, resident = {}, [], {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.optimize:
            say("measuring prices")
            costs[OWN] = costs[PLANS_ROW] = f"{folder}/costs.json"
            tune_anew(arguments, model, threads, costs[OWN], shapes=largest)

        def task_with(runtimes, seed):
            return task_of(arguments, model, threads, runtimes=dict.fromkeys(runtimes, ()),
                           shapes=largest, declared=declared, ranges=ranges, costs=costs, seed=seed,
                           requests=draw_sizes(RANGES[name], arguments.requests, seed))

        for index in range(arguments.processes):
            say(f"process {index + 1} of {arguments.processes}")
            latency.append(run_process(measure_latency, task_with(names, index)))
        for runtime in names:
            say(f"memory of {runtime}")
            resident[runtime] = run_process(measure_memory, task_with([runtime], 0))
    return row_of(name, threads, latency, resident), latency[0]["versions"]


def percentiles_of(values):
    return {name: float(np.percentile(values, at)) for name, at in PERCENTILES.items()}


def row_of(network, threads, latency, resident):
    """The report on one network and number of threads. `latency` has one entry for each process,
    `resident` one for each runtime."""
    def all_of(runtime, key):
        return [request[key] for one in latency for request in one["figures"][runtime]]

    row = {"model": network, "threads": threads, "ranges": RANGES[network],
           "requests": len(all_of(OWN, "latency_ms")), "runtimes": {}}
    for runtime, bytes_then in resident.items():
        figures = {key: all_of(runtime, key) for key in ("latency_ms", "processor_ms", "later_ms")}
        row["runtimes"][runtime] = {
            "latency": percentiles_of(figures["latency_ms"]),
            "processor": percentiles_of(figures["processor_ms"]),
            **ratio_of(figures["latency_ms"], figures["later_ms"]).as_dict("first_to_later"),
            "grown_bytes": bytes_then[-1] - bytes_then[0],
            **ratio_of(figures["latency_ms"], all_of(OWN, "latency_ms")).as_dict(),
            **figures, "resident_bytes": bytes_then}
    return row


# --- Reporting ---


def ranges_text(ranges):
    return ", ".join(f"{name} {low} to {high}" for name, (low, high) in ranges.items())


def print_row(row):
    print(f"{row['model']}, {count_text(row['threads'])}, {row['requests']} requests: "
          f"{ranges_text(row['ranges'])}")
    Table(("", "<14"), ("latency, ms", "24"), ("processor, ms", "24"), ("first", "8"),
          ("MiB", "7")).print_titles()
    table = Table(("", "<14"), *(("50 %", "8.3f"), ("99 %", "8.3f"), ("worst", "8.3f")) * 2,
                  ("/ later", "8.2f"), ("grown", "7.1f"), ("   ratio", "<1"))
    table.print_titles()
    for name, found in row["runtimes"].items():
        table.print(name, *found["latency"].values(), *found["processor"].values(),
                    found["first_to_later"], found["grown_bytes"] / MEBI,
                    "" if name == OWN else f"   {ratio_text(found)}")
    print()


def means_of(rows):
    """The geometric means of the ratios of all networks, by the number of threads and the
    runtime."""
    means = {}
    for row in rows:
        own = row["runtimes"][OWN]["latency_ms"]
        for name, found in row["runtimes"].items():
            if name != OWN:
                means.setdefault((row["threads"], name), []).append((found["latency_ms"], own))
    return {key: geometric_mean(pairs) for key, pairs in means.items()}


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        arguments.models = {name: Path(folder) / f"{name}.onnx" for name in arguments.networks}
        for name, model in arguments.models.items():
            write_network(NETWORKS[name], model)
        runtimes = 1 + arguments.plans + len(arguments.peers)
        report = Report(arguments, arguments.optimize + arguments.processes + runtimes)

        def measure(name, model, threads):
            row, versions = measure_network(arguments, name, model, threads, report.say)
            report.progress.clear()
            if not report.rows:
                report.print_header(", ".join(" ".join(pair) for pair in versions.items()))
            report.rows.append(row)
            print_row(row)

        report.each_case(measure)
    means = means_of(report.rows)
    if means:
        print("geometric means of the ratios")
    for (threads, name), mean in means.items():
        print(f"{count_text(threads)}, {name}: {mean.text()}")
    return report.finish(geometric_means=[
        {"threads": threads, "runtime": name, **mean.as_dict()}
        for (threads, name), mean in means.items()])


if __name__ == "__main__":
    sys.exit(main())
