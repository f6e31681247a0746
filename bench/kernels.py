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

import argparse
import bisect
import json
import math
import pathlib
import shlex
import subprocess
import sys
import tempfile

from compare import (
    LINE_COLUMNS,
    ROOT,
    ZOO,
    Progress,
    choose_cores,
    enter_environment,
    fail,
    parse_with_cores,
    run_process,
    seconds,
    whole_number,
    whole_numbers,
)

CONTENDERS = ("native", "onednn", "onnxruntime")
# The sizes of the loops, in MiB; a layer is compared with the nearest.
LIMIT_MEBIBYTES = (0.0625, 0.25, 1, 4, 16, 64, 256)
# A kernel that writes less than this share of the bytes that it transfers is compared with a loop
# that only reads.
READER_SHARE = 0.1
COMPUTING = ("convolution", "product", "recurrence")
NAME_COLUMNS = 52


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: bench/kernels.py --families softmax,pooling --threads 1",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", default="", metavar="LIST",
                        help="names of folders under build/zoo, or files, separated by commas "
                             "(default: every model of the zoo)")
    parser.add_argument("--families", default="", metavar="LIST",
                        help="families of ops, separated by commas (default: all)")
    parser.add_argument("--threads", type=whole_numbers, default=[1], metavar="LIST",
                        help="numbers of threads, separated by commas (default: 1)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), metavar="LIST",
                        help="backends of Tessera, and onnxruntime (default: "
                             + ",".join(CONTENDERS) + ")")
    parser.add_argument("--most", type=whole_number, default=6, metavar="N",
                        help="layers of each family (default: 6)")
    parser.add_argument("--all", action="store_true", help="every layer")
    parser.add_argument("--seconds", type=seconds, default=0.15, metavar="S",
                        help="time to measure each contender on each layer (default: 0.15)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything that was measured")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return parse_with_cores(parser)


def find_models(text):
    """Name -> file. Models of the zoo without weights on this machine are skipped with a message.
    """
    models = {}
    known = sorted(path.parent.name for path in ZOO.glob("*/model.onnx")
                   if (path.parent / "weights.bin").exists())
    for word in text.split(",") if text else known:
        path = pathlib.Path(word)
        if word in known:
            models[word] = ZOO / word / "model.onnx"
        elif path.is_file():
            models[path.parent.name if path.stem == "model" else path.stem] = path.resolve()
        else:
            fail(f"--models: '{word}' is neither a file nor a model in {ZOO}, which has "
                 + (", ".join(known) or "none") + "; bench/compare.py makes their weights")
    if not models:
        fail(f"no models in {ZOO}: bench/compare.py makes those of the zoo; or name some with "
             "--models FILE,...")
    return models


def choose_layers(arguments):
    """(layer, names of its models) by family, in the order of the families."""
    from layers import FAMILIES, choose, layers_of

    wanted = arguments.families.split(",") if arguments.families else list(FAMILIES)
    for family in wanted:
        if family not in FAMILIES:
            fail(f"--families: expected some of {', '.join(FAMILIES)}, found '{family}'")
    models = {}
    for name, path in find_models(arguments.models).items():
        for layer in layers_of(path):
            models.setdefault(layer, []).append(name)
    chosen = []
    for family in wanted:
        layers = [layer for layer in models if layer.family == family]
        most = len(layers) if arguments.all else arguments.most
        chosen += [(layer, models[layer]) for layer in choose(layers, most)]
    return chosen


class Limits:
    """The machine's limits for a number of threads."""

    def __init__(self, program, threads):
        self.copies, self.reads, self.peak = [], [], None
        if not program.exists():
            return
        sizes = ",".join(map(str, LIMIT_MEBIBYTES))
        done = subprocess.run(
            [program, "--limits", sizes, "--threads", str(threads)],
            capture_output=True, text=True, check=True,
        )
        found = json.loads(done.stdout)
        self.copies, self.reads = found["copy_bytes_per_second"], found["read_bytes_per_second"]
        self.peak = found["flops_per_second"]

    def seconds_for(self, moved, written, flops):
        """The minimum time of a kernel; None if limits were not measured."""
        if self.peak is None:
            return None
        speeds = self.reads if written < READER_SHARE * moved else self.copies
        edges = [math.sqrt(low * high) * 2**20
                 for low, high in zip(LIMIT_MEBIBYTES, LIMIT_MEBIBYTES[1:], strict=False)]
        return max(moved / speeds[bisect.bisect(edges, moved)], flops / self.peak)


