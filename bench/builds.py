#!/usr/bin/env python3
"""Compares the speed of two builds of Tessera on whole networks, to measure the effect of a change.

Each round starts a new process of each build, in a new random order; a process binds, warms up and
runs. With --optimize, each build first measures its own prices, once for each model. Exit codes: 1,
the whole interval of some row is below --least, or something failed; 2, wrong arguments."""

import argparse
import json
import pathlib
import random
import shlex
import statistics
import sys
import tempfile

from compare import (BLOCK_SECONDS, OWN, ROOT, Progress, choose_cores, enter_environment,
                     find_models, parse_with_cores, run_process, seconds, whole_number,
                     whole_numbers)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/builds.py --before ../old/build/release/python --models chess")
    parser.add_argument("--before", type=pathlib.Path, required=True, metavar="DIR",
                        help="folder of the Python module of the earlier build")
    parser.add_argument("--after", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build" / "release" / "python",
                        help="of the later one (default: build/release/python)")
    parser.add_argument("--models", default="", help="as bench/compare.py has it (default: the zoo)")
    parser.add_argument("--threads", type=whole_numbers, default=[1, 2], help="(default: 1,2)")
    parser.add_argument("--rounds", type=whole_number, default=9, help="(default: 9)")
    parser.add_argument("--seconds", type=seconds, default=1.0,
                        help="of runs in each process (default: 1)")
    parser.add_argument("--optimize", action="store_true", help="by prices that each build measures")
    parser.add_argument("--tune-budget", type=seconds, default=0.0,
                        help="seconds (default: what a bind takes of itself)")
    parser.add_argument("--least", type=float, default=0.98,
                        help="time before / time after that no interval may lie below (default: 0.98)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every process's median")
    return parse_with_cores(parser)


def measure_model(arguments, model, threads, progress, name):
    """For each build, the medians of its processes in milliseconds, and the failures."""
    builds = {"before": arguments.before, "after": arguments.after}
    medians = {build: [] for build in builds}
    task = {"model": str(model), "threads": threads, "cores": choose_cores(threads), "shapes": {},
            "runtimes": {OWN: []}, "seconds": arguments.seconds, "block_seconds": BLOCK_SECONDS}
    with tempfile.TemporaryDirectory() as folder:
        costs = {}
        for build, module_dir in builds.items() if arguments.optimize else ():
            progress.say(f"{name}, {threads} threads, measuring prices {build}")
            costs[build] = {OWN: str(pathlib.Path(folder) / f"{build}.json")}
            _, failure = run_process({**task, "backends": [], "costs": costs[build][OWN],
                                      "budget_seconds": arguments.tune_budget,
                                      "module_dir": str(module_dir.resolve())}, "tune_process.py")
            if failure:
                return medians, f"{build}: {failure}"
        for index in range(arguments.rounds):
            progress.say(f"{name}, {threads} threads, round {index + 1} of {arguments.rounds}")
            order = list(builds)
            random.Random(index).shuffle(order)
            for build in order:
                result, failure = run_process({
                    **task, "costs": costs.get(build, {}), "seed": index,
                    "module_dir": str(builds[build].resolve())})
                if result is None:
                    return medians, f"{build}: {failure}"
                medians[build].append(statistics.median(result["times"][OWN]) * 1e3)
    return medians, ""


def main():
    arguments = parse_arguments()
    enter_environment(arguments.before)
    enter_environment(arguments.after)
    # Imported only here: they need NumPy, which is in .venv.
    from ratios import geometric_mean, ratio_of
    from report import cpu_name

    models = find_models(arguments.models)
    progress = Progress(len(models) * len(arguments.threads)
                        * (arguments.rounds + 2 * arguments.optimize))
    rows, failures = [], []
    for threads in arguments.threads:
        for name, model in models.items():
            medians, failure = measure_model(arguments, model, threads, progress, name)
            if failure:
                failures.append(f"{name}, {threads} threads: {failure}")
                continue
            ratio = ratio_of(medians["before"], medians["after"])
            rows.append({"model": name, "threads": threads, "milliseconds": medians,
                         **ratio.as_dict()})
    progress.clear()
    header = {"cpu": cpu_name(), "command": shlex.join(["bench/builds.py", *sys.argv[1:]])}
    print(f"{header['cpu']}\ncommand: {header['command']}\n")
    width = max([len("geometric mean"), *(len(row["model"]) for row in rows)]) + 1
    print(f"{'model':{width}}threads  before ms   after ms   before / after")
    for row in rows:
        before, after = (statistics.median(row["milliseconds"][build])
                         for build in ("before", "after"))
        low, high = row["ratio_interval"] or (row["ratio"], row["ratio"])
        slower = "  slower" if high < arguments.least else ""
        print(f"{row['model']:{width}}{row['threads']:7}{before:11.3f}{after:11.3f}"
              f"   {row['ratio']:.3f} [{low:.3f}, {high:.3f}]{slower}")
        if slower:
            failures.append(f"{row['model']}, {row['threads']} threads: the whole interval of "
                            f"before / after lies below {arguments.least}")
    for threads in arguments.threads:
        pairs = [(row["milliseconds"]["before"], row["milliseconds"]["after"])
                 for row in rows if row["threads"] == threads]
        if pairs:
            mean = geometric_mean(pairs)
            print(f"{'geometric mean':{width}}{threads:7}{'':22}   {mean.value:.3f}"
                  + (f" [{mean.low:.3f}, {mean.high:.3f}]" if mean.low is not None else ""))
    if arguments.json:
        arguments.json.write_text(json.dumps({**header, "results": rows, "failures": failures},
                                             indent=1) + "\n")
    for failure in failures:
        print(f"builds: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
