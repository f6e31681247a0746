#!/usr/bin/env python3
"""Whole networks with fused groups that are compiled, and without them (`fuse=False`).

For each network and number of threads, a process with empty caches first measures prices and finds a
plan, with and without. Then, in each round, one process runs both plans in turns. Printed are the
seconds that tuning took, the medians, the ratio unfused / fused with its 95 % interval, and the
number of fused groups in the plan and their share of its time. Exit codes: 1, the whole interval of
some row is below --least, or something failed; 2, wrong arguments."""

import argparse
import json
import pathlib
import shlex
import statistics
import sys
import tempfile

from compare import (BLOCK_SECONDS, OWN, ROOT, Progress, choose_cores, enter_environment,
                     find_models, parse_with_cores, run_process, seconds, whole_number,
                     whole_numbers)

UNFUSED = "tessera:fuse=off"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/fused_networks.py --models bert_mini --threads 1")
    parser.add_argument("--models", default="", help="as bench/compare.py has it (default: the zoo)")
    parser.add_argument("--threads", type=whole_numbers, default=[1, 2], help="(default: 1,2)")
    parser.add_argument("--rounds", type=whole_number, default=5, help="(default: 5)")
    parser.add_argument("--seconds", type=seconds, default=0.5,
                        help="of runs of each plan in each process (default: 0.5)")
    parser.add_argument("--tune-budget", type=seconds, default=60.0, help="seconds (default: 60)")
    parser.add_argument("--least", type=float, default=0.98,
                        help="unfused / fused that no interval may lie below (default: 0.98)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every process's median")
    return parse_with_cores(parser)


def measure_model(arguments, model, threads, say):
    """The row of one network, and why there is none."""
    task = {"model": str(model), "threads": threads, "cores": choose_cores(threads), "shapes": {},
            "module_dir": str((ROOT / "build" / "release" / "python").resolve())}
    row = {"threads": threads, "tuning_seconds": {}, "milliseconds": {OWN: [], UNFUSED: []}}
    with tempfile.TemporaryDirectory() as folder:
        costs = {name: str(pathlib.Path(folder) / f"{index}.json")
                 for index, name in enumerate((UNFUSED, OWN))}
        for name, path in costs.items():
            say(f"measuring prices of {name}")
            report, failure = run_process(
                {**task, "backends": [], "costs": path, "row": name,
                 "budget_seconds": arguments.tune_budget}, "tune_process.py")
            if failure:
                return row, f"{name}: {failure}"
            row["tuning_seconds"][name] = report["seconds"]
            row.update(report["fused"])
        for index in range(arguments.rounds):
            say(f"round {index + 1} of {arguments.rounds}")
            result, failure = run_process(
                {**task, "runtimes": {OWN: [], UNFUSED: []}, "costs": costs, "seed": index,
                 "seconds": arguments.seconds, "block_seconds": BLOCK_SECONDS})
            if result is None:
                return row, failure
            for name, times in result["times"].items():
                row["milliseconds"][name].append(statistics.median(times) * 1e3)
    return row, ""


def line(row, width):
    fused, unfused = (statistics.median(row["milliseconds"][name]) for name in (OWN, UNFUSED))
    low, high = row["ratio_interval"] or (row["ratio"], row["ratio"])
    tuned = [row["tuning_seconds"][name] for name in (UNFUSED, OWN)]
    return (f"{row['model']:{width}}{row['threads']:7}{tuned[0]:9.1f}{tuned[1]:9.1f}"
            f"{unfused:11.3f}{fused:11.3f}   {row['ratio']:.3f} [{low:.3f}, {high:.3f}]"
            f"{row['groups']:8}{100 * row['share']:7.1f} %")


def main():
    arguments = parse_arguments()
    enter_environment(ROOT / "build" / "release" / "python")
    # Imported only here: they need NumPy, which is in .venv.
    from ratios import geometric_mean, ratio_of
    from report import cpu_name

    models = find_models(arguments.models)
    width = max([len("geometric mean"), *map(len, models)]) + 1
    progress = Progress(len(models) * len(arguments.threads) * (arguments.rounds + 2))
    header = {"cpu": cpu_name(), "command": shlex.join(["bench/fused_networks.py", *sys.argv[1:]])}
    print(f"{header['cpu']}\ncommand: {header['command']}\n\n{'':{width}}          tuning, s\n"
          f"{'model':{width}}threads  unfused    fused unfused ms   fused ms   unfused / fused"
          f"         groups    share", flush=True)
    rows, failures = [], []
    for threads in arguments.threads:
        for name, model in models.items():
            row, failure = measure_model(
                arguments, model, threads,
                lambda what, at=f"{name}, {threads} threads": progress.say(f"{at}, {what}"))
            if failure:
                failures.append(f"{name}, {threads} threads: {failure}")
                continue
            ratio = ratio_of(row["milliseconds"][UNFUSED], row["milliseconds"][OWN])
            rows.append({"model": name, **row, **ratio.as_dict()})
            progress.clear()
            print(line(rows[-1], width), flush=True)
            if ratio.high is not None and ratio.high < arguments.least:
                failures.append(f"{name}, {threads} threads: the whole interval lies below "
                                f"{arguments.least}")
    progress.clear()
    for threads in arguments.threads:
        pairs = [(row["milliseconds"][UNFUSED], row["milliseconds"][OWN])
                 for row in rows if row["threads"] == threads]
        if pairs:
            tuned = [sum(row["tuning_seconds"][name] for row in rows if row["threads"] == threads)
                     for name in (UNFUSED, OWN)]
            print(f"{'geometric mean':{width}}{threads:7}{tuned[0]:9.1f}{tuned[1]:9.1f}{'':22}"
                  f"   {geometric_mean(pairs).value:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({**header, "results": rows, "failures": failures},
                                             indent=1) + "\n")
    for failure in failures:
        print(f"fused_networks: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
