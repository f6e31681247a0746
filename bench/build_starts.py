#!/usr/bin/env python3
"""Compares two builds of Tessera on what comes before the runs of a network: the time of tuning, the
time of a process that finds its plan in the cache and runs once, and that process's peak memory.

Each build tunes into caches of its own, which are empty before each tuning; then processes of both
start in turns, in a new random order in each round. Exit codes: 1, the whole interval of some row is
below --least, or something failed; 2, wrong arguments."""

import argparse
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from compare import (ROOT, Progress, choose_cores, enter_environment, find_models,
                     parse_with_cores, whole_number, whole_numbers)

QUANTITIES = {"tuning": "s", "start": "ms", "memory": "MiB"}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/build_starts.py --before ../old/build/release --models chess")
    parser.add_argument("--before", type=pathlib.Path, required=True, metavar="DIR",
                        help="build folder of the earlier build")
    parser.add_argument("--after", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build" / "release",
                        help="of the later one (default: build/release)")
    parser.add_argument("--models", default="", help="as bench/compare.py has it (default: the zoo)")
    parser.add_argument("--threads", type=whole_numbers, default=[1], help="(default: 1)")
    parser.add_argument("--tunings", type=whole_number, default=3,
                        help="of each build for each model (default: 3)")
    parser.add_argument("--starts", type=whole_number, default=9, help="(default: 9)")
    parser.add_argument("--least", type=float, default=0.98,
                        help="before / after that no interval may lie below (default: 0.98)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every process's figures")
    return parse_with_cores(parser)


def run_program(build, arguments, cores, caches):
    """Returns the seconds that the program took and its peak memory in MiB."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(caches), "TESSERA_CACHE_DIR": str(caches)}
    program = build.resolve() / "bin" / "tessera"
    began = time.monotonic()
    with subprocess.Popen([program, *arguments], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores)) as process:
        message = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{program} {' '.join(arguments)}: exit code {process.returncode}: "
                           f"{message.strip()[-300:]}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def measure_model(arguments, model, threads, progress, name):
    """For each quantity and build, a figure of each process."""
    builds = {"before": arguments.before, "after": arguments.after}
    figures = {quantity: {build: [] for build in builds} for quantity in QUANTITIES}
    cores = choose_cores(threads)
    options = [str(model), "--threads", str(threads)]

    def in_turns(rounds, what):
        for index in range(rounds):
            progress.say(f"{name}, {threads} threads, {what} {index + 1} of {rounds}")
            order = list(builds)
            random.Random(index).shuffle(order)
            yield from order

    with tempfile.TemporaryDirectory() as folder:
        caches = {build: pathlib.Path(folder) / build for build in builds}
        for build in in_turns(arguments.tunings, "tuning"):
            shutil.rmtree(caches[build], ignore_errors=True)
            caches[build].mkdir()
            taken, _ = run_program(builds[build], ["tune", *options], cores, caches[build])
            figures["tuning"][build].append(taken)
        for build in in_turns(arguments.starts, "start"):
            taken, peak = run_program(builds[build], ["run", *options, "--random", "1", "--optimize"],
                                      cores, caches[build])
            figures["start"][build].append(taken * 1e3)
            figures["memory"][build].append(peak)
    return figures


def main():
    arguments = parse_arguments()
    enter_environment(arguments.after / "python")
    # Imported only here: they need NumPy, which is in .venv.
    from ratios import geometric_mean, ratio_of
    from report import cpu_name

    models = find_models(arguments.models)
    progress = Progress(len(models) * len(arguments.threads)
                        * (arguments.tunings + arguments.starts))
    rows, failures = [], []
    for threads in arguments.threads:
        for name, model in models.items():
            try:
                figures = measure_model(arguments, model, threads, progress, name)
            except (OSError, RuntimeError) as error:
                failures.append(f"{name}, {threads} threads: {error}")
                continue
            for quantity, builds in figures.items():
                ratio = ratio_of(builds["before"], builds["after"])
                rows.append({"model": name, "threads": threads, "quantity": quantity, **builds,
                             **ratio.as_dict()})
    progress.clear()
    header = {"cpu": cpu_name(), "command": shlex.join(["bench/build_starts.py", *sys.argv[1:]])}
    print(f"{header['cpu']}\ncommand: {header['command']}")
    width = max([len("geometric mean"), *(len(row["model"]) for row in rows)]) + 1
    for quantity, unit in QUANTITIES.items():
        print(f"\n{quantity + ', ' + unit:{width}}threads     before      after   before / after")
        chosen = [row for row in rows if row["quantity"] == quantity]
        for row in chosen:
            low, high = row["ratio_interval"] or (row["ratio"], row["ratio"])
            worse = "  worse" if high < arguments.least else ""
            print(f"{row['model']:{width}}{row['threads']:7}{statistics.median(row['before']):11.2f}"
                  f"{statistics.median(row['after']):11.2f}"
                  f"   {row['ratio']:.3f} [{low:.3f}, {high:.3f}]{worse}")
            if worse:
                failures.append(f"{row['model']}, {row['threads']} threads, {quantity}: the whole "
                                f"interval of before / after lies below {arguments.least}")
        if chosen:
            mean = geometric_mean([(row["before"], row["after"]) for row in chosen])
            print(f"{'geometric mean':{width}}{'':29}   {mean.value:.3f}"
                  + (f" [{mean.low:.3f}, {mean.high:.3f}]" if mean.low is not None else ""))
    if arguments.json:
        arguments.json.write_text(json.dumps({**header, "results": rows, "failures": failures},
                                             indent=1) + "\n")
    for failure in failures:
        print(f"build_starts: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
