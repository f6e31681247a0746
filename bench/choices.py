#!/usr/bin/env python3
"""Checks whether first binds in new processes choose equally fast plans: in silence, with a noisy
neighbour, and with a store full of other networks' prices.

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
the largest 1.08; with a full store, the geometric mean is at most 1.01. In silence, no plan differs
from that of the first bind: the interval of their ratio contains 1, or its nearer end is not
farther from 1 than the interval of the twin. Exit codes: 1, a target is missed, a plan was not
reproduced, or something failed; 2, wrong arguments."""

import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from harness.arguments import Parser, fail, some_of
from harness.processes import ProcessFailed, choose_cores, run_process, task_of
from harness.ratios import geometric_mean, ratio_of, ratio_text
from harness.report import Report, Table, count_text, width_of
from harness.tuning import run_plans, tune

import numpy as np

SILENCE, NOISE, STORE = SCENARIOS = ("silence", "noise", "store")
# Maxima of the geometric mean and of the largest ratio.
TARGETS = {NOISE: (1.03, 1.08), STORE: (1.01, None)}
BURST_SECONDS = (0.1, 2.0)


def parse_arguments():
    parser = Parser(__doc__, "--models resnet50 --threads 2 --scenarios silence --binds 20")
    parser.share("models", "threads")
    parser.option("--folder", None, "all .onnx files in this folder and below, and no others",
                  pathlib.Path, "DIR")
    parser.option("--scenarios", list(SCENARIOS), "separated by commas", some_of(SCENARIOS), "LIST")
    parser.option("--binds", 1, "first binds of each model in each scenario")
    parser.option("--turns", 40, "in each of which every plan runs")
    parser.option("--seed", 0, "of bursts and turns", int)
    parser.share("json", "module_dir")
    arguments = parser.parse()
    # All others are compared with silence.
    arguments.scenarios = [name for name in SCENARIOS if name in {SILENCE, *arguments.scenarios}]
    if NOISE in arguments.scenarios and len(os.sched_getaffinity(0)) < 2:
        parser.error("argument --scenarios: noise needs a second core")
    if STORE in arguments.scenarios and len(arguments.models) < 2:
        fail("--scenarios: store needs several models, of which the others fill the store")
    return arguments


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
    core = choose_cores(max(2, threads))[-1]
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


@dataclasses.dataclass
class Choice:
    """The plan that one first bind chose."""

    scenario: str
    bind: int
    costs: str  # a file that leads other processes to the plan
    tuning: dict  # the report of tune()

    @property
    def steps(self):
        return tuple(self.tuning["steps"])


def partner_of(choice, choices):
    """The choice that `choice` is compared with: that of the same bind in silence."""
    bind = 0 if choice.scenario == SILENCE else choice.bind
    return next(one for one in choices if (one.scenario, one.bind) == (SILENCE, bind))


def plans_to_run(choices):
    """The choices to run: the first of each plan, after a twin of the first of all."""
    different = {}
    for choice in choices:
        different.setdefault(choice.steps, choice)
    return [choices[0], *different.values()]


def rows_of(choices, report):
    """A row for each choice: its times, those that they are compared with, and the verdict, which
    is "", "same" or "not reproduced". `report` is that of the process that ran plans_to_run()."""
    twin, *rest = zip(plans_to_run(choices), report["times_ms"], map(tuple, report["steps"]))
    times = {steps: one for choice, one, steps in rest if steps == choice.steps}
    rows = []
    for choice in choices:
        partner = partner_of(choice, choices)
        own, others = times.get(choice.steps), times.get(partner.steps)
        if choice is choices[0]:
            others, own = own, twin[1] if twin[2] == choice.steps else None
        is_same = choice is not partner and choice.steps == partner.steps
        verdict = "not reproduced" if None in (own, others) else "same" if is_same else ""
        row = {"scenario": choice.scenario, "bind": choice.bind, "tuning": choice.tuning,
               "verdict": verdict, "times_ms": own, "silent_ms": others}
        rows.append(row if verdict == "not reproduced" else row | ratio_of(*pair_of(row)).as_dict())
    return rows


def pair_of(row):
    """The times to be divided."""
    if row["verdict"] == "same":
        return row["times_ms"], row["times_ms"]
    return row["times_ms"], row["silent_ms"]


