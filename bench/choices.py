#!/usr/bin/env python3
"""Checks whether a first bind chooses equally fast plans with a noisy neighbour, and with a store
full of other networks' prices.

Each model is tuned in new processes, with the default options of bind. `silence`: with an empty
store. `noise`: the same while another process computes half of the time, in bursts of 0.1 to 2 s;
on the other core if there is one thread, else on one of the cores that are used. `store`: with a
store in which all other models were tuned before. For that, models are tuned again in many stores:
for 17 models, 70 times for each number of threads.

Then one process in silence binds the chosen plans, and runs them in turns, each turn in a different
order. A ratio is the median over the turns of a plan's time over that of the plan that was chosen
in silence, with its 95 % interval, by bootstrap over turns. The ratio in a row of `silence` is that
of the plan to its own twin, which shows the noise of the comparison; from the second bind on, it is
that to the plan of the first bind, which shows how much plans differ anyway. `same`: both are the
same plan, so the ratio is 1. `not reproduced`: another process bound other steps.

Targets, for each number of threads: with noise, the geometric mean of the ratios is at most 1.03,
the largest 1.08; with a full store, the geometric mean is at most 1.01. Exit codes: 1, a target is
missed, a plan was not reproduced, or something failed; 2, wrong arguments."""

import argparse
import contextlib
import dataclasses
import json
import multiprocessing
import os
import pathlib
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time

import compare

SILENCE, NOISE, STORE = SCENARIOS = ("silence", "noise", "store")
# Maxima of the geometric mean and of the largest ratio.
TARGETS = {NOISE: (1.03, 1.08), STORE: (1.01, None)}
BURST_SECONDS = (0.1, 2.0)


def some_scenarios(text):
    names = text.split(",")
    for name in names:
        if name not in SCENARIOS:
            raise compare.wrong("some of " + ", ".join(SCENARIOS), name)
    # All others are compared with silence.
    return [name for name in SCENARIOS if name in {SILENCE, *names}]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/choices.py --models chess,squeezenet --threads 1 --binds 2")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--models", default="", metavar="LIST",
                       help="as of bench/compare.py (default: every model of the zoo)")
    which.add_argument("--folder", type=pathlib.Path, metavar="DIR",
                       help="all .onnx files in this folder and its subfolders")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[1, 2], metavar="LIST",
                        help="numbers of threads, separated by commas (default: 1,2)")
    parser.add_argument("--scenarios", type=some_scenarios, default=list(SCENARIOS), metavar="LIST",
                        help="separated by commas (default: " + ",".join(SCENARIOS) + ")")
    parser.add_argument("--binds", type=compare.whole_number, default=1, metavar="N",
                        help="first binds of each model in each scenario (default: 1)")
    parser.add_argument("--turns", type=compare.whole_number, default=40, metavar="N",
                        help="in each of which every plan runs (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of bursts and turns (default: 0)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything that was measured")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    arguments = compare.parse_with_cores(parser)
    if NOISE in arguments.scenarios and len(os.sched_getaffinity(0)) < 2:
        parser.error("argument --scenarios: noise needs a second core")
    return arguments


def models_of(arguments):
    """Name -> file."""
    if not arguments.folder:
        return compare.find_models(arguments.models)
    files = sorted(arguments.folder.rglob("*.onnx"))
    if not files:
        compare.fail(f"--folder: no .onnx files in {arguments.folder}")
    models = compare.find_models(",".join(map(str, files)))
    if len(models) < len(files):
        compare.fail(f"--folder: several files have the same name in {arguments.folder}")
    return models


# --- The noise ---


def bursts(seed):
    """Endless pairs of seconds: how long to compute, how long to wait. Half of the time each."""
    rng = random.Random(seed)
    while True:
        yield rng.uniform(*BURST_SECONDS), rng.uniform(*BURST_SECONDS)


