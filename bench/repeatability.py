#!/usr/bin/env python3
"""Measures the candidates of one model in several new processes, one after the other, and compares
the differences between two processes' times of one candidate with the interval that tuning printed.

Two times agree if they differ by less than half the width of the wider of their two intervals. With
--busy, another process computes continuously on the other core; Tessera then uses only the first
core. Exit codes: 1, less than --share of the candidates agree; 2, wrong arguments."""

import contextlib
import itertools
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from harness.arguments import Parser, fail
from harness.processes import choose_cores, pin_to

import numpy as np

KEY = ("work", "backend", "ingredients", "algorithm", "layouts", "threads", "precision", "nan",
       "density")
# For shorter times, the overhead of the clock and the call is too large for an interval in percent.
LONG_SECONDS = 20e-6


def parse_arguments():
    parser = Parser(__doc__, "build/zoo/resnet50/model.onnx --threads 1 --busy")
    parser.add_argument("model", type=pathlib.Path, help="an ONNX file")
    parser.option("--processes", 2)
    parser.flag("--busy", "with a process that computes on the other core; needs --threads 1")
    parser.option("--backends", "native,onednn", "whose candidates")
    parser.option("--share", 0.95, "of the candidates that must agree")
    parser.share("tessera", threads=2)
    arguments = parser.parse()
    if arguments.processes < 2:
        parser.error("argument --processes: one process has nothing to be compared with")
    if arguments.busy and arguments.threads != 1:
        parser.error("argument --busy: needs --threads 1, for the other core is taken")
    if not arguments.model.is_file():
        fail(f"there is no file {arguments.model}")
    return arguments


@contextlib.contextmanager
def neighbour(core):
    """A process that computes on `core` until the block ends."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=pin_to([core]))
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
                          stderr=subprocess.PIPE, text=True, check=False, preexec_fn=pin_to(cores))
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))} failed: {done.stderr.strip()[-300:]}")
    return {(kind, *(kernel[field] for field in KEY)): kernel[kind]
            for kernel in json.loads(file.read_text())["kernels"] for kind in ("cold", "warm")
            if kernel.get(kind) and kernel[kind]["seconds"] > 0}  # a view takes no time


def report(pairs):
    """Prints statistics about the pairs of times; returns the share of pairs that agree."""
    seconds, half_widths, rounds = (np.array([[of(time) for time in pair] for pair in pairs])
                                    for of in (lambda time: time["seconds"],
                                               lambda time: (time["high"] - time["low"]) / 2,
                                               lambda time: time["rounds"]))
    difference = abs(seconds[:, 0] - seconds[:, 1])
    share = np.mean(difference < half_widths.max(axis=1))
    middle, most, worst = 100 * np.quantile(difference / seconds.min(axis=1), [0.5, 0.95, 1])
    print(f"pairs of times of one candidate        {len(pairs)}")
    print(f"that agree within the interval         {100 * share:.1f} %")
    print(f"apart: median, 95 of 100, most         {middle:.1f} %, {most:.1f} %, {worst:.0f} %")
    is_long = seconds > LONG_SECONDS
    if is_long.any():
        width = np.median((half_widths / seconds)[is_long])
        print(f"interval of those over 20 us, median   +-{100 * width:.1f} %")
    print(f"rounds: median, most                   {np.median(rounds):.0f}, {rounds.max()}")
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
    return 0 if report(pairs) >= arguments.share else 1


if __name__ == "__main__":
    sys.exit(main())
