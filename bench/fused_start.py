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

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import compare

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
# Row -> the row that its time is divided by.
RATIOS = {"on": "off", "on again": "off again", "other models": "off", "off again": "off"}
TOLERANCE = 1e-3


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
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, inputs, outputs, constants = [], [], [], {}
    for index, (rows, size) in enumerate(zip(groups, sizes)):
        names = [f"x{index}"]
        for op, operands in rows:
            read = []
            for operand in operands:
                if isinstance(operand, float):
                    constants[f"c{operand}"] = operand
                    read.append(f"c{operand}")
                else:
                    read.append(names[operand])
            names.append(f"v{index}_{len(names)}")
            nodes.append(helper.make_node(op, read, [names[-1]]))
        for name, values in ((names[0], inputs), (names[-1], outputs)):
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]))
    graph = helper.make_graph(
        nodes, path.stem, inputs, outputs,
        [numpy_helper.from_array(np.float32(value), name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


def size_of(rng):
    low, high = ELEMENTS
    return min(high, int(low * (high / low) ** rng.random()))


def make_graphs(folder, arguments):
    """Set of models -> its files."""
    rng = random.Random(SEED)
    kinds = [kind_of_group(SEED * 1000 + seed) for seed in range(arguments.kinds)]
    files = {}
    for name in ("models", "others"):
        files[name] = []
        for index in range(arguments.graphs):
            files[name].append(folder / f"{name}{index:04}.onnx")
            save_graph(files[name][-1], [kinds[index % len(kinds)]], [size_of(rng)])
    files["many"] = []
    few = [kind_of_group(SEED * 2000 + seed) for seed in range(KINDS_OF_MANY)]
    # Each node of another size is measured, fused or not, which would take minutes.
    sizes = [size_of(rng) for _ in range(SIZES_OF_MANY)]
    for first in range(0, arguments.groups, GROUPS_IN_GRAPH):
        count = min(GROUPS_IN_GRAPH, arguments.groups - first)
        files["many"].append(folder / f"many{first:05}.onnx")
        save_graph(files["many"][-1], [few[(first + at) % len(few)] for at in range(count)],
                   [sizes[(first + at) // len(few) % len(sizes)] for at in range(count)])
    return files


# --- One process ---


def measure(task):
    """Loads, binds and runs all files; the times of these parts, what was compiled, and a number
    for each graph's outputs."""
    sys.path.insert(0, task["module_dir"])
    import numpy as np
    import tessera

    seconds = {"load": 0, "bind": 0, "first_run": 0, "wait": 0, "runs": 0,
               "release": 0}
    stages, compiled, sums, fused = {}, {}, [], 0

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
            stages[stage.name] = stages.get(stage.name, 0) + 1e-9 * stage.duration_ns
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
    def __init__(self, arguments, files, folder):
        self.arguments = arguments
        self.files = files
        self.folder = folder

    def process(self, files, caches, mode, fuses=True, runs=1, waits=False):
        """The result of measure() in a process of its own, and its wall time."""
        options = {"threads": self.arguments.threads[0], "fuse": fuses, **MODES[mode]}
        if self.arguments.backends:
            options["backends"] = self.arguments.backends.split(",")
        task = {"files": [str(file) for file in files], "runs": runs, "waits": waits,
                "options": options, "module_dir": str(self.arguments.module_dir)}
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TESSERA_")}
        environment |= {"XDG_CACHE_HOME": str(caches / "user"),
                        "TESSERA_CACHE_DIR": str(caches / "project")}
        start = time.perf_counter()
        done = subprocess.run([sys.executable, __file__, "--process"], input=json.dumps(task),
                              capture_output=True, text=True, check=False, env=environment)
        wall = time.perf_counter() - start
        if done.returncode != 0:
            compare.fail("a process failed: " + done.stderr.strip()[-300:])
        return {**json.loads(done.stdout), "wall": wall}

    def row(self, name, mode, caches):
        if name == "many groups":
            return self.process(self.files["many"], caches, mode, waits=True)
        if name == "other models":
            self.process(self.files["models"], caches, mode, waits=True)
            return self.process(self.files["others"], caches, mode, runs=self.arguments.runs)
        return self.process(self.files["models"], caches, mode, not name.startswith("off"),
                            self.arguments.runs)

    def round(self, mode, number):
        """Row -> its result."""
        caches = {name: self.folder / f"{mode}{number}{name}" for name in ("off", "on", "many")}
        for folder in caches.values():
            (folder / "project").mkdir(parents=True)
        parts = [("off", "off again"), ("on", "on again", "other models"), ("many groups",)]
        random.Random(number).shuffle(parts)
        results = {}
        for part in parts:
            for row in part:
                results[row] = self.row(row, mode, caches[row.split()[0] if row != "other models"
                                                          else "on"])
        return {row: results[row] for row in ROWS}


def summary_of(rounds):
    """Row -> medians over rounds, counts, and the ratio with its interval."""
    import ratios

    rows = {}
    for row in ROWS:
        results = [one[row] for one in rounds]
        rows[row] = {
            "wall_ms": 1e3 * statistics.median(result["wall"] for result in results),
            **{f"{part}_ms": 1e3 * statistics.median(result["seconds"][part] for result in results)
               for part in results[0]["seconds"]},
            "stages_ms": {stage: 1e3 * statistics.median(result["stages"].get(stage, 0)
                                                         for result in results)
                          for stage in results[0]["stages"]},
            "fused_steps": results[-1]["fused_steps"],
            "codegen": results[-1]["compiled"],
            "most_compiled": max(sum(one["compiled"] for one in result["compiled"].values())
                                 for result in results)}
        if row in RATIOS:
            rows[row] |= ratios.ratio_of([result["wall"] for result in results],
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
    print(f"{'mode':<9}{'row':<14}{'wall':>9}{'load':>8}{'bind':>9}{'first':>8}{'runs':>8} ms"
          f"{'fused':>7}{'compiled':>10}{'loaded':>8}  ratio")
    for mode, rows in summaries.items():
        for row, told in rows.items():
            counts = told["codegen"].values()
            ratio = ""
            if row in RATIOS:
                low, high = told["ratio_interval"] or (told["ratio"], told["ratio"])
                ratio = f"{told['ratio']:.2f} [{low:.2f}, {high:.2f}] of {RATIOS[row]}"
            print(f"{mode:<9}{row:<14}{told['wall_ms']:9.0f}{told['load_ms']:8.0f}"
                  f"{told['bind_ms']:9.0f}{told['first_run_ms']:8.0f}{told['runs_ms']:8.0f}   "
                  f"{told['fused_steps']:7}{sum(one['compiled'] for one in counts):10}"
                  f"{sum(one['loaded_from_store'] for one in counts):8}  {ratio}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/fused_start.py --graphs 20 --groups 100 --rounds 1 "
               "--backends jit,native,onednn,reference")
    parser.add_argument("--graphs", type=compare.whole_number, default=200, metavar="N",
                        help="(default: 200)")
    parser.add_argument("--kinds", type=compare.whole_number, default=20, metavar="N",
                        help="different groups (default: 20)")
    parser.add_argument("--groups", type=compare.whole_number, default=1000, metavar="N",
                        help=f"in \"many groups\", of {KINDS_OF_MANY} kinds (default: 1000)")
    parser.add_argument("--runs", type=compare.whole_number, default=50, metavar="N",
                        help="of each graph (default: 50)")
    parser.add_argument("--rounds", type=compare.whole_number, default=5, metavar="N",
                        help="(default: 5)")
    parser.add_argument("--modes", default=",".join(MODES), metavar="LIST",
                        help=f"some of {', '.join(MODES)} (default: all)")
    parser.add_argument("--backends", default="", metavar="LIST",
                        help="names, separated by commas (default: Tessera's own choice)")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[1], metavar="N",
                        help="(default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    arguments = compare.parse_with_cores(parser)
    arguments.modes = arguments.modes.split(",")
    if unknown := set(arguments.modes) - set(MODES):
        parser.error(f"argument --modes: expected some of {', '.join(MODES)}, found "
                     f"'{sorted(unknown)[0]}'")
    return arguments


def main():
    if sys.argv[1:] == ["--process"]:
        json.dump(measure(json.load(sys.stdin)), sys.stdout)
        return 0
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    summaries, complaints = {}, []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        runner = Runner(arguments, make_graphs(folder, arguments), folder)
        rounds = {mode: [] for mode in arguments.modes}
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
              f"{arguments.rounds} rounds, {arguments.threads[0]} threads; {arguments.groups} "
              f"groups of {KINDS_OF_MANY} kinds")
        print_table(summaries)
        for complaint in complaints:
            print("wrong: " + complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
