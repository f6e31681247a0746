#!/usr/bin/env python3
"""What fused groups cost and save in short-lived programs: the time of a whole process that loads,
binds and runs many small graphs of elementwise nodes.

Each graph is one of a few groups of 5 to 20 nodes, for 1,024 to 65,536 elements. In each round
these processes run one after the other, each once for `optimize=False` and once for the default:

  off           fuse=False, without stored artifacts; "off again" is a second process
  on            with fused groups, without stored artifacts; "on again" is a second process
  other models  other graphs of the same groups, with the kernels that a process stored which waits
                for all compilations behind its runs: compiles nothing
  many groups   graphs with many unconnected groups of a few kinds, without stored artifacts; waits
                for all compilations: each kind is compiled once

Times are medians over rounds, ratios are medians of the ratios within a round, and brackets are the
95 % interval of that median by bootstrap. Outputs are compared with those of "off". Exit codes: 1,
if outputs differ, or something was compiled that was compiled before; 2, wrong arguments."""

import collections
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

from harness.arguments import Parser, some_of
from harness.processes import run_process, shuffled
from harness.ratios import ratio_of, ratio_text
from harness.report import Table

import numpy as np

SEED = 17
NODES = (5, 20)
ELEMENTS = (1024, 65_536)
KINDS_OF_MANY = 10
SIZES_OF_MANY = 2
GROUPS_IN_GRAPH = 100
UNARY = ("Sigmoid", "Tanh", "Relu", "Abs", "Neg", "Erf", "Softplus", "HardSwish")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
MODES = {"plain": {"optimize": False}, "default": {"optimize": True}}
ROWS = ("off", "off again", "on", "on again", "other models", "many groups")
# Rows that use the caches of those before them.
PARTS = (("off", "off again"), ("on", "on again", "other models"), ("many groups",))
# Row -> the row that its time is divided by.
RATIOS = {"on": "off", "on again": "off again", "other models": "off", "off again": "off"}
TOLERANCE = 1e-3


# --- Graphs ---


def kind_of_group(seed):
    """Rows (op, inputs) of a group; value 0 is its input, value k the output of row k - 1, and a
    number a constant."""
    rng = random.Random(seed)
    rows = []
    for at in range(rng.randint(*NODES)):
        if rng.random() < 0.5:
            rows.append((rng.choice(UNARY), [at]))
        else:
            other = rng.choice([rng.randint(0, at), round(rng.uniform(0.1, 2), 3)])
            rows.append((rng.choice(BINARY), [at, other]))
    return rows


def save_graph(path, groups, sizes):
    """A model of unconnected groups, each with an input and an output of its own."""
    import onnx
    from networks.graph_writer import model_of

    nodes, inputs, outputs, constants = [], {}, {}, {}
    for index, (rows, size) in enumerate(zip(groups, sizes)):
        names = [f"x{index}"]
        for op, operands in rows:
            constants |= {f"c{each}": np.float32(each) for each in operands
                          if isinstance(each, float)}
            read = [f"c{each}" if isinstance(each, float) else names[each] for each in operands]
            names.append(f"v{index}_{len(names)}")
            nodes.append(onnx.helper.make_node(op, read, [names[-1]]))
        inputs[names[0]] = outputs[names[-1]] = [size]
    onnx.save(model_of(nodes, inputs, outputs, constants), path)


def size_of(rng):
    low, high = ELEMENTS
    return min(high, int(low * (high / low) ** rng.random()))


