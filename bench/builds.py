#!/usr/bin/env python3
"""Compares the speed of two builds of Tessera on whole networks, to measure the effect of a change.

Each round starts a new process of each build, in a new random order; a process binds, warms up and
runs. With --optimize, each build first measures its own prices, once for each model. Exit codes: 1,
the whole interval of some row is below --least, or something failed; 2, wrong arguments."""

import pathlib
import statistics
import sys
import tempfile

from harness.arguments import RELEASE, Parser, find_module
from harness.processes import run_process, take_rounds, task_of
from harness.report import Report, Sides
from harness.runtimes import OWN, compare_runtimes
from harness.tuning import tune_anew


def parse_arguments():
    parser = Parser(__doc__, "--before ../old/build/release/python --models chess")
    parser.option("--before", None, "folder of the Python module of the earlier build",
                  pathlib.Path, "DIR", required=True)
    parser.option("--after", RELEASE / "python", "of the later one")
    parser.share("models", "threads")
    parser.option("--rounds", 9)
    parser.option("--seconds", 1.0, "of runs in each process")
    parser.flag("--optimize", "by prices that each build measures")
    parser.share("tune_budget", "least", "json")
    return parser.parse()


def measure_builds(arguments, model, threads, say):
    """For each build, the medians of its processes in milliseconds."""
    builds = {build: str(find_module(folder)) for build, folder
              in (("before", arguments.before), ("after", arguments.after))}
    with tempfile.TemporaryDirectory() as folder:
        costs = {}
        for build in builds if arguments.optimize else ():
            say(f"measuring prices {build}")
            costs[build] = {OWN: f"{folder}/{build}.json"}
            tune_anew(arguments, model, threads, costs[build][OWN], module_dir=builds[build])

        def median_ms(build, index):
            result = run_process(compare_runtimes, task_of(
                arguments, model, threads, module_dir=builds[build], runtimes={OWN: []},
                costs=costs.get(build, {}), seconds=arguments.seconds, seed=index))
            return statistics.median(result["times"][OWN]) * 1e3

        return take_rounds(arguments.rounds, builds, median_ms, say)


def main():
    arguments = parse_arguments()
    report = Report(arguments, arguments.rounds + 2 * arguments.optimize)
    sides = Sides(report, "before", "after")
    report.each_case(lambda name, model, threads: sides.add(
        name, threads, "run, ms", measure_builds(arguments, model, threads, report.say)))
    return sides.finish()


if __name__ == "__main__":
    sys.exit(main())
