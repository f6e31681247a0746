#!/usr/bin/env python3
"""The memory that a process needs to run a network: Tessera compared with ONNX Runtime and
OpenVINO.

Each runtime has a separate process: load, bind, twenty runs, without measuring (`optimize` off).
The result is the maximum resident memory (VmHWM of the process and all its children), minus that of
a Python process that only imports NumPy and creates the inputs.

With --measured, there are also Tessera with measuring behind the runs, and a session of
tessera.onnxruntime with its default options; both wait until the faster plan is in use, with empty
folders for caches. --steady prints what is resident at the end, without children, and beside it what
the plan says that it needs."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import compare
import runtimes

RUNS = 20
MODELS = ("vgg19", "resnet50", "bert_mini")
MEBI = 1 << 20


def status_bytes(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc tells no {key}")


class Behind(runtimes.Tessera):
    """Measures behind the first runs, and waits for the result."""

    def __init__(self, model, inputs, threads):
        import tessera

        shapes = {name: array.shape for name, array in inputs.items()}
        self.inputs = inputs
        self.executor = tessera.load(model, log=lambda message: None, threads=threads).bind(
            shapes, threads=threads, optimize="behind")
        self.run()
        self.executor.wait_for_swap()


class Session(runtimes.OnnxRuntime):
    """A session of tessera.onnxruntime with its default options."""

    def __init__(self, model, inputs, threads):
        import tessera.onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(model, options)
        self.inputs = inputs
        self.run()
        self.executor = self.session._network.pool.choose(inputs).executor
        self.executor.wait_for_swap()

    def run(self):
        return self.session.run(None, self.inputs)


MEASURED = {"behind": Behind, "session": Session}


def child(task):
    """One process: prints its peak memory."""
    import numpy as np

    inputs = {name: np.zeros(shape, dtype) for name, (shape, dtype) in task["inputs"].items()}
    if task["runtime"] == "numpy":
        print(json.dumps([status_bytes("VmHWM"), status_bytes("VmRSS"), 0]))
        return
    sys.path.insert(0, task["module_dir"])
    kind = {"tessera": runtimes.Tessera, **MEASURED, **runtimes.PEERS}[task["runtime"]]
    runtime = kind(task["model"], inputs, task["threads"])
    for _ in range(RUNS):
        runtime.run()
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    executor = getattr(runtime, "executor", None)
    planned = executor.plan().memory.total_bytes if executor else 0
    print(json.dumps([status_bytes("VmHWM") + children, status_bytes("VmRSS"), planned]))


def figures_of(task):
    """The peak of a process, what is resident at its end, and the bytes of its plan."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": f"{folder}/user", "TESSERA_CACHE_DIR": folder}
        done = subprocess.run([sys.executable, __file__, "--child", json.dumps(task)],
                              capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{task['runtime']} on {task['model']}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def inputs_of(model, shapes):
    """Shapes and types of a network's inputs."""
    return {name: [list(array.shape), str(array.dtype)]
            for name, array in runtimes.random_inputs(str(model), shapes).items()}


def row_text(name, row, columns):
    return f"{name:24}" + "".join(f"{(row[other] - row['numpy']) / MEBI:14.1f}" for other in columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="of the zoo, or files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="processes of each; the median counts")
    parser.add_argument("--shape", type=compare.named_shape, action="append", default=[],
                        metavar="NAME=DIMxDIM", help="of an input whose shape is open")
    parser.add_argument("--measured", action="store_true",
                        help="also Tessera with measuring behind the runs, and a session")
    parser.add_argument("--steady", action="store_true",
                        help="print what is resident at the end, and what the plan needs")
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
    columns = ("tessera", *(MEASURED if arguments.measured else ()), *runtimes.PEERS)
    print(f"{'MiB above NumPy':24}" + "".join(f"{name:>14}" for name in columns))
    for name, model in compare.find_models(arguments.models).items():
        task = {"model": str(model), "inputs": inputs_of(model, dict(arguments.shape)),
                "threads": arguments.threads, "module_dir": str(module_dir)}
        row, steady, planned = {}, {}, {}
        rows[name] = row
        for runtime in ("numpy", *columns):
            figures = [figures_of({**task, "runtime": runtime}) for _ in range(arguments.repeats)]
            row[runtime], steady[runtime], planned[runtime] = (
                statistics.median(values) for values in zip(*figures))
        print(row_text(name, row, columns), flush=True)
        if not arguments.steady:
            continue
        print(row_text("  at the end", steady, columns))
        print(f"{'  planned':24}" + "".join(f"{planned[other] / MEBI:14.1f}" for other in columns),
              flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
