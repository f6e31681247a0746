#!/usr/bin/env python3
"""The evaluator of a chess engine, examples/07_chess: the time from the start of the process to the
first answer, cold and warm, and answers a second with 1, 2 and 4 search threads. The C++ program on
Tessera, and the Python program on Tessera and on onnxruntime, take turns.

A cold start has no caches of Tessera, a warm one those of an earlier process, whose measuring is
not part of any figure; onnxruntime has no caches. The files are in memory in both cases. Times to
the first answer include that of starting Python, where it is used. All programs search the same
tree, and must find the same move."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from compare import enter_environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "07_chess"
ZOO = ROOT / "build" / "zoo" / "chess" / "model.onnx"
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
    def __init__(self, name, command, environment):
        self.name = name
        self.command = [str(word) for word in command]
        self.environment = {**os.environ, **environment}

    def run(self, *arguments, caches):
        """What the program prints, with the milliseconds from its start to the first answer."""
        environment = {**self.environment, "TESSERA_CACHE_DIR": str(caches / "work"),
                       "XDG_CACHE_HOME": str(caches / "user")}
        begin = time.monotonic_ns()
        done = subprocess.run([*self.command, *arguments, "--json"], env=environment, cwd=caches,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"chess_engine.py: {self.name} failed:\n{done.stderr}")
        found = json.loads(done.stdout)
        found["start_ms"] = (found["first_answer_at_ns"] - begin) / 1e6
        return found


def make_programs(arguments, model):
    python = [sys.executable, EXAMPLE / "chess_evaluator.py", model]
    module = {"PYTHONPATH": str(arguments.build / "python")}
    programs = [Program("tessera, C++", [arguments.build / "bin" / "chess_evaluator", model], {}),
                Program("tessera, Python", [*python, "--runtime", "tessera"], module)]
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("onnxruntime is not installed, so nothing is compared", file=sys.stderr)
        return programs
    return [*programs, Program("onnxruntime, Python", [*python, "--runtime", "onnxruntime"], {})]


def check_agreement(programs, caches, batch):
    """Ends the comparison unless all programs find the same move after the same number of answers."""
    moves = {}
    for program in programs:
        row, = program.run("--answers", str(COMPARED_ANSWERS), "--search-threads", "1", "--batch",
                           batch, caches=caches)["rows"]
        moves[program.name] = (row["best_move"], row["best_visits"], row["answers"])
    if len(set(moves.values())) > 1:
        raise SystemExit(f"chess_engine.py: the programs find different moves: {moves}")


def measure(programs, arguments, folder):
    """By the name of a program: lists of "cold" and "warm" starts, and of answers a second by the
    number of search threads."""
    warm = folder / "warm"
    warm.mkdir()
    batch = ("--batch", str(arguments.batch))
    threads = ("--search-threads", arguments.search_threads)
    found = {program.name: {"cold": [], "warm": [], "rates": {}} for program in programs}
    check_agreement(programs, warm, batch[1])
    # Fills the caches. The C++ program waits until everything is measured.
    for program in programs:
        program.run(*batch, *threads, "--seconds", str(arguments.warm_seconds), caches=warm)
    for number in range(arguments.rounds):
        # In another order each time.
        for program in programs[number % len(programs):] + programs[:number % len(programs)]:
            figures = found[program.name]
            cold = pathlib.Path(tempfile.mkdtemp(dir=folder))
            figures["cold"].append(program.run(*batch, "--first-only", caches=cold)["start_ms"])
            figures["warm"].append(program.run(*batch, "--first-only", caches=warm)["start_ms"])
            ran = program.run(*batch, *threads, "--seconds", str(arguments.seconds), caches=warm)
            for row in ran["rows"]:
                figures["rates"].setdefault(row["search_threads"], []).append(
                    row["answers_per_second"])
    return found


def print_table(found, arguments):
    threads = list(map(int, arguments.search_threads.split(",")))
    print(f"medians of {arguments.rounds} rounds, batches of {arguments.batch}")
    print(f"{'':20}{'start to first answer, ms':>28}{'answers/s, by search threads':>32}")
    print(f"{'':20}{'cold':>14}{'warm':>14}" + "".join(f"{number:>{32 // len(threads)}}"
                                                     for number in threads))
    for name, figures in found.items():
        starts = "".join(f"{statistics.median(figures[kind]):14.1f}" for kind in ("cold", "warm"))
        rates = "".join(f"{statistics.median(figures['rates'][number]):{32 // len(threads)}.1f}"
                        for number in threads)
        print(f"{name:20}{starts}{rates}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/chess_engine.py --rounds 5 --seconds 5")
    parser.add_argument("--model", type=pathlib.Path, default=ZOO,
                        help="with a batch of 1 (build/zoo/chess/model.onnx)")
    parser.add_argument("--rounds", type=int, default=3, help="(3)")
    parser.add_argument("--seconds", type=float, default=5, help="for each number of threads (5)")
    parser.add_argument("--warm-seconds", type=float, default=20,
                        help="the same in the run that fills the caches, in which the Python program "
                             "gets its plans behind the runs (20)")
    parser.add_argument("--batch", type=int, default=8, help="positions at once (8)")
    parser.add_argument("--search-threads", default="1,2,4", help="(1,2,4)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="folder of the build (build/release)")
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    arguments = parser.parse_args()
    if not (arguments.build / "bin" / "chess_evaluator").exists():
        parser.error("chess_evaluator is not built: tools/build release chess_evaluator")
    enter_environment(arguments.build / "python")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = make_network(arguments.model, folder)
        found = measure(make_programs(arguments, model), arguments, folder)
    if arguments.json:
        print(json.dumps(found))
    else:
        print_table(found, arguments)


if __name__ == "__main__":
    main()
