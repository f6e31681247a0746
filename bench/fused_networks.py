#!/usr/bin/env python3
"""Whole networks with fused groups that are compiled, and without them (`fuse=False`).

For each network and number of threads, a process with empty caches first measures prices and finds
a plan, with and without. Then, in each round, one process runs both plans in turns. Printed are the
medians, the ratio unfused / fused with its 95 % interval, the seconds that tuning took without and
with, and the number of fused groups in the plan and their share of its time. Exit codes: 1, the
whole interval of some row is below --least, or something failed; 2, wrong arguments."""

import statistics
import sys
import tempfile

from harness.arguments import Parser
from harness.processes import run_process, task_of
from harness.report import Report, Sides
from harness.runtimes import OWN, UNFUSED_ROW, compare_runtimes
from harness.tuning import tune_anew

SIDES = {"unfused": UNFUSED_ROW, "fused": OWN}


def parse_arguments():
    parser = Parser(__doc__, "--models bert_mini --threads 1")
    parser.share("models", "threads")
    parser.option("--rounds", 5)
    parser.option("--seconds", 0.5, "of runs of each plan in each process")
    parser.share("least", "json", "module_dir", tune_budget=60.0)
    return parser.parse()


def measure_sides(arguments, model, threads, say):
    """The reports of tuning, and the medians of each process in milliseconds."""
    medians = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        costs = {row: f"{folder}/{side}.json" for side, row in SIDES.items()}
        tuned = {}
        for side, row in SIDES.items():
            say(f"measuring prices, {side}")
            tuned[side] = tune_anew(arguments, model, threads, costs[row], row)
        for index in range(arguments.rounds):
            say(f"round {index + 1} of {arguments.rounds}")
            result = run_process(compare_runtimes, task_of(
                arguments, model, threads, runtimes={row: [] for row in SIDES.values()},
                costs=costs, seed=index, seconds=arguments.seconds))
            for side, row in SIDES.items():
                medians[side].append(statistics.median(result["times"][row]) * 1e3)
    return tuned, medians


def main():
    arguments = parse_arguments()
    report = Report(arguments, arguments.rounds + 2)
    sides = Sides(report, *SIDES)

    def measure(name, model, threads):
        tuned, medians = measure_sides(arguments, model, threads, report.say)
        fused, seconds = tuned["fused"]["fused"], [tuned[side]["seconds"] for side in SIDES]
        note = (f"tuned {seconds[0]:.1f}, {seconds[1]:.1f} s; {fused['groups']} groups, "
                f"{100 * fused['share']:.1f} %")
        sides.add(name, threads, "run, ms", medians, note, **fused, tuning_seconds=seconds)

    report.each_case(measure)
    return sides.finish()


if __name__ == "__main__":
    sys.exit(main())
