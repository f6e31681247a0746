#!/usr/bin/env python3
"""Compares the speed of single layers of the zoo on each of Tessera's backends with ONNX Runtime,
and prints the share of the machine's limit that each reaches.

Every layer, that is an op with its attributes and sizes, becomes a model of one node. For each
layer, a separate process runs all contenders on the same random inputs, compares their outputs, and
then times them in turns. Of each family of ops, some layers are selected: the largest of each op
and of each kind, and one whose sizes are not multiples of a vector's width; --all selects every
layer.

Tessera's times are those of the kernels alone, as the executor records them, in the layout that the
backend prefers. ONNX Runtime's times are those of a call with bound buffers minus the overhead of a
call; they include reorders that its convolutions need. All times are medians.

The limit of a layer is the larger of two times: its operations at the machine's measured peak, and
its bytes at the speed of the fastest loop that transfers as many (tessera_bench_native --limits).
Data that stays in caches can be faster than a copy, so more than 100 % is possible. Exit codes: 1,
outputs differ or a process failed; 2, wrong arguments."""

import bisect
import json
import math
import subprocess
import sys
import tempfile

from harness.arguments import Parser, some_of
from harness.processes import LINE_COLUMNS, ProcessFailed, run_process, task_of
from harness.report import Report, Table, count_text
from harness.runtimes import PEERS, BoundOnnxRuntime, differences, load_tessera, random_inputs
from harness.turns import MIN_BLOCKS, take_turns, timer_of
from networks.graph_writer import model_of
from networks.layers import FAMILIES, choose, layers_of, one_node_model

import numpy as np
import onnx

CONTENDERS = ["native", "onednn", "onnxruntime"]
REFERENCE = "reference"
WARM_UP_SECONDS = 0.05
# The sizes of the loops, in MiB; a layer is compared with the nearest.
LIMIT_MEBIBYTES = (0.0625, 0.25, 1, 4, 16, 64, 256)
# A kernel that writes less than this share of the bytes that it transfers is compared with a loop
# that only reads.
READER_SHARE = 0.1
COMPUTING = ("convolution", "product", "recurrence")
NAME_COLUMNS = 52


def parse_arguments():
    parser = Parser(__doc__, "--families softmax,pooling --threads 1")
    parser.share("models", threads=[1])
    parser.option("--families", list(FAMILIES), "families of ops, separated by commas",
                  some_of(FAMILIES), "LIST")
    parser.option("--contenders", ",".join(CONTENDERS), "backends of Tessera, and onnxruntime")
    parser.option("--most", 6, "layers of each family")
    parser.flag("--all", "every layer")
    parser.option("--seconds", 0.15, "time to measure each contender on each layer")
    parser.share("json", "module_dir")
    arguments = parser.parse()
    arguments.contenders = [name for name in arguments.contenders.split(",") if name]
    return arguments


def choose_layers(arguments):
    """(layer, names of its models) by family, in the order of the families."""
    models = {}
    for name, path in arguments.models.items():
        for layer in layers_of(path):
            models.setdefault(layer, []).append(name)
    chosen = []
    for family in arguments.families:
        layers = [layer for layer in models if layer.family == family]
        most = len(layers) if arguments.all else arguments.most
        chosen += [(layer, models[layer]) for layer in choose(layers, most)]
    return chosen