class Measuring:
    """The processes for one number of threads; `folder` gets the files with costs."""

    def __init__(self, arguments, threads, folder, report):
        self.arguments, self.threads = arguments, threads
        self.folder, self.report = pathlib.Path(folder), report

    def run(self, function, name, what, store="", **task):
        """What a process answers, which has its caches in `store`."""
        self.report.place = f"{name}, {count_text(self.threads)}"
        self.report.say(what)
        return run_process(function, task_of(self.arguments, self.arguments.models[name],
                                             self.threads, **task), caches=store)

    def tune(self, name, what, store, costs=""):
        """Binds as users do."""
        return self.run(tune, name, what, store, costs=costs, options={"optimize": "now"})

    def fill(self, name, store):
        try:
            self.tune(name, "filling a store", store)
        except ProcessFailed as failure:
            self.report.fail(failure)

    def choose(self, name, scenario, bind, full_store):
        """The Choice of a first bind."""
        costs = str(self.folder / f"{scenario}{bind}.json")
        seed = f"{self.arguments.seed} {name} {self.threads} {bind}"
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(
                copy_of(full_store) if scenario == STORE else tempfile.TemporaryDirectory())
            if scenario == NOISE:
                stack.enter_context(noisy_neighbour(self.threads, seed))
            return Choice(scenario, bind, costs,
                          self.tune(name, f"first bind, {scenario}", store, costs))

    def measure(self, name, full_store):
        """The rows of one model."""
        choices = [self.choose(name, scenario, bind, full_store)
                   for scenario in self.arguments.scenarios
                   for bind in range(self.arguments.binds)]
        told = self.run(run_plans, name, "running the plans", turns=self.arguments.turns,
                        seed=self.arguments.seed,
                        plans=[choice.costs for choice in plans_to_run(choices)])
        return [{"model": name, "threads": self.threads, **row} for row in rows_of(choices, told)]


# --- Reporting ---


def summary_of(scenario, rows):
    """Means of the rows of one scenario and one number of threads."""
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
    where = f"{summary['scenario']}, {count_text(summary['threads'])}"
    missed = []
    if summary["ratio"] > most_mean:
        missed.append(f"{where}: the geometric mean {summary['ratio']:.4f} exceeds {most_mean}")
    if most and summary["largest"] > most:
        missed.append(f"{where}: {summary['largest_of']} with {summary['largest']:.3f} exceeds "
                      f"{most}")
    return missed


def different_binds(rows):
    """Complaints about plans that were chosen in silence and differ from that of the first bind."""
    complaints, noise = [], 0.0
    for row in rows:
        if row["scenario"] != SILENCE or row["verdict"] or row["ratio_interval"] is None:
            continue
        low, high = row["ratio_interval"]
        if row["bind"] == 0:  # the twin
            noise = max(1 - low, high - 1)
        elif low > 1 + noise or high < 1 - noise:
            complaints.append(f"{row['model']}, {count_text(row['threads'])}, silence: the plan of "
                              f"bind {row['bind'] + 1} takes {ratio_text(row, 3)} times as long as "
                              "that of the first")
    return complaints


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
    return [f"store, {count_text(threads)}: no price was reused"
            for (threads, scenario), sums in totals.items()
            if scenario == STORE and sums["reused"] == 0]


def print_summaries(summaries, totals):
    print()
    for (threads, scenario), sums in totals.items():
        print(f"{count_text(threads)}, {scenario}: tuning took {sums['seconds']:.1f} s, measured "
              f"{sums['measured']} candidates, reused {sums['reused']} prices")
    for summary in summaries:
        print(f"{count_text(summary['threads'])}, {summary['scenario']}: geometric mean "
              f"{ratio_text(summary, 3)}, largest {summary['largest']:.3f} "
              f"({summary['largest_of']}), {summary['same']} of {summary['rows']} same")


def measure_threads(arguments, threads, report, print_row):
    """Measures all models; calls `print_row` with each row."""
    with contextlib.ExitStack() as stack:
        folder, empty = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        measuring = Measuring(arguments, threads, folder, report)
        stores = ((name, None) for name in arguments.models)
        if STORE in arguments.scenarios:
            stores = fill_stores(list(arguments.models), empty, measuring.fill)
        for name, store in stores:
            try:
                rows = measuring.measure(name, store)
            except ProcessFailed as failure:
                report.fail(failure)
                continue
            for row in rows:
                print_row(row)
                if row["verdict"] == "not reproduced":
                    report.fail(f"{row['scenario']}, not reproduced")


def main():
    arguments = parse_arguments()
    fillings = count_fillings(len(arguments.models)) if STORE in arguments.scenarios else 0
    report = Report(arguments)
    report.progress.total = len(arguments.threads) * (fillings + len(arguments.models) * (
        len(arguments.scenarios) * arguments.binds + 1))
    table = Table(("model", width_of(arguments.models, "model")), ("threads", "7"),
                  (" scenario", "<10"), ("tuning s", "8.1f"), ("measured", "9"), ("reused", "9"),
                  ("ms", "10.3f"), ("  ratio", "<1"))
    report.print_header()
    table.print_titles()

    def print_row(row):
        tuning = row["tuning"]
        report.print_row(table, row, row["model"], row["threads"], f" {row['scenario']}",
                         tuning["seconds"], tuning["measured"], tuning["reused"],
                         np.median(row["times_ms"]) if row["times_ms"] else None,
                         "  " + (row["verdict"] or ratio_text(row, 3)))

    for threads in arguments.threads:
        measure_threads(arguments, threads, report, print_row)
    summaries, totals = summarize(report.rows), totals_of(report.rows)
    print_summaries(summaries, totals)
    for summary in summaries:
        report.failures += missed_targets(summary)
    report.failures += different_binds(report.rows) + unused_stores(totals)
    return report.finish(summaries=summaries)


if __name__ == "__main__":
    sys.exit(main())
