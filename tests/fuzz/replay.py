"""Runs cases from files (fuzz_case.py) again, and prints the result of each run.

.venv/bin/python tests/fuzz/replay.py FILE... [--bin-dir build/release/bin] [--backends NAMES]"""

import argparse
import pathlib
import sys

from findings import is_newest
from fuzz_case import load_case
from runner import Runner, usable_backends
from verdict import describe, explain_ruling, find_problem, names_of


def explain(run, problem):
    if problem:
        return f"{problem.kind}: {problem.message}"
    if run["kind"]:
        return f"fine: {run['kind']}: {run['where']}: {run['message']}"
    return f"fine: {describe(run['arrays'])}"


def replay(runner, path):
    """Prints each run on each backend; returns the number of problems."""
    case = load_case(path)
    op = path.stem.split("_")[0]
    answers, judged = runner.run(case)
    count = 0
    for backend, runs in answers.items():
        for index, run in enumerate(runs):
            problem = find_problem(run, {judge: judged[judge][index] for judge in judged},
                                   names_of(case.model), is_newest(case.model, op))
            if problem and explain_ruling(op, problem, path.stem):
                problem = None
            count += problem is not None
            print(f"{path.name}, {backend or 'all'}, run {index}: {explain(run, problem)}")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin-dir", default="build/release/bin")
    parser.add_argument("--backends", action="append", default=[])
    arguments = parser.parse_args()
    backends = arguments.backends or usable_backends(arguments.bin_dir)
    with Runner(arguments.bin_dir, backends) as runner:
        return 1 if sum(replay(runner, path) for path in arguments.files) else 0


if __name__ == "__main__":
    sys.exit(main())
