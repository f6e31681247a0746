#!/usr/bin/env python3
"""Tunes one model in many new processes, and checks whether they choose the same plan.

Each process starts without stored artifacts, measures, chooses and writes its costs. Then one
process binds every chosen plan, the most frequent one twice, and runs them in turns, each turn in a
different order, so that noise affects all of them alike. Two plans are compared by the ratio of
their times within a turn: its median over the turns, with its 95 % interval by bootstrap. The noise
is the larger distance from 1 of the ends of this interval for the plan and its own twin. A plan
differs from the fastest if the interval of their ratio does not contain 1 and the interval's nearer
end exceeds the noise. The verdict is `same` if there is one plan, `as fast` if none differs,
otherwise `different`, with exit code 1."""

import collections
import sys
import tempfile

from harness.arguments import Parser, fail, find_models
from harness.processes import run_process, task_of
from harness.ratios import ratio_of
from harness.report import Table
from harness.tuning import digest_of, run_plans, tune_anew

import numpy as np


def parse_arguments():
    parser = Parser(__doc__, "resnet50 --processes 20 --threads 2")
    parser.add_argument("model", help="a name of the zoo, or a file")
    parser.option("--processes", 20)
    parser.option("--turns", 40, "in each of which every plan runs")
    parser.share("module_dir", threads=2, tune_budget=60.0)
    return parser.parse()


def compare_plans(times, twin):
    """`times`: digest -> milliseconds for each turn; `twin`: those of the first plan's twin.
    Returns for each digest the ratio to the fastest; the noise; and the verdict."""
    fastest = min(times.values(), key=np.median)
    ratios = {digest: ratio_of(one, fastest) for digest, one in times.items()}
    to_itself = ratio_of(next(iter(times.values())), twin)
    noise = max(1 - to_itself.low, to_itself.high - 1)
    verdict = "same" if len(times) == 1 else "as fast"
    # If `low` is below 1, the interval contains 1, or the plan is the faster one.
    if any(ratio.low > 1 + noise for ratio in ratios.values()):
        verdict = "different"
    return ratios, noise, verdict


def tune_and_run(arguments, file, folder):
    """The number of processes that chose each plan, by digest, the most frequent first; the seconds
    of each tuning; and the milliseconds of each turn of the first one's twin and of all."""
    costs, seconds = {}, []
    counts = collections.Counter()
    for index in range(arguments.processes):
        path = f"{folder}/{index}.json"
        told = tune_anew(arguments, file, arguments.threads, path)
        digest = digest_of(told["steps"])
        costs.setdefault(digest, path)
        counts[digest] += 1
        seconds.append(told["seconds"])
    counts = dict(counts.most_common())
    plans = [costs[digest] for digest in (next(iter(counts)), *counts)]
    again = run_process(run_plans, task_of(arguments, file, arguments.threads, plans=plans,
                                           turns=arguments.turns), caches="")
    found = [digest_of(steps) for steps in again["steps"][1:]]
    if found != list(counts):
        fail(f"costs of plans {list(counts)} led another process to {found}")
    return counts, seconds, again["times_ms"]


def main():
    arguments = parse_arguments()
    (name, file), = find_models(arguments.model).items()
    with tempfile.TemporaryDirectory() as folder:
        counts, seconds, (twin, *rest) = tune_and_run(arguments, file, folder)
    times = dict(zip(counts, rest))
    ratios, noise, verdict = compare_plans(times, twin)
    print(f"{arguments.processes} processes tuned {name} for {arguments.threads} threads, "
          f"{np.median(seconds):.1f} s each")
    table = Table(("plan", "<14"), ("processes", "10"), ("median ms", "12.3f"),
                  ("ratio to the fastest", "30"))
    table.print_titles()
    for digest, count in counts.items():
        table.print(digest, count, np.median(times[digest]), ratios[digest].text(3))
    print(f"noise {100 * noise:.1f} % (one plan beside itself); the plans are: {verdict}")
    return 1 if verdict == "different" else 0


if __name__ == "__main__":
    sys.exit(main())