def measure(layer, task, limits):
    """The row of a layer, and the failures."""
    import onnx
    from layers import one_node_model

    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "layer.onnx"
        onnx.save(one_node_model(layer), model)
        result, failure = run_process({**task, "model": str(model)}, "measure_layer.py")
    if result is None:
        return None, [failure]
    if result["differences"]:
        return None, [f"{name}: {text}" for name, text in result["differences"].items()]
    least = limits.seconds_for(layer.bytes, layer.output_bytes, result["flops"])
    row = {"family": layer.family, "layer": layer.text, "threads": task["threads"],
           "bytes": layer.bytes, "flops": result["flops"],
           "limit_us": least and least * 1e6, "refusals": result["refusals"],
           "contenders": result["contenders"]}
    for entry in row["contenders"].values():
        entry["gb_per_second"] = layer.bytes / entry["median_us"] * 1e-3
        entry["gflops"] = result["flops"] / entry["median_us"] * 1e-3
        entry["limit_percent"] = least and 100 * least * 1e6 / entry["median_us"]
    return row, []


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
    unit = "GFLOP/s" if family in COMPUTING else "GB/s"
    key = "gflops" if family in COMPUTING else "gb_per_second"
    print(f"\n{f'{family}, {unit}':{NAME_COLUMNS}}"
          + "".join(f"{name:>16}" for name in contenders))
    for row in rows:
        text = row["layer"]
        if len(text) >= NAME_COLUMNS:
            text = text[: NAME_COLUMNS - 4] + "..."
        line = f"{text:{NAME_COLUMNS}}"
        for name in contenders:
            entry = row["contenders"].get(name)
            if entry is None:
                line += f"{'-':>16}"
                continue
            line += f"{entry[key]:9.1f}{share_text(entry['limit_percent']):>7}"
        print(line)
    for name in contenders:
        ratio, count = _ratio_to_native(rows, name)
        if name != "native" and ratio is not None:
            layers = "1 layer" if count == 1 else f"{count} layers"
            print(f"  {name}'s time / native's, geometric mean of {layers}: {ratio:.2f}")


def print_report(header, rows, contenders):
    print(f"{header['cpu']}\ncommand: {header['command']}")
    for threads, limits in header["limits"].items():
        peak = limits["flops_per_second"]
        told = "limits not measured: tools/build release tessera_bench_native"
        if peak is not None:
            told = (f"peak {peak * 1e-9:.0f} GFLOP/s; "
                    f"copies {limits['copy_bytes_per_second'][2] * 1e-9:.1f} GB/s at 1 MiB, "
                    f"{limits['copy_bytes_per_second'][5] * 1e-9:.1f} at 64 MiB")
        print(f"\n{threads} thread{'s' if threads > 1 else ''}; {told}")
        mine = [row for row in rows if row["threads"] == threads]
        for family in dict.fromkeys(row["family"] for row in mine):
            print_family(family, [row for row in mine if row["family"] == family], contenders)


def main():
    arguments = parse_arguments()
    enter_environment(arguments.module_dir)
    # Imported only here: they need NumPy and onnx, which are in .venv.
    from report import cpu_name

    contenders = [name for name in arguments.contenders.split(",") if name]
    chosen = choose_layers(arguments)
    progress = Progress(len(chosen) * len(arguments.threads))
    program = arguments.module_dir.parent / "bin" / "tessera_bench_native"
    rows, failures = [], []
    header = {"cpu": cpu_name(), "command": shlex.join(["bench/kernels.py", *sys.argv[1:]]),
              "limit_mebibytes": LIMIT_MEBIBYTES, "limits": {}}
    for threads in arguments.threads:
        limits = Limits(program, threads)
        header["limits"][threads] = {"copy_bytes_per_second": limits.copies,
                                     "read_bytes_per_second": limits.reads,
                                     "flops_per_second": limits.peak}
        for layer, models in chosen:
            progress.say(f"{threads} threads, {layer.text}"[: LINE_COLUMNS - 10])
            row, wrong = measure(layer, {
                "threads": threads, "cores": choose_cores(threads), "contenders": contenders,
                "seconds": arguments.seconds, "seed": len(rows),
                "module_dir": str(arguments.module_dir.resolve()),
            }, limits)
            failures += [f"{layer.text}, {threads} threads: {text}" for text in wrong]
            if row:
                rows.append({**row, "models": models})
    progress.clear()
    if arguments.json:
        arguments.json.write_text(
            json.dumps({**header, "layers": rows, "failures": failures}, indent=1) + "\n"
        )
    print_report(header, rows, contenders)
    for failure in failures:
        print(f"kernels: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
