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

import argparse
import datetime
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
ZOO = ROOT / "build" / "zoo"
ZOO_SOURCE = ROOT.parent / "shared" / "zoo"
OWN = "tessera"
PEERS = ("onnxruntime", "openvino")
BLOCK_SECONDS = 0.05
LINE_COLUMNS = 79


def fail(message):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(2)


# --- What to compare ---


def wrong(expected, text):
    return argparse.ArgumentTypeError(f"expected {expected}, found '{text}'")


def whole_number(text):
    if not text.isdecimal() or int(text) < 1:
        raise wrong("a whole number of at least 1", text)
    return int(text)


def whole_numbers(text):
    return [whole_number(part) for part in text.split(",")]


def seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise wrong("a number of seconds above 0", text)
    return number


def named_shape(text):
    name, _, dims = text.rpartition("=")
    if not name:
        raise wrong("NAME=DIMxDIM..., as tokens=1x128", text)
    return name, [whole_number(dim) for dim in dims.split("x")]


def names_of_peers(text):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in PEERS:
            raise wrong("some of " + ", ".join(PEERS), name)
    return names


def parse_with_cores(parser):
    """The arguments; `threads` is limited to the number of cores."""
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    if max(arguments.threads) > cores:
        parser.error(f"argument --threads: {max(arguments.threads)} threads, but this process may "
                     f"use {cores} cores")
    return arguments


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: bench/compare.py --models resnet50,chess --threads 1 --backends onednn",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", default="", metavar="LIST",
                        help="names of folders under build/zoo, or files, separated by commas "
                             "(default: every model of the zoo)")
    parser.add_argument("--threads", type=whole_numbers, default=[1, 2], metavar="LIST",
                        help="numbers of threads, separated by commas (default: 1,2)")
    parser.add_argument("--processes", type=whole_number, default=5, metavar="N",
                        help="fresh processes for each model and number of threads (default: 5)")
    parser.add_argument("--seconds", type=seconds, default=1.0, metavar="S",
                        help="time to measure each runtime in each process (default: 1)")
    parser.add_argument("--backends", action="append", default=[], metavar="LIST",
                        help="one more row: Tessera on these backends alone; may be repeated")
    parser.add_argument("--nan-fast", action="store_true",
                        help="one more row: Tessera with nan=fast")
    parser.add_argument("--optimize", action="store_true",
                        help="Tessera chooses by prices that a process of its own measures first")
    parser.add_argument("--tune-budget", type=seconds, default=0.0, metavar="S",
                        help="with --optimize, the most time to measure prices for each model, number "
                             "of threads and row (default: what a bind takes of itself)")
    parser.add_argument("--peers", type=names_of_peers, default=list(PEERS), metavar="LIST",
                        help="the others, separated by commas; \"\" for none (default: "
                             + ",".join(PEERS) + ")")
    parser.add_argument("--shape", type=named_shape, action="append", default=[],
                        metavar="NAME=DIMxDIM",
                        help="of an input that the model leaves open; may be repeated")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything that was measured")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return parse_with_cores(parser)