def compute_in_bursts(core, seed, parent):
    """Runs on `core` until the process `parent` is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.sched_setaffinity(0, [core])
    for busy, idle in bursts(seed):
        end = time.monotonic() + busy
        while time.monotonic() < end:
            if os.getppid() != parent:
                return
        time.sleep(idle)


@contextlib.contextmanager
def noisy_neighbour(threads, seed):
    """A process that computes in bursts until the block ends, beside a process with so many
    threads."""
    core = compare.choose_cores(max(2, threads))[-1]
    process = multiprocessing.Process(target=compute_in_bursts, args=(core, seed, os.getpid()),
                                      daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


# --- Full stores ---


def count_fillings(count):
    """How often fill_stores() calls `tune` for so many names."""
    if count < 2:
        return 0
    return count + count_fillings(count // 2) + count_fillings(count - count // 2)


@contextlib.contextmanager
def copy_of(store):
    """A folder with the contents of the folder `store`, until the block ends. Packed weights are
    left out: they belong to one model, so they are useless to others, and large."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(store, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("packs"))
        yield folder


def fill_stores(names, store, tune):
    """Yields each name with a store in which all other names were tuned; it exists until the next
    name is asked for. Calls `tune` with a name and a store. `store` must be empty.

    There is no way to remove a model's prices from a store, nor to merge the prices of two stores.
    So half of the names are tuned in one copy, which then serves the other half in the same way,
    and the reverse; this takes n log2(n) tunings instead of n (n - 1)."""
    if len(names) == 1:
        yield names[0], store
        return
    middle = len(names) // 2
    for half, others in ((names[:middle], names[middle:]), (names[middle:], names[:middle])):
        with copy_of(store) as fuller:
            for name in others:
                tune(name, fuller)
            yield from fill_stores(half, fuller, tune)


# --- Tuning and comparing ---


