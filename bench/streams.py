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
over the other's, so if it is above 1, Tessera completes more; brackets contain its 95 % interval,
by bootstrap over rounds. Exit codes: 1, outputs differ or a process failed; 2, wrong arguments."""

import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from harness.arguments import Parser, some_of
from harness.processes import (ProcessFailed, choose_cores, last_line, pin_to, run_process,
                               shuffled, task_of)
from harness.ratios import ratio_of, ratio_text
from harness.report import Report, Table
from harness.runtimes import (OWN, OnnxRuntime, OpenVino, explain_difference, load_tessera,
                              random_inputs, shapes_of)

import numpy as np

FIGURES = ("requests_per_second", "median_s", "p90_s", "p99_s", "max_s")
PROGRAM = "benchmark_app"
PROGRAM_FILE = pathlib.Path(sys.executable).parent / PROGRAM
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "iterations": 1, "FPS": 1}  # that it prints
WARM_UP_RUNS = 3


# --- One process ---


class CallingThreads:
    """Streams that are threads of Python, each of which calls a function of its own again and
    again. All runtimes release the interpreter's lock during a run."""

    def __init__(self, calls):
        self.calls = calls

    def outputs(self):
        """Those of each stream, all at the same time."""
        found = [None] * len(self.calls)

        def call(stream):
            for _ in range(WARM_UP_RUNS):
                found[stream] = self.calls[stream]()

        self._in_threads(call)
        return found

    def measure(self, seconds):
        """The times of all runs, and the time in which they ran, in seconds."""
        times = [[] for _ in self.calls]
        start_together = threading.Barrier(len(self.calls))
        begin_and_end = [None] * len(self.calls)

        def call(stream):
            start_together.wait()
            start = now = time.perf_counter()
            while not times[stream] or now - start < seconds:
                before = now
                self.calls[stream]()
                now = time.perf_counter()
                times[stream].append(now - before)
            begin_and_end[stream] = start, now

        self._in_threads(call)
        begin = min(begin for begin, _ in begin_and_end)
        return sum(times, []), max(end for _, end in begin_and_end) - begin

    def _in_threads(self, call):
        failures = []

        def guarded(stream):
            try:
                call(stream)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(stream,))
                   for stream in range(len(self.calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


class InferQueue:
    """OpenVINO's AsyncInferQueue, which this thread feeds."""

    def __init__(self, loaded, streams):
        import openvino

        self.inputs, self.ports = loaded.inputs, loaded.outputs
        self.queue = openvino.AsyncInferQueue(loaded.compiled, streams)
        self.times, self.ends = [], []
        self.queue.set_callback(self._note_end)

    def _note_end(self, request, begin):
        now = time.perf_counter()
        self.times.append(now - begin)
        self.ends.append(now)

    def outputs(self):
        for _ in range(WARM_UP_RUNS * len(self.queue)):
            self.queue.start_async(self.inputs, time.perf_counter(), share_inputs=True)
        self.queue.wait_all()
        return [[request.results[port] for port in self.ports] for request in self.queue]

    def measure(self, seconds):
        self.times, self.ends = [], []
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            # The wait for a free request does not belong to the next one.
            self.queue.get_idle_request_id()
            self.queue.start_async(self.inputs, time.perf_counter(), share_inputs=True)
        self.queue.wait_all()
        return self.times, max(self.ends) - start


def executors(task, inputs):
    model = load_tessera(task["model"])
    bound = [model.bind(shapes_of(inputs), threads=1, optimize=task["optimize"])
             for _ in range(task["streams"])]
    return CallingThreads([lambda executor=executor: executor.run(inputs) for executor in bound])


def pool(task, inputs):
    import tessera

    made = tessera.Pool(load_tessera(task["model"]), executors=task["streams"],
                        shapes=shapes_of(inputs), optimize=task["optimize"])
    return CallingThreads([lambda: made.submit(inputs).result()] * task["streams"])


def sessions(task, inputs):
    return CallingThreads([OnnxRuntime(task["model"], inputs, threads=1).run
                           for _ in range(task["streams"])])


def infer_queue(task, inputs):
    streams = task["streams"]
    return InferQueue(OpenVino(
        task["model"], inputs, streams, PERFORMANCE_HINT="THROUGHPUT", NUM_STREAMS=streams,
        PERFORMANCE_HINT_NUM_REQUESTS=streams), streams)


RUNTIMES = {"tessera": executors, "tessera.Pool": pool, "onnxruntime": sessions,
            "openvino": infer_queue}


def measure_streams(task):
    """For run_process(): the runtime `task["runtime"]`. Writes its outputs to a file."""
    inputs = random_inputs(task["model"], task["shapes"])
    streams = RUNTIMES[task["runtime"]](task, inputs)
    found = streams.outputs()
    for other in found[1:]:
        if difference := explain_difference(found[0], other):
            raise SystemExit(difference)
    np.savez(task["outputs"], *found[0])
    times, elapsed = streams.measure(task["seconds"])
    median, p90, p99 = (float(value) for value in np.percentile(times, [50, 90, 99]))
    return {"requests_per_second": len(times) / elapsed, "runs": len(times), "median_s": median,
            "p90_s": p90, "p99_s": p99, "max_s": max(times)}


# --- Rounds ---

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
    found = {title: float(number) * UNITS[unit] for title, number, unit in re.findall(
        r"(Throughput|Count|Median|Max):\s+([\d.]+) (\w+)", done.stdout)}
    if done.returncode != 0 or "Throughput" not in found:
        raise ProcessFailed(last_line(done.stdout + done.stderr,
                                      f"ended with exit code {done.returncode}"))
    # It prints no percentiles but the median.
    return {"requests_per_second": found["Throughput"], "runs": int(found.get("Count", 0)),
            "median_s": found.get("Median"), "p90_s": None, "p99_s": None,
            "max_s": found.get("Max")}


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
        orders = [shuffled(arguments.runtimes, f"{name} {streams} {index}")
                  for index in range(arguments.rounds)]
        return [measure_round(task, folder, order, say) for order in orders]


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