class Limits:
    """The machine's limits for a number of threads."""

    def __init__(self, program, threads):
        self.told = {"copy_bytes_per_second": [], "read_bytes_per_second": [],
                     "flops_per_second": None}
        if program.exists():
            sizes = ",".join(map(str, LIMIT_MEBIBYTES))
            self.told = json.loads(subprocess.run(
                [program, "--limits", sizes, "--threads", str(threads)],
                capture_output=True, text=True, check=True).stdout)

    def seconds_for(self, moved, written, flops):
        """The minimum time of a kernel; None if limits were not measured."""
        if self.told["flops_per_second"] is None:
            return None
        loop = "read" if written < READER_SHARE * moved else "copy"
        speeds = self.told[f"{loop}_bytes_per_second"]
        edges = [math.sqrt(low * high) * 2**20
                 for low, high in zip(LIMIT_MEBIBYTES, LIMIT_MEBIBYTES[1:], strict=False)]
        return max(moved / speeds[bisect.bisect(edges, moved)],
                   flops / self.told["flops_per_second"])


    @property
    def text(self):
        if self.told["flops_per_second"] is None:
            return "limits not measured: tools/build release tessera_bench_native"
        copies = [speed * 1e-9 for speed in self.told["copy_bytes_per_second"]]
        return (f"peak {self.told['flops_per_second'] * 1e-9:.0f} GFLOP/s; copies {copies[2]:.1f} "
                f"GB/s at 1 MiB, {copies[5]:.1f} at 64 MiB")


# --- One process ---


class Refused(Exception):
    """A backend cannot run the layer; the text says why."""


class OneBackend:
    """Tessera on one backend. The time of a run is that of its kernels, as the executor recorded
    it, without conversions between layouts and the overhead of a call from Python."""

    def __init__(self, model, inputs, threads, backend):
        loaded = load_tessera(model, threads)
        self.executor = loaded.bind(threads=threads, backends=[backend, REFERENCE],
                                    optimize=False)
        kernels = [step for step in self.executor.plan().steps
                   if step.op not in ("convert", "copy", "view")]
        for step in kernels:
            if step.backend != backend:
                reasons = [each.reason for each in step.refusals if each.backend == backend]
                raise Refused("; ".join(reasons) or f"runs on {step.backend}")
        self.algorithm = "+".join(dict.fromkeys(step.algorithm for step in kernels))
        self.layout = kernels[0].outputs[0].layout if kernels else ""
        self.flops = sum(node.flops or 0 for node in loaded.describe().nodes)
        self.inputs = inputs
        self.executor.record_steps(True)

    def run(self):
        return self.executor.run(self.inputs)

    def seconds(self):
        self.run()
        return sum(step.duration_ns for step in self.executor.steps
                   if step.op != "convert") * 1e-9


class Peer:
    """ONNX Runtime with default options, with inputs and outputs bound. The time of a run is that
    of a call minus that of a call that computes one number."""

    algorithm = layout = ""
    flops = 0

    def __init__(self, model, inputs, threads):
        one_number = model_of([onnx.helper.make_node("Neg", ["x"], ["y"])], {"x": [1]}, {"y": [1]},
                              opset=13).SerializeToString()
        call = timer_of(BoundOnnxRuntime(one_number, {"x": np.ones(1, "f")}, threads).run)
        self.overhead = sorted(call() for _ in range(1001))[500]
        self.run = BoundOnnxRuntime(model, inputs, threads).run
        self.call = timer_of(self.run)

    def seconds(self):
        return max(1e-9, self.call() - self.overhead)


