#!/usr/bin/env python3
"""The time of a process from its start (execve) to its first result, minus the time of a warm run:
a C++ program with Tessera, a Python program with ONNX Runtime (an `.ort` file; the time of a Python
process that only imports numpy is subtracted), a C++ program with OpenVINO (with CACHE_DIR).

Each is started three times before measuring, so that its caches are filled and the files are in
memory; then they take turns. Prints medians and their 95 % intervals by bootstrap over starts."""

import pathlib
import subprocess
import sys
import tempfile
import time

from harness.arguments import RELEASE, Parser
from harness.processes import choose_cores, pin_to, take_rounds, with_caches
from harness.ratios import estimate, median
from harness.report import Report, Table, width_of
from harness.runtimes import OWN

import numpy as np

SHAPES = {}  # for each model, of inputs without fixed shapes: {"tokens": "1x128"}
WARM_UPS = 3
EMPTY = "numpy alone"

ORT_PROGRAM = """
import sys, time
import numpy as np
import onnxruntime
path, threads, runs, shapes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), dict(
    text.split("=") for text in sys.argv[4:])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.log_severity_level = 3
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_}
feeds = {}
for value in session.get_inputs():
    shape = ([int(dim) for dim in shapes[value.name].split("x")] if value.name in shapes
             else value.shape)
    feeds[value.name] = np.zeros(shape, types[value.type])
session.run(None, feeds)
first = time.monotonic_ns()
times = []
for _ in range(runs):
    start = time.monotonic_ns()
    session.run(None, feeds)
    times.append(time.monotonic_ns() - start)
print(first, sorted(times)[runs // 2], flush=True)
"""
NUMPY_PROGRAM = "import numpy, time; print(time.monotonic_ns(), 0, flush=True)"


def save_ort(model, folder):
    """The model in ONNX Runtime's own format, optimised as far as possible for a file."""
    import onnxruntime

    path = folder / "model.ort"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(path)
    # Includes optimisations for the processor: the file is used on the machine that writes it.
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return path


class Program:
    def __init__(self, command, folder, environment=None):
        self.command = [str(part) for part in command]
        self.folder = folder
        self.environment = environment

    def start(self, cores):
        """The milliseconds to the first result without a run, and those of a run."""
        begin = time.monotonic_ns()
        done = subprocess.run(self.command, cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, check=False, preexec_fn=pin_to(cores))
        if done.returncode != 0:
            raise SystemExit(f"{self.command[0]}: {done.stderr}")
        first, run = (int(number) for number in done.stdout.split()[:2])
        return (first - begin - run) / 1e6, run / 1e6


def programs_for(model, name, threads, arguments, folder):
    shapes = [f"{value}={shape}" for value, shape in SHAPES.get(name, {}).items()]
    tail = [threads, arguments.runs]
    python = [sys.executable, "-c"]
    programs = {
        OWN: Program([arguments.bin_dir / "start_tessera", model, *tail, *shapes], folder,
                     with_caches(folder)),
        "onnxruntime": Program([*python, ORT_PROGRAM, save_ort(model, folder), *tail, *shapes],
                               folder),
        EMPTY: Program([*python, NUMPY_PROGRAM], folder)}
    if (arguments.bin_dir / "start_openvino").exists():
        programs["openvino"] = Program([arguments.bin_dir / "start_openvino", model, *tail,
                                        folder / "openvino", *shapes], folder)
    return programs


def ratio_of_medians(values, others):
    return median(values) / median(others)


def report_of(results):
    """For each runtime, the median overhead in milliseconds and its interval; for each peer, the
    ratio of Tessera's overhead to its own."""
    times = {name: np.transpose(each[WARM_UPS:]) for name, each in results.items()}
    python_ms = median(times.pop(EMPTY)[0])
    times["onnxruntime"][0] -= python_ms
    return {name: {"overhead_ms": estimate(median, starts), "run_ms": median(runs),
                   "part": estimate(ratio_of_medians, times[OWN][0], starts)}
            for name, (starts, runs) in times.items()}


def main():
    parser = Parser(__doc__, "--models chess --threads 1 --json start.json")
    parser.share("threads", "json", models="resnet50,mobilenet_v2,chess,bert_mini")
    parser.option("--starts", 20, "of each program")
    parser.option("--runs", 20, "behind the first, for their median")
    parser.option("--bin-dir", RELEASE / "bin")
    arguments = parser.parse()
    report = Report(arguments, steps=1)
    table = Table(("model", width_of(arguments.models)), ("threads", "7"), ("  runtime", "<14"),
                  ("overhead ms [95 %]", "26"), ("run ms", "9.2f"),
                  ("  Tessera takes", "<1"))
    table.print_titles()

    def measure(name, model, threads):
        report.say("starting processes")
        with tempfile.TemporaryDirectory() as text:
            programs = programs_for(model, name, threads, arguments, pathlib.Path(text))
            told = report_of(take_rounds(
                WARM_UPS + arguments.starts, programs,
                lambda program, _: programs[program].start(choose_cores(threads))))
        for runtime, found in told.items():
            overhead, part = found["overhead_ms"], found["part"]
            row = {"model": name, "threads": threads, "runtime": runtime, "run_ms": found["run_ms"],
                   **overhead.as_dict("overhead_ms"), **part.as_dict("part")}
            report.print_row(table, row, name, threads, f"  {runtime}", overhead.text(1),
                             row["run_ms"], "" if runtime == OWN else f"  {part.text()} of it")

    report.each_case(measure)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
