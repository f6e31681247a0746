#!/usr/bin/env python3
"""Compares two builds of Tessera on what comes before the runs of a network: the time of tuning,
the time of a process that finds its plan in the cache and runs once, and that process's peak
memory.

Each build tunes into caches of its own, which are empty before each tuning; then processes of both
start in turns, in a new random order in each round. Exit codes: 1, the whole interval of some row
is below --least, or something failed; 2, wrong arguments."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from harness.arguments import RELEASE, Parser
from harness.processes import ProcessFailed, choose_cores, pin_to, take_rounds, with_caches
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
    options = [str(model), "--threads", str(threads)]
    cores = choose_cores(threads)
    with tempfile.TemporaryDirectory() as folder:
        def run(build, *words):
            return run_program(getattr(arguments, build), [*words[:1], *options, *words[1:]], cores,
                               f"{folder}/{build}")

        def tune(build, _):
            shutil.rmtree(f"{folder}/{build}", ignore_errors=True)
            return run(build, "tune")[0]

        tunings = take_rounds(arguments.tunings, BUILDS, tune, say)
        starts = take_rounds(arguments.starts, BUILDS,
                             lambda build, _: run(build, "run", "--random", "1", "--optimize"), say)
    return {"tuning, s": tunings,
            "start, ms": {build: [1e3 * taken for taken, _ in starts[build]] for build in BUILDS},
            "memory, MiB": {build: [peak for _, peak in starts[build]] for build in BUILDS}}


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