def measure_layer(task):
    """For run_process(): the times of the contenders, in turns, and why others cannot run."""
    inputs = random_inputs(task["model"], {})
    loaded, refusals = {}, {}
    for name in task["contenders"]:
        try:
            loaded[name] = (Peer(task["model"], inputs, task["threads"]) if name in PEERS
                            else OneBackend(task["model"], inputs, task["threads"], name))
        except Refused as refused:
            refusals[name] = str(refused)
    # The last contender is a peer if there is one.
    outputs = {name: each.run() for name, each in loaded.items()}
    wrong = differences(list(outputs.values())[-1], outputs) if outputs else {}
    if wrong:
        raise SystemExit("; ".join(f"{name}: {text}" for name, text in wrong.items()))
    times = take_turns({name: each.seconds for name, each in loaded.items()}, task["seconds"],
                       task["seconds"] / MIN_BLOCKS, WARM_UP_SECONDS, task["seed"])
    return {"refusals": refusals, "flops": max((each.flops for each in loaded.values()), default=0),
            "contenders": {
                name: {"median_us": sorted(found)[len(found) // 2] * 1e6, "runs": len(found),
                       "algorithm": loaded[name].algorithm, "layout": loaded[name].layout}
                for name, found in times.items()}}


# --- All layers ---


def measure(arguments, layer, threads, limits, seed):
    """The row of a layer."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/layer.onnx"
        onnx.save(one_node_model(layer), model)
        result = run_process(measure_layer, task_of(
            arguments, model, threads, contenders=arguments.contenders, seconds=arguments.seconds,
            seed=seed))
    least = limits.seconds_for(layer.bytes, layer.output_bytes, result["flops"])
    for entry in result["contenders"].values():
        entry["gb_per_second"] = layer.bytes / entry["median_us"] * 1e-3
        entry["gflops"] = result["flops"] / entry["median_us"] * 1e-3
        entry["limit_percent"] = least and 100 * least * 1e6 / entry["median_us"]
    return {"family": layer.family, "layer": layer.text, "threads": threads, "bytes": layer.bytes,
            "limit_us": least and least * 1e6, **result}


# --- Reporting ---


def _ratio_to_native(rows, contender):
    """The geometric mean of the contender's time over native's; None if no layer has both."""
    pairs = [(row["contenders"][contender]["median_us"], row["contenders"]["native"]["median_us"])
             for row in rows if {contender, "native"} <= row["contenders"].keys()]
    if not pairs:
        return None, 0
    return math.exp(sum(math.log(other / own) for other, own in pairs) / len(pairs)), len(pairs)


def share_text(percent):
    """A share of the limit in at most 6 columns. A share far above 100 % means that the machine was
    busy while the limit was measured; it must still fit."""
    if percent is None:
        return ""
    return f"{percent:.0f} %" if percent < 999.5 else ">999 %"


def print_family(family, rows, contenders):
    is_computing = family in COMPUTING
    unit, key = ("GFLOP/s", "gflops") if is_computing else ("GB/s", "gb_per_second")
    table = Table(("", f"<{NAME_COLUMNS}"), *(("", "9.1f"), ("", "7")) * len(contenders))
    print()
    Table((f"{family}, {unit}", f"<{NAME_COLUMNS}"),
          *((name, "16") for name in contenders)).print_titles()
    for row in rows:
        text = row["layer"]
        if len(text) >= NAME_COLUMNS:
            text = text[:NAME_COLUMNS - 4] + "..."
        entries = [row["contenders"].get(name) for name in contenders]
        table.print(text, *(cell for entry in entries for cell in (
            (entry[key], share_text(entry["limit_percent"])) if entry else ("", None))))
    for name in contenders:
        ratio, count = _ratio_to_native(rows, name)
        if name != "native" and ratio is not None:
            print(f"  {name}'s time / native's, geometric mean of {count_text(count, 'layer')}: "
                  f"{ratio:.2f}")


def print_rows(report, limits, contenders):
    report.print_header()
    for threads, limit in limits.items():
        print(f"{count_text(threads)}; {limit.text}")
        mine = [row for row in report.rows if row["threads"] == threads]
        for family in dict.fromkeys(row["family"] for row in mine):
            print_family(family, [row for row in mine if row["family"] == family], contenders)


def main():
    arguments = parse_arguments()
    chosen = choose_layers(arguments)
    program = arguments.module_dir.parent / "bin" / "tessera_bench_native"
    report, limits = Report(arguments), {}
    report.progress.total = len(chosen) * len(arguments.threads)
    for threads in arguments.threads:
        limits[threads] = Limits(program, threads)
        for layer, models in chosen:
            report.place = f"{layer.text}, {count_text(threads)}"
            report.progress.say(report.place[-LINE_COLUMNS:])
            try:
                row = measure(arguments, layer, threads, limits[threads], len(report.rows))
                report.rows.append({**row, "models": models})
            except ProcessFailed as failure:
                report.fail(failure)
    report.progress.clear()
    print_rows(report, limits, arguments.contenders)
    return report.finish(limit_mebibytes=LIMIT_MEBIBYTES,
                         limits={threads: limit.told for threads, limit in limits.items()})


if __name__ == "__main__":
    sys.exit(main())