def threads_text(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


@dataclasses.dataclass
class Choice:
    """The plan that one first bind chose."""

    scenario: str
    bind: int
    costs: str  # a file that leads other processes to the plan
    tuning: dict  # the report of choices_process.py

    @property
    def steps(self):
        return self.tuning["steps"]


def partner_of(choice, choices):
    """The choice that `choice` is compared with: that of the same bind in silence."""
    bind = 0 if choice.scenario == SILENCE else choice.bind
    return next(one for one in choices if (one.scenario, one.bind) == (SILENCE, bind))


def plans_to_run(choices):
    """The choices to run: the first of each plan, after a twin of the first of all."""
    different = {}
    for choice in choices:
        different.setdefault(tuple(choice.steps), choice)
    return [choices[0], *different.values()]


def rows_of(choices, report):
    """A row for each choice: its times, those that they are compared with, and the verdict, which
    is "", "same" or "not reproduced". `report` is that of the process that ran plans_to_run()."""
    twin, *_ = report["times_ms"]
    ran = plans_to_run(choices)
    times = {tuple(choice.steps): one
             for choice, one, steps in list(zip(ran, report["times_ms"], report["steps"]))[1:]
             if steps == choice.steps}
    rows = []
    for choice in choices:
        own = times.get(tuple(choice.steps))
        partner = partner_of(choice, choices)
        others = times.get(tuple(partner.steps))
        verdict = ""
        if choice is choices[0]:
            others, own = own, twin if report["steps"][0] == choice.steps else None
        if own is None or others is None:
            verdict = "not reproduced"
        elif choice is not partner and choice.steps == partner.steps:
            verdict = "same"
        rows.append({"scenario": choice.scenario, "bind": choice.bind, "tuning": choice.tuning,
                     "verdict": verdict, "times_ms": own, "silent_ms": others})
    return rows


class Measuring:
    """The processes for one number of threads; `folder` gets the files with costs."""

    def __init__(self, arguments, threads, models, folder, progress):
        self.arguments = arguments
        self.threads = threads
        self.models = models
        self.folder = pathlib.Path(folder)
        self.progress = progress
        self.failures = []

    def run(self, name, what, **task):
        """The report of a process, or None if it failed."""
        self.progress.say(f"{name}, {threads_text(self.threads)}, {what}")
        report, failure = compare.run_process({
            "model": str(self.models[name]), "threads": self.threads,
            "cores": compare.choose_cores(self.threads),
            "module_dir": str(self.arguments.module_dir.resolve()), **task}, "choices_process.py")
        if failure:
            self.failures.append(f"{name}, {threads_text(self.threads)}, {what}: {failure}")
        return report

    def fill(self, name, store):
        self.run(name, "filling a store", store=store, costs="")

    def choose(self, name, scenario, bind, full_store):
        """The Choice of a first bind, or None if it failed."""
        costs = str(self.folder / f"{scenario}{bind}.json")
        seed = f"{self.arguments.seed} {name} {self.threads} {bind}"
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(
                copy_of(full_store) if scenario == STORE else tempfile.TemporaryDirectory())
            if scenario == NOISE:
                stack.enter_context(noisy_neighbour(self.threads, seed))
            report = self.run(name, f"first bind, {scenario}", store=store, costs=costs)
        return Choice(scenario, bind, costs, report) if report else None

    def measure(self, name, full_store):
        """The rows of one model; none if a process failed."""
        choices = [self.choose(name, scenario, bind, full_store)
                   for scenario in self.arguments.scenarios
                   for bind in range(self.arguments.binds)]
        if None in choices:
            return []
        report = self.run(name, "running the plans", turns=self.arguments.turns,
                          seed=self.arguments.seed,
                          plans=[choice.costs for choice in plans_to_run(choices)])
        if not report:
            return []
        rows = [{"model": name, "threads": self.threads, **row}
                for row in rows_of(choices, report)]
        self.failures += [f"{name}, {threads_text(self.threads)}, {row['scenario']}: not reproduced"
                          for row in rows if row["verdict"] == "not reproduced"]
        return rows


# --- Reporting ---


def pair_of(row):
    """The times to be divided, for ratios.py."""
    if row["verdict"] == "same":
        ones = [1.0] * len(row["times_ms"])
        return ones, ones
    return row["times_ms"], row["silent_ms"]


def summary_of(scenario, rows):
    """Means of the rows of one scenario and one number of threads."""
    from ratios import geometric_mean

    mean = geometric_mean([pair_of(row) for row in rows])
    largest = max(rows, key=lambda row: row["ratio"])
    return {"scenario": scenario, "threads": rows[0]["threads"], "rows": len(rows),
            "same": sum(row["verdict"] == "same" for row in rows), **mean.as_dict(),
            "largest": largest["ratio"], "largest_of": largest["model"]}


def summarize(rows):
    """A summary for each number of threads and scenario but silence."""
    groups = {}
    for row in rows:
        if row["scenario"] != SILENCE and row["verdict"] != "not reproduced":
            groups.setdefault((row["threads"], row["scenario"]), []).append(row)
    return [summary_of(scenario, chosen) for (_, scenario), chosen in groups.items()]


def missed_targets(summary):
    most_mean, most = TARGETS[summary["scenario"]]
    where = f"{summary['scenario']}, {threads_text(summary['threads'])}"
    missed = []
    if summary["ratio"] > most_mean:
        missed.append(f"{where}: the geometric mean {summary['ratio']:.4f} exceeds {most_mean}")
    if most and summary["largest"] > most:
        missed.append(f"{where}: {summary['largest_of']} with {summary['largest']:.3f} exceeds "
                      f"{most}")
    return missed


def totals_of(rows):
    """(threads, scenario) -> the sums of seconds, of candidates that were measured, and of prices
    that were reused."""
    totals = {}
    for row in rows:
        sums = totals.setdefault((row["threads"], row["scenario"]),
                                 {"seconds": 0, "measured": 0, "reused": 0})
        for field in sums:
            sums[field] += row["tuning"][field]
    return totals


def unused_stores(totals):
    """Complaints about full stores of which nothing was used: their plans are no answer. The number
    of candidates that are measured is no criterion, because it differs from bind to bind."""
    return [f"store, {threads_text(threads)}: no price was reused"
            for (threads, scenario), sums in totals.items()
            if scenario == STORE and sums["reused"] == 0]


def ratio_text(entry):
    if entry["ratio_interval"] is None:
        return f"{entry['ratio']:.3f}"
    low, high = entry["ratio_interval"]
    return f"{entry['ratio']:.3f} [{low:.3f}, {high:.3f}]"


def print_head(width):
    print(f"{'':{width}}{'':25}{'candidates':>18}\n"
          f"{'model':{width}}{'threads':>7} {'scenario':9}{'tuning s':>8}{'measured':>9}"
          f"{'reused':>9}{'ms':>10}  ratio", flush=True)


def print_row(row, width):
    import numpy as np

    tuning = row["tuning"]
    milliseconds = f"{np.median(row['times_ms']):.3f}" if row["times_ms"] else "-"
    print(f"{row['model']:{width}}{row['threads']:7} {row['scenario']:9}{tuning['seconds']:8.1f}"
          f"{tuning['measured']:9}{tuning['reused']:9}{milliseconds:>10}  "
          f"{row['verdict'] or ratio_text(row)}", flush=True)


def print_summaries(summaries, totals):
    for (threads, scenario), sums in totals.items():
        print(f"{threads_text(threads)}, {scenario}: tuning took {sums['seconds']:.1f} s, measured "
              f"{sums['measured']} candidates, reused {sums['reused']} prices")
    for summary in summaries:
        print(f"{threads_text(summary['threads'])}, {summary['scenario']}: geometric mean "
              f"{ratio_text(summary)}, largest {summary['largest']:.3f} ({summary['largest_of']}), "
              f"{summary['same']} of {summary['rows']} same")


def measure_threads(arguments, threads, models, progress, report):
    """Measures all models; calls `report` with the rows of each. Returns the failures."""
    with contextlib.ExitStack() as stack:
        folder, empty = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        measuring = Measuring(arguments, threads, models, folder, progress)
        stores = ((name, None) for name in models)
        if STORE in arguments.scenarios:
            stores = fill_stores(list(models), empty, measuring.fill)
        for name, store in stores:
            report(measuring.measure(name, store))
    return measuring.failures


def main():
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    # Imported only here: they need NumPy, which is in .venv.
    from ratios import ratio_of
    from report import cpu_name

    models = models_of(arguments)
    if STORE in arguments.scenarios and len(models) < 2:
        compare.fail("--scenarios: store needs several models, of which the others fill the store")
    fillings = count_fillings(len(models)) if STORE in arguments.scenarios else 0
    progress = compare.Progress(len(arguments.threads) * (
        len(models) * (len(arguments.scenarios) * arguments.binds + 1) + fillings))
    header = {"cpu": cpu_name(), "command": shlex.join(["bench/choices.py", *sys.argv[1:]])}
    width = max(map(len, ["model", *models])) + 1
    print(f"{header['cpu']}\ncommand: {header['command']}\n")
    print_head(width)
    rows, failures = [], []

    def report(added):
        progress.clear()
        for row in added:
            if row["verdict"] != "not reproduced":
                row |= ratio_of(*pair_of(row)).as_dict()
            print_row(row, width)
        rows.extend(added)

    for threads in arguments.threads:
        failures += measure_threads(arguments, threads, models, progress, report)
    progress.clear()
    summaries, totals = summarize(rows), totals_of(rows)
    print()
    print_summaries(summaries, totals)
    for summary in summaries:
        failures += missed_targets(summary)
    failures += unused_stores(totals)
    if arguments.json:
        arguments.json.write_text(json.dumps({**header, "results": rows, "summaries": summaries,
                                              "failures": failures}, indent=1) + "\n")
    for failure in failures:
        print(f"choices: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