def make_weights(name):
    """The model of the zoo with its weights, which are generated if they are missing."""
    if not (ZOO / name / "weights.bin").exists():
        unfinished = ZOO / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run([sys.executable, ZOO_SOURCE / "make_weights.py", unfinished, name],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(ZOO / name, ignore_errors=True)
        (unfinished / name).rename(ZOO / name)
    return ZOO / name / "model.onnx"


def find_models(text):
    """Name -> file of the models in --models."""
    in_zoo = {path.parent.name for folder in (ZOO, ZOO_SOURCE)
              for path in folder.glob("*/model.onnx")} - {"unfinished"}
    if not text and not in_zoo:
        fail(f"no models in {ZOO}: name some with --models FILE,...")
    models = {}
    for word in text.split(",") if text else sorted(in_zoo):
        path = pathlib.Path(word)
        if word in in_zoo:
            models[word] = make_weights(word)
        elif path.is_file():
            models[path.parent.name if path.stem == "model" else path.stem] = path.resolve()
        else:
            fail(f"--models: '{word}' is neither a file nor a model of the zoo, which has "
                 + (", ".join(sorted(in_zoo)) or "none"))
    return models


def choose_cores(count):
    """The cores to run on: a core's second thread is used only after every core has one."""
    allowed = sorted(os.sched_getaffinity(0))
    seen, first, second = set(), [], []
    for core in allowed:
        file = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        siblings = file.read_text() if file.exists() else str(core)
        (second if siblings in seen else first).append(core)
        seen.add(siblings)
    return (first + second)[:count]


def enter_environment(module_dir):
    """Restarts the program in .venv, which has NumPy, if there is one; exits if the module is not
    built."""
    if not any(module_dir.glob("tessera/_core*")):
        fail(f"no Python module in {module_dir}: tools/build release")
    if PYTHON.exists() and pathlib.Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


# --- Measuring ---


class Progress:
    """A progress line on a terminal; nothing elsewhere."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.is_shown = sys.stderr.isatty()

    def say(self, text):
        if self.is_shown:
            line = f"[{self.done + 1}/{self.total}] {text}"[:LINE_COLUMNS]
            print(f"\r{line:{LINE_COLUMNS}}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def clear(self):
        if self.is_shown:
            print("\r" + " " * LINE_COLUMNS + "\r", end="", file=sys.stderr, flush=True)


def run_process(task, program="measure_process.py"):
    """The result of one process, or the reason for its failure."""
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / program],
        input=json.dumps(task), capture_output=True, text=True, check=False,
    )
    if process.returncode == 0:
        return json.loads(process.stdout), ""
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    return None, lines[-1] if lines else f"ended with exit code {process.returncode}"


def tune_model(arguments, model, threads, runtimes, folder):
    """Files with costs for Tessera's rows, the tuning report of each, and the failures."""
    files, told = {}, {}
    for row, backends in runtimes.items():
        if row in PEERS:
            continue
        file = pathlib.Path(folder) / f"{len(files)}.json"
        told[row], failure = run_process({
            "model": str(model), "threads": threads, "cores": choose_cores(threads),
            "shapes": dict(arguments.shape), "backends": backends, "costs": str(file), "row": row,
            "budget_seconds": arguments.tune_budget,
            "module_dir": str(arguments.module_dir.resolve()),
        }, "tune_process.py")
        if failure:
            return {}, {}, failure
        files[row] = str(file)
    return files, told, ""


def measure_model(arguments, model, threads, progress, name):
    """The results of all processes for one model and number of threads, and the failures."""
    with tempfile.TemporaryDirectory() as folder:
        return measure_in(folder, arguments, model, threads, progress, name)


def measure_in(folder, arguments, model, threads, progress, name):
    runtimes = {OWN: []}
    for backends in arguments.backends:
        runtimes[f"{OWN}:{backends}"] = backends.split(",")
    if arguments.nan_fast:
        runtimes[f"{OWN}:nan=fast"] = []
    runtimes |= {peer: [] for peer in arguments.peers}
    results, costs, tuned = [], {}, {}
    if arguments.optimize:
        progress.say(f"{name}, {threads} threads, measuring prices")
        costs, tuned, failure = tune_model(arguments, model, threads, runtimes, folder)
        if failure:
            return [], [failure]
    for index in range(arguments.processes):
        progress.say(f"{name}, {threads} threads, process {index + 1} of {arguments.processes}")
        result, failure = run_process({
            "model": str(model), "threads": threads, "cores": choose_cores(threads),
            "runtimes": runtimes, "shapes": dict(arguments.shape), "seconds": arguments.seconds,
            "costs": costs,
            "block_seconds": BLOCK_SECONDS, "seed": index,
            "module_dir": str(arguments.module_dir.resolve()),
        })
        if result is None:
            return results, [failure]
        wrong = [f"{runtime}: {text}" for runtime, text in result["differences"].items() if text]
        if wrong:
            return results, wrong
        results.append({**result, "tuning": tuned})
    return results, []


def main():
    arguments = parse_arguments()
    enter_environment(arguments.module_dir)
    # Imported only here: they need NumPy, which is in .venv.
    from report import all_means, cpu_name, print_report, row_of

    models = find_models(arguments.models)
    rows, failures, versions = [], [], {}
    progress = Progress(len(models) * len(arguments.threads)
                        * (arguments.processes + arguments.optimize))
    for threads in arguments.threads:
        for name, model in models.items():
            results, wrong = measure_model(arguments, model, threads, progress, name)
            failures += [f"{name}, {threads} threads: {text}" for text in wrong]
            if results and not wrong:
                rows.append(row_of(name, threads, results))
                versions |= results[0]["versions"]
    progress.clear()
    header = {
        "cpu": cpu_name(),
        "command": shlex.join(["bench/compare.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processes": arguments.processes,
        "seconds": arguments.seconds,
        "versions": versions,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps({**header, "results": rows,
                                              "geometric_means": all_means(rows),
                                              "failures": failures}, indent=1) + "\n")
    print_report(header, rows)
    for failure in failures:
        print(f"compare: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
