#!/usr/bin/env python3
"""Compares two builds of Tessera on what comes before the runs of a network: the time of tuning, the
time of a process that finds its plan in the cache and runs once, and that process's peak memory.

Each build tunes into caches of its own, which are empty before each tuning; then processes of both
start in turns, in a new random order in each round. Exit codes: 1, the whole interval of some row is
below --least, or something failed; 2, wrong arguments."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from harness.arguments import RELEASE, Parser
from harness.processes import ProcessFailed, choose_cores, pin_to, shuffled, with_caches
from harness.report import Report, Sides

BUILDS = ("before", "after")


def parse_arguments():
    parser = Parser(__doc__, "--before ../old/build/release --models chess")
    parser.option("--before", None, "build folder of the earlier build", pathlib.Path, "DIR",
                  required=True)
    parser.option("--after", RELEASE, "of the later one")
    parser.share("models", threads=[1])
    parser.option("--tunings", 3, "of each build for each model")
    parser.option("--starts", 9)
    parser.share("least", "json")
    return parser.parse()


def run_program(build, arguments, cores, caches):
    """Returns the seconds that the program took and its peak memory in MiB."""
    program = build.resolve() / "bin" / "tessera"
    began = time.monotonic()
    with subprocess.Popen([program, *arguments], env=with_caches(caches),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, preexec_fn=pin_to(cores)) as process:
        message = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ProcessFailed(f"{program} {' '.join(arguments)}: exit code {process.returncode}: "
                            f"{message.strip()[-300:]}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def measure_builds(arguments, model, threads, say):
    """For each quantity and build, a figure of each process."""
    tunings, starts, peaks = figures = [{build: [] for build in BUILDS} for _ in range(3)]
    options = [str(model), "--threads", str(threads)]
    cores = choose_cores(threads)

    def in_turns(rounds, what):
        for index in range(rounds):
            say(f"{what} {index + 1} of {rounds}")
            for build in shuffled(BUILDS, index):
                yield build, getattr(arguments, build), f"{folder}/{build}"

    with tempfile.TemporaryDirectory() as folder:
        for build, path, caches in in_turns(arguments.tunings, "tuning"):
            shutil.rmtree(caches, ignore_errors=True)
            tunings[build].append(run_program(path, ["tune", *options], cores, caches)[0])
        for build, path, caches in in_turns(arguments.starts, "start"):
            taken, peak = run_program(path, ["run", *options, "--random", "1", "--optimize"], cores,
                                      caches)
            starts[build].append(taken * 1e3)
            peaks[build].append(peak)
    return dict(zip(("tuning, s", "start, ms", "memory, MiB"), figures))


def main():
    arguments = parse_arguments()
    report = Report(arguments, arguments.tunings + arguments.starts)
    sides = Sides(report, *BUILDS)

    def measure(name, model, threads):
        for quantity, figures in measure_builds(arguments, model, threads, report.say).items():
            sides.add(name, threads, quantity, figures)

    report.each_case(measure)
    return sides.finish()


if __name__ == "__main__":
    sys.exit(main())