def make_graphs(folder, arguments):
    """Set of models -> its files."""
    rng = random.Random(SEED)
    files = collections.defaultdict(list)

    def add(name, groups, sizes):
        files[name].append(str(folder / f"{name}{len(files[name]):05}.onnx"))
        save_graph(files[name][-1], groups, sizes)

    kinds = [kind_of_group(SEED * 1000 + seed) for seed in range(arguments.kinds)]
    for name in ("models", "others"):
        for index in range(arguments.graphs):
            add(name, [kinds[index % len(kinds)]], [size_of(rng)])
    few = [kind_of_group(SEED * 2000 + seed) for seed in range(KINDS_OF_MANY)]
    # Each node of another size is measured, fused or not, which would take minutes.
    sizes = [size_of(rng) for _ in range(SIZES_OF_MANY)]
    numbers = range(arguments.groups)
    for first in numbers[::GROUPS_IN_GRAPH]:
        some = numbers[first:first + GROUPS_IN_GRAPH]
        add("many", [few[at % len(few)] for at in some],
            [sizes[at // len(few) % len(sizes)] for at in some])
    return files


# --- One process ---


def measure(task):
    """For run_process(): loads, binds and runs all files; the times of these parts, what was
    compiled, and a number for each graph's outputs."""
    import tessera

    seconds = dict.fromkeys(("load", "bind", "first_run", "wait", "runs", "release"), 0)
    stages, compiled, sums, fused = collections.Counter(), {}, [], 0

    def timed(part, call):
        start = time.perf_counter()
        result = call()
        seconds[part] += time.perf_counter() - start
        return result

    def run_again(executor, feeds):
        for _ in range(task["runs"] - 1):
            executor.run(feeds)

    for file in task["files"]:
        model = timed("load", lambda: tessera.load(file))
        executor = timed("bind", lambda: model.bind(**task["options"]))
        feeds = {value.name: np.linspace(-2, 2, value.shape[0], dtype=np.float32)
                 for value in executor.inputs}
        outputs = timed("first_run", lambda: executor.run(feeds))
        if task["waits"]:
            timed("wait", executor.wait_for_swap)
        timed("runs", lambda: run_again(executor, feeds))
        sums.append(sum(float(np.abs(output).mean()) for output in outputs))
        for stage in executor.stages:
            stages[stage.name] += 1e-9 * stage.duration_ns
        fused += sum(len(step.nodes) > 1 for step in executor.plan().steps)
        for one in executor.compiled:
            compiled[one.backend] = {
                "groups": one.kernels, "unique": one.unique, "compiled": one.compiled,
                "loaded_from_store": one.loaded_from_store, "compile_ms": 1e3 * one.compile_seconds}
        # Ends what is still compiled behind the runs.
        start = time.perf_counter()
        del executor, model
        seconds["release"] += time.perf_counter() - start
    return {"seconds": seconds, "stages": stages, "compiled": compiled, "sums": sums,
            "fused_steps": fused}


# --- Rounds ---


class Runner:
    def __init__(self, arguments, files):
        self.arguments = arguments
        self.files = files

    def process(self, files, caches, mode, fuses=True, runs=1, waits=False):
        """The result of measure() in a process of its own, and its wall time."""
        options = {"threads": self.arguments.threads, "fuse": fuses, **MODES[mode]}
        if self.arguments.backends:
            options["backends"] = self.arguments.backends.split(",")
        start = time.perf_counter()
        told = run_process(measure, {
            "files": self.files[files], "runs": runs, "waits": waits, "options": options,
            "module_dir": str(self.arguments.module_dir), "has_destructors": True}, caches)
        return {**told, "wall": time.perf_counter() - start}

    def row(self, name, mode, caches):
        if name == "many groups":
            return self.process("many", caches, mode, waits=True)
        if name == "other models":
            self.process("models", caches, mode, waits=True)
            return self.process("others", caches, mode, runs=self.arguments.runs)
        return self.process("models", caches, mode, not name.startswith("off"), self.arguments.runs)

    def round(self, mode, number):
        """Row -> its result."""
        results = {}
        for part in shuffled(PARTS, number):
            with tempfile.TemporaryDirectory() as caches:
                results |= {row: self.row(row, mode, caches) for row in part}
        return {row: results[row] for row in ROWS}


def summary_of(rounds):
    """Row -> medians over rounds, counts, and the ratio with its interval."""
    def medians_ms(results, part):
        return {name: 1e3 * statistics.median(result[part].get(name, 0) for result in results)
                for name in results[0][part]}

    rows = {}
    for row in ROWS:
        results = [one[row] for one in rounds]
        rows[row] = {
            "wall_ms": 1e3 * statistics.median(result["wall"] for result in results),
            **{f"{part}_ms": found for part, found in medians_ms(results, "seconds").items()},
            "stages_ms": medians_ms(results, "stages"),
            "fused_steps": results[-1]["fused_steps"],
            "codegen": results[-1]["compiled"],
            "most_compiled": max(sum(one["compiled"] for one in result["compiled"].values())
                                 for result in results)}
        if row in RATIOS:
            rows[row] |= ratio_of([result["wall"] for result in results],
                                  [one[RATIOS[row]]["wall"] for one in rounds]).as_dict()
    return rows


def complaints_of(mode, rounds, summary, kinds):
    """What is wrong, a sentence each. The groups are of so many kinds."""
    complaints = []
    for one in rounds:
        for row in ("on", "on again"):
            for index, (expected, found) in enumerate(zip(one["off"]["sums"], one[row]["sums"])):
                if abs(found - expected) > TOLERANCE * max(1, abs(expected)):
                    complaints.append(f"{mode}, {row}: graph {index} gives {found}, without fusion "
                                      f"{expected}")
    limits = [(("on", "on again"), kinds), (("other models",), 0),
              (("many groups",), KINDS_OF_MANY)]
    for names, most in limits:
        compiled = sum(summary[row]["most_compiled"] for row in names)
        if compiled > most:
            complaints.append(f"{mode}, {' and '.join(names)}: compiled {compiled} kernels, "
                              f"expected at most {most}")
    return sorted(set(complaints))


def print_table(summaries):
    table = Table(("mode", "<9"), ("row", "<14"), ("wall", "9.0f"), ("load", "8.0f"),
                  ("bind", "9.0f"), ("first", "8.0f"), ("runs ms", "9.0f"), ("fused", "7"),
                  ("compiled", "10"), ("loaded", "8"), ("  ratio", "<1"))
    table.print_titles()
    for mode, rows in summaries.items():
        for row, told in rows.items():
            counts = told["codegen"].values()
            table.print(
                mode, row, *(told[f"{part}_ms"] for part in ("wall", "load", "bind", "first_run",
                                                              "runs")), told["fused_steps"],
                sum(one["compiled"] for one in counts),
                sum(one["loaded_from_store"] for one in counts),
                f"  {ratio_text(told)} of {RATIOS[row]}" if row in RATIOS else "")


def parse_arguments():
    parser = Parser(__doc__, "--graphs 20 --groups 100 --rounds 1 "
                             "--backends jit,native,onednn,reference")
    parser.option("--graphs", 200)
    parser.option("--kinds", 20, "different groups")
    parser.option("--groups", 1000, f"in \"many groups\", of {KINDS_OF_MANY} kinds")
    parser.option("--runs", 50, "of each graph")
    parser.option("--rounds", 5)
    parser.option("--modes", list(MODES), "separated by commas", some_of(MODES), "LIST")
    parser.option("--backends", "", "names, separated by commas (default: Tessera's own choice)")
    parser.flag("--json", "print JSON")
    parser.share("module_dir", threads=1)
    return parser.parse()


def main():
    arguments = parse_arguments()
    for name in [name for name in os.environ if name.startswith("TESSERA_")]:
        del os.environ[name]
    summaries, complaints = {}, []
    rounds = {mode: [] for mode in arguments.modes}
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(arguments, make_graphs(pathlib.Path(folder), arguments))
        for number in range(arguments.rounds):
            for mode in arguments.modes:
                rounds[mode].append(runner.round(mode, number))
    for mode in arguments.modes:
        summaries[mode] = summary_of(rounds[mode])
        complaints += complaints_of(mode, rounds[mode], summaries[mode], arguments.kinds)
    if arguments.json:
        print(json.dumps({"rows": summaries, "complaints": complaints}, indent=2))
    else:
        print(f"{arguments.graphs} graphs of {arguments.kinds} groups, {arguments.runs} runs each, "
              f"{arguments.rounds} rounds, {arguments.threads} threads; {arguments.groups} "
              f"groups of {KINDS_OF_MANY} kinds")
        print_table(summaries)
        for complaint in complaints:
            print("wrong: " + complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
