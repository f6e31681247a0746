#!/usr/bin/env python3
"""The memory that a process needs to run a network: Tessera compared with ONNX Runtime and
OpenVINO.

Each runtime has a separate process: load, bind, twenty runs, without measuring (`optimize` off).
The result is the maximum resident memory (VmHWM of the process and all its children), minus that of
a Python process that only imports NumPy and creates the inputs."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import compare
import runtimes

RUNS = 20
MODELS = ("vgg19", "resnet50", "bert_mini")
MEBI = 1 << 20


def peak_bytes(process="self"):
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc tells no VmHWM")


def child(task):
    """One process: prints its peak memory."""
    import numpy as np

    inputs = {name: np.zeros(shape, dtype) for name, (shape, dtype) in task["inputs"].items()}
    if task["runtime"] == "numpy":
        print(peak_bytes())
        return
    sys.path.insert(0, task["module_dir"])
    kind = {"tessera": runtimes.Tessera, **runtimes.PEERS}[task["runtime"]]
    runtime = kind(task["model"], inputs, task["threads"])
    for _ in range(RUNS):
        runtime.run()
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(peak_bytes() + children)


def peak_of(task):
    done = subprocess.run([sys.executable, __file__, "--child", json.dumps(task)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{task['runtime']} on {task['model']}:\n{done.stderr}")
    return int(done.stdout.split()[-1])


def inputs_of(model, shapes):
    """Shapes and types of a network's inputs."""
    return {name: [list(array.shape), str(array.dtype)]
            for name, array in runtimes.random_inputs(str(model), shapes).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="of the zoo, or files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="processes of each; the median counts")
    parser.add_argument("--shape", type=compare.named_shape, action="append", default=[],
                        metavar="NAME=DIMxDIM", help="of an input whose shape is open")
    parser.add_argument("--json", help="FILE to write all figures to")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(json.loads(arguments.child))
        return
    module_dir = compare.ROOT / "build/release/python"
    compare.enter_environment(module_dir)
    sys.path.insert(0, str(module_dir))
    rows = {}
    columns = ("tessera", *runtimes.PEERS)
    print(f"{'MiB above NumPy':24}" + "".join(f"{name:>14}" for name in columns))
    for name, model in compare.find_models(arguments.models).items():
        task = {"model": str(model), "inputs": inputs_of(model, dict(arguments.shape)),
                "threads": arguments.threads, "module_dir": str(module_dir)}
        row = rows[name] = {}
        for runtime in ("numpy", *columns):
            row[runtime] = statistics.median(
                peak_of({**task, "runtime": runtime}) for _ in range(arguments.repeats))
        print(f"{name:24}" + "".join(f"{(row[other] - row['numpy']) / MEBI:14.1f}"
                                     for other in columns), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
