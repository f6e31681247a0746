#!/usr/bin/env python3
"""The time of a process from its start (execve) to its first result, minus the time of a warm run:
a C++ program with Tessera, a Python program with ONNX Runtime (an `.ort` file; the time of a Python
process that only imports numpy is subtracted), a C++ program with OpenVINO (with CACHE_DIR).

Each is started twice before measuring, so that its caches are filled and the files are in memory;
then they take turns. Prints medians and their 95 % intervals by bootstrap over starts."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = {}  # for each model, of inputs without fixed shapes: {"tokens": "1x128"}
DEFAULT_MODELS = "resnet50,mobilenet_v2,chess,bert_mini"
RESAMPLES = 2000

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
    def __init__(self, name, command, folder, environment=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.folder = folder
        self.environment = {**os.environ, **(environment or {})}
        self.starts_ms = []
        self.runs_ms = []

    def start(self, cores, counts):
        begin = time.monotonic_ns()
        done = subprocess.run(
            ["taskset", "-c", cores, *self.command], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr}")
        first, run = (int(number) for number in done.stdout.split()[:2])
        if not counts:
            return
        self.starts_ms.append((first - begin - run) / 1e6)
        self.runs_ms.append(run / 1e6)


def interval(values, statistic, seed=1):
    generator = random.Random(seed)
    found = sorted(statistic([generator.choice(values) for _ in values])
                   for _ in range(RESAMPLES))
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES)]


def programs_for(model, name, threads, runs, folder, bin_dir):
    shapes = [f"{value}={shape}" for value, shape in SHAPES.get(name, {}).items()]
    tail = [threads, runs]
    python = [sys.executable, "-c"]
    own = {"XDG_CACHE_HOME": str(folder / "user"), "TESSERA_CACHE_DIR": str(folder / "work")}
    programs = [
        Program("tessera", [bin_dir / "start_tessera", model, *tail, *shapes], folder, own),
        Program("onnxruntime", [*python, ORT_PROGRAM, save_ort(model, folder), *tail, *shapes],
                folder),
        Program("numpy alone", [*python, NUMPY_PROGRAM], folder),
    ]
    if (bin_dir / "start_openvino").exists():
        programs.append(Program("openvino", [bin_dir / "start_openvino", model, *tail,
                                             folder / "openvino", *shapes], folder))
    return programs


def report_of(programs):
    """For each runtime, the median overhead in milliseconds and its interval; for each peer, the
    ratio of Tessera's overhead to its own."""
    by_name = {program.name: program for program in programs}
    python_ms = statistics.median(by_name["numpy alone"].starts_ms)
    overheads = {name: program.starts_ms for name, program in by_name.items()
                 if name != "numpy alone"}
    overheads["onnxruntime"] = [value - python_ms for value in overheads["onnxruntime"]]
    report = {}
    for name, values in overheads.items():
        low, high = interval(values, statistics.median)
        report[name] = {"overhead_ms": statistics.median(values), "low_ms": low, "high_ms": high,
                        "run_ms": statistics.median(by_name[name].runs_ms)}
        if name == "tessera":
            continue
        pairs = list(zip(values, overheads["tessera"]))
        def ratio(some):
            return statistics.median(own for _, own in some) / statistics.median(
                other for other, _ in some)
        low, high = interval(pairs, ratio)
        report[name].update(part=ratio(pairs), part_low=low, part_high=high)
    return report


def measure(model, name, threads, arguments):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:threads])
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "work").mkdir()
        programs = programs_for(model, name, threads, arguments.runs, folder, arguments.bin_dir)
        for _ in range(3):
            for program in programs:
                program.start(cores, counts=False)
        generator = random.Random(0)
        for _ in range(arguments.starts):
            generator.shuffle(programs)
            for program in programs:
                program.start(cores, counts=True)
        return report_of(programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=DEFAULT_MODELS, help=f"of the zoo ({DEFAULT_MODELS})")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--starts", type=int, default=20, help="of each program (20)")
    parser.add_argument("--runs", type=int, default=20, help="behind the first, for their median")
    parser.add_argument("--bin-dir", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--json", type=pathlib.Path, help="FILE for all of it")
    arguments = parser.parse_args()
    everything = {}
    print(f"{'model':<14}{'threads':>8}  {'runtime':<12}{'overhead ms':>12} {'[95 %]':>18}"
          f"{'run ms':>9}  Tessera takes")
    for name in arguments.models.split(","):
        model = ROOT / "build/zoo" / name / "model.onnx"
        for threads in map(int, arguments.threads.split(",")):
            report = measure(model, name, threads, arguments)
            everything[f"{name} {threads}"] = report
            for runtime, row in report.items():
                part = ("" if runtime == "tessera" else
                        f"{row['part']:.2f} [{row['part_low']:.2f}, {row['part_high']:.2f}] of it")
                print(f"{name:<14}{threads:>8}  {runtime:<12}{row['overhead_ms']:>12.1f} "
                      f"{'[%.1f, %.1f]' % (row['low_ms'], row['high_ms']):>18}"
                      f"{row['run_ms']:>9.2f}  {part}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
