"""Processes of their own for what is measured, one after the other."""

import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from harness import BENCH

LINE_COLUMNS = 79


class ProcessFailed(SystemExit):
    """The text is the reason. Ends the program if nobody catches it."""


def choose_cores(count):
    """The cores to run on: a core's second thread is used only after every core has one."""
    allowed = sorted(os.sched_getaffinity(0))
    seen, first, second = set(), [], []
    for core in allowed:
        file = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        siblings = file.read_text() if file.exists() else str(core)
        (second if siblings in seen else first).append(core)
        seen.add(siblings)
    return (first + second)[:count]


def pin_to(cores):
    """What subprocess calls in a new process, as preexec_fn."""
    return lambda: os.sched_setaffinity(0, cores)


def shuffled(names, seed):
    """In a random order."""
    order = list(names)
    random.Random(seed).shuffle(order)
    return order


def take_rounds(count, names, measure, say=lambda text: None):
    """Name -> what `measure` returned for it in each round; in a new random order in each of
    them."""
    results = {name: [] for name in names}
    for index in range(count):
        say(f"round {index + 1} of {count}")
        for name in shuffled(names, index):
            results[name].append(measure(name, index))
    return results


def task_of(arguments, model, threads, **more):
    """What every process needs to know."""
    return {"model": str(model), "threads": threads, "cores": choose_cores(threads),
            "shapes": dict(getattr(arguments, "shape", ())),
            "module_dir": str(getattr(arguments, "module_dir", "")), **more}


def with_caches(folder):
    """The environment of a process that has its caches in `folder`."""
    caches = {"TESSERA_CACHE_DIR": pathlib.Path(folder) / "work",
              "XDG_CACHE_HOME": pathlib.Path(folder) / "user"}
    for path in caches.values():
        path.mkdir(parents=True, exist_ok=True)
    return {**os.environ, **{name: str(path) for name, path in caches.items()}}


def last_line(text, otherwise):
    return next((line for line in reversed(text.splitlines()) if line.strip()), otherwise)


def run_process(function, task, caches=None):
    """What `function`, of a module in this folder, returns for `task` in a process of its own. It
    has its caches in the folder `caches`; in a new folder if that is ""; by default those of its
    user. Throws ProcessFailed."""
    with contextlib.ExitStack() as stack:
        if caches == "":
            caches = stack.enter_context(tempfile.TemporaryDirectory())
        module = function.__module__
        if module == "__main__":
            module = pathlib.Path(sys.argv[0]).stem
        done = subprocess.run(
            [sys.executable, BENCH / "harness" / "child.py", module, function.__name__],
            input=json.dumps(task), env=with_caches(caches) if caches else None,
            capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ProcessFailed(last_line(done.stderr, f"ended with exit code {done.returncode}"))
    return json.loads(done.stdout)


class Progress:
    """A progress line on a terminal; nothing elsewhere."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.is_shown = sys.stderr.isatty()

    def say(self, text):
        if self.is_shown:
            line = f"[{self.done + 1}/{self.total}] {text}"[:LINE_COLUMNS]
            print(f"\r{line:{LINE_COLUMNS}}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def clear(self):
        if self.is_shown:
            print("\r" + " " * LINE_COLUMNS + "\r", end="", file=sys.stderr, flush=True)
