#!/usr/bin/env python3
"""The evaluator of a chess engine, examples/07_chess: the time from the start of the process to the
first answer, cold and warm, and answers a second with 1, 2 and 4 search threads. The C++ program on
Tessera, and the Python program on Tessera and on onnxruntime, take turns.

A cold start has no caches of Tessera, a warm one those of an earlier process, whose measuring is
not part of any figure; onnxruntime has no caches. The files are in memory in both cases. Times to
the first answer include that of starting Python, where it is used. All programs search the same
tree, and must find the same move."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from harness import ROOT
from harness.arguments import RELEASE, ZOO, Parser, fail, find_module
from harness.processes import with_caches
from harness.report import Table

EXAMPLE = ROOT / "examples" / "07_chess"
# So many answers are compared before anything is measured.
COMPARED_ANSWERS = 64


def make_network(model, folder):
    """A network with an open batch: from `model`, or a small one if that is missing."""
    output = folder / "model.onnx"
    source = ["--from", model] if model.exists() else []
    if not source:
        print(f"{model} is not here: a small network of the same shape in its place",
              file=sys.stderr)
    subprocess.run([sys.executable, EXAMPLE / "make_network.py", *source, output], check=True)
    return output


class Program:
    def __init__(self, command, environment=None):
        self.command = [str(word) for word in command]
        self.environment = environment or {}

    def run(self, *arguments, caches):
        """What the program prints, with the milliseconds from its start to the first answer."""
        begin = time.monotonic_ns()
        done = subprocess.run([*self.command, *map(str, arguments), "--json"],
                              env={**with_caches(caches), **self.environment}, cwd=caches,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(self.command)}:\n{done.stderr}")
        found = json.loads(done.stdout)
        found["start_ms"] = (found["first_answer_at_ns"] - begin) / 1e6
        return found


def make_programs(arguments, model):
    python = [sys.executable, EXAMPLE / "chess_evaluator.py", model]
    programs = {
        "tessera, C++": Program([arguments.build / "bin" / "chess_evaluator", model]),
        "tessera, Python": Program([*python, "--runtime", "tessera"],
                                   {"PYTHONPATH": str(arguments.build / "python")})}
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("onnxruntime is not installed, so nothing is compared", file=sys.stderr)
        return programs
    return {**programs, "onnxruntime, Python": Program([*python, "--runtime", "onnxruntime"])}


def check_agreement(programs, caches, batch):
    """Ends the comparison unless all programs find the same move after the same number of
    answers."""
    moves = {}
    for name, program in programs.items():
        row, = program.run("--answers", COMPARED_ANSWERS, "--search-threads", "1", *batch,
                           caches=caches)["rows"]
        moves[name] = (row["best_move"], row["best_visits"], row["answers"])
    if len(set(moves.values())) > 1:
        raise SystemExit(f"the programs find different moves: {moves}")


def measure(programs, arguments, folder):
    """By the name of a program: lists of "cold" and "warm" starts, and of answers a second by the
    number of search threads."""
    warm = folder / "warm"
    batch = ("--batch", arguments.batch)
    threads = ("--search-threads", ",".join(map(str, arguments.search_threads)))
    found = {name: {"cold": [], "warm": [], "rates": {}} for name in programs}
    check_agreement(programs, warm, batch)
    # Fills the caches. The C++ program waits until everything is measured.
    for program in programs.values():
        program.run(*batch, *threads, "--seconds", arguments.warm_seconds, caches=warm)
    names = list(programs)
    for number in range(arguments.rounds):
        # In another order each time.
        for name in names[number % len(names):] + names[:number % len(names)]:
            figures, program = found[name], programs[name]
            cold = pathlib.Path(tempfile.mkdtemp(dir=folder))
            figures["cold"].append(program.run(*batch, "--first-only", caches=cold)["start_ms"])
            figures["warm"].append(program.run(*batch, "--first-only", caches=warm)["start_ms"])
            ran = program.run(*batch, *threads, "--seconds", arguments.seconds, caches=warm)
            for row in ran["rows"]:
                figures["rates"].setdefault(row["search_threads"], []).append(
                    row["answers_per_second"])
    return found


def print_table(found, arguments):
    print(f"medians of {arguments.rounds} rounds, batches of {arguments.batch}")
    counts = arguments.search_threads
    Table(("", "<20"), ("start to first answer, ms", "28"),
          ("answers/s, by search threads", "32")).print_titles()
    table = Table(("", "<20"), ("cold", "14.1f"), ("warm", "14.1f"),
                  *((str(count), f"{32 // len(counts)}.1f") for count in counts))
    table.print_titles()
    for name, figures in found.items():
        table.print(name, *(statistics.median(figures[kind]) for kind in ("cold", "warm")),
                    *(statistics.median(figures["rates"][count]) for count in counts))


def parse_arguments():
    parser = Parser(__doc__, "--rounds 5 --seconds 5")
    parser.option("--model", ZOO / "chess" / "model.onnx", "with a batch of 1")
    parser.option("--rounds", 3)
    parser.option("--seconds", 5.0, "for each number of threads")
    parser.option("--warm-seconds", 20.0, "the same in the run that fills the caches, in which the "
                                          "Python program gets its plans behind the runs")
    parser.option("--batch", 8, "positions at once")
    parser.option("--search-threads", [1, 2, 4])
    parser.option("--build", RELEASE, "folder of the build")
    parser.flag("--json", "print every figure as JSON")
    arguments = parser.parse()
    if not (arguments.build / "bin" / "chess_evaluator").exists():
        fail("chess_evaluator is not built: tools/build release chess_evaluator")
    find_module(arguments.build / "python")
    return arguments


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        model = make_network(arguments.model, folder)
        found = measure(make_programs(arguments, model), arguments, folder)
    if arguments.json:
        print(json.dumps(found))
    else:
        print_table(found, arguments)


if __name__ == "__main__":
    sys.exit(main())
