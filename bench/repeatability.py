#!/usr/bin/env python3
"""Measures the candidates of one model in several new processes, one after the other, and compares
the differences between two processes' times of one candidate with the interval that tuning printed.

Two times agree if they differ by less than half the width of the wider of their two intervals. With
--busy, another process computes continuously on the other core; Tessera then uses only the first
core. Exit codes: 1, less than --share of the candidates agree; 2, wrong arguments."""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from compare import ROOT, choose_cores, fail, whole_number

KEY = ("work", "backend", "ingredients", "algorithm", "layouts", "threads", "precision", "nan",
       "density")
# For shorter times, the overhead of the clock and the call is too large for an interval in percent.
LONG_SECONDS = 20e-6
SPIN = "while True: pass"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/repeatability.py build/zoo/resnet50/model.onnx --threads 1 --busy")
    parser.add_argument("model", type=pathlib.Path, help="an ONNX file")
    parser.add_argument("--threads", type=whole_number, default=2, help="(default: 2)")
    parser.add_argument("--processes", type=whole_number, default=2, help="(default: 2)")
    parser.add_argument("--busy", action="store_true",
                        help="with a process that computes on the other core; needs --threads 1")
    parser.add_argument("--backends", default="native,onednn",
                        help="whose candidates (default: native,onednn)")
    parser.add_argument("--share", type=float, default=0.95,
                        help="of the candidates that must agree (default: 0.95)")
    parser.add_argument("--tessera", type=pathlib.Path, metavar="FILE",
                        default=ROOT / "build" / "release" / "bin" / "tessera",
                        help="the program (default: build/release/bin/tessera)")
    arguments = parser.parse_args()
    if arguments.processes < 2:
        parser.error("argument --processes: one process has nothing to be compared with")
    if arguments.busy and arguments.threads != 1:
        parser.error("argument --busy: needs --threads 1, for the other core is taken")
    for file in (arguments.model, arguments.tessera):
        if not file.is_file():
            fail(f"there is no file {file}")
    return arguments


@contextlib.contextmanager
def neighbour(core):
    """A process that computes on `core` until the block ends."""
    process = subprocess.Popen([sys.executable, "-c", SPIN],
                               preexec_fn=lambda: os.sched_setaffinity(0, [core]))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(arguments, cores, folder, number):
    """The times of one process: key of a candidate -> its time."""
    file = folder / f"{number}.json"
    command = [arguments.tessera, "tune", arguments.model, "--all", "--threads",
               str(arguments.threads), "--backends", arguments.backends, "--output", file]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))} failed: {done.stderr.strip()[-300:]}")
    times = {}
    for kernel in json.loads(file.read_text())["kernels"]:
        for kind in ("cold", "warm"):
            if kernel.get(kind) and kernel[kind]["seconds"] > 0:  # a view takes no time
                times[kind, *(kernel[field] for field in KEY)] = kernel[kind]
    return times


def half_width(time):
    return (time["high"] - time["low"]) / 2


def percent(values, share):
    values = sorted(values)
    return 100 * values[min(len(values) - 1, int(share * len(values)))]


def report(pairs):
    """Prints statistics about the pairs of times; returns the share of pairs that agree."""
    agreeing = [abs(one["seconds"] - two["seconds"]) < max(half_width(one), half_width(two))
                for one, two in pairs]
    apart = [abs(one["seconds"] - two["seconds"]) / min(one["seconds"], two["seconds"])
             for one, two in pairs]
    widths = [half_width(time) / time["seconds"] for pair in pairs for time in pair
              if time["seconds"] > LONG_SECONDS]
    rounds = [time["rounds"] for pair in pairs for time in pair]
    share = sum(agreeing) / len(agreeing)
    print(f"pairs of times of one candidate        {len(pairs)}")
    print(f"that agree within the interval         {100 * share:.1f} %")
    print(f"apart: median, 95 of 100, most         {percent(apart, 0.5):.1f} %, "
          f"{percent(apart, 0.95):.1f} %, {percent(apart, 1):.0f} %")
    if widths:
        print(f"interval of those over 20 us, median   +-{100 * statistics.median(widths):.1f} %")
    print(f"rounds: median, most                   {statistics.median(rounds):.0f}, {max(rounds)}")
    return share


def main():
    arguments = parse_arguments()
    cores = choose_cores(arguments.threads)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if arguments.busy:
            others = sorted(os.sched_getaffinity(0) - set(cores))
            if not others:
                fail("--busy needs a second core")
            stack.enter_context(neighbour(others[0]))
        tables = [measure(arguments, cores, pathlib.Path(folder), number)
                  for number in range(arguments.processes)]
    pairs = [(one[key], two[key]) for one, two in itertools.combinations(tables, 2)
             for key in sorted(one.keys() & two.keys())]
    if not pairs:
        fail("no candidate was measured twice")
    print(shlex.join(["bench/repeatability.py", *sys.argv[1:]]))
    return 0 if report(pairs) >= arguments.share else 1


if __name__ == "__main__":
    sys.exit(main())
