#!/usr/bin/env python3
"""The memory that a process needs to run a network: Tessera compared with ONNX Runtime and
OpenVINO.

Each runtime has a separate process: load, bind, twenty runs, without measuring (`optimize` off).
The result is the maximum resident memory (VmHWM of the process and all its children), minus that of
a Python process that only imports NumPy and creates the inputs.

With --measured, there are also Tessera with measuring behind the runs, and a session of
tessera.onnxruntime with its default options; both wait until the faster plan is in use, with empty
folders for caches. --steady prints what is resident at the end, without children, and beside it
what the plan says that it needs."""

import pathlib
import resource
import statistics
import sys

from harness.arguments import Parser
from harness.processes import run_process
from harness.report import Report, Table
from harness.runtimes import OWN, PEERS, OnnxRuntime, Tessera, random_inputs

import numpy as np

RUNS = 20
MEBI = 1 << 20


def status_bytes(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc tells no {key}")


class Behind(Tessera):
    """Measures behind the first runs, and waits for the result."""

    def __init__(self, model, inputs, threads):
        super().__init__(model, inputs, threads, optimize="behind")
        self.run()
        self.executor.wait_for_swap()


class Session(OnnxRuntime):
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


class NumPy:
    """Loads nothing: what the inputs alone need."""

    def __init__(self, model, inputs, threads):
        pass

    def run(self):
        pass


MEASURED = {"behind": Behind, "session": Session}
KINDS = {"numpy": NumPy, OWN: Tessera, **MEASURED, **PEERS}


def measure(task):
    """For run_process(): the peak of the process, what is resident at its end, and the bytes of its
    plan."""
    inputs = {name: np.zeros(shape, dtype) for name, (shape, dtype) in task["inputs"].items()}
    runtime = KINDS[task["runtime"]](task["model"], inputs, task["threads"])
    for _ in range(RUNS):
        runtime.run()
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    executor = getattr(runtime, "executor", None)
    return {"peak": status_bytes("VmHWM") + children, "steady": status_bytes("VmRSS"),
            "planned": executor.plan().memory.total_bytes if executor else 0}


def parse_arguments():
    parser = Parser(__doc__, "--models vgg19,resnet50 --threads 2")
    parser.share(models="vgg19,resnet50,bert_mini", threads=[2])
    parser.option("--repeats", 3, "processes of each; the median counts")
    parser.share("shape")
    parser.flag("--measured", "also Tessera with measuring behind the runs, and a session")
    parser.flag("--steady", "print what is resident at the end, and what the plan needs")
    parser.share("json", "module_dir")
    return parser.parse()


def main():
    arguments = parse_arguments()
    columns = [name for name in KINDS
               if name != "numpy" and (arguments.measured or name not in MEASURED)]
    report = Report(arguments, steps=(1 + len(columns)) * arguments.repeats)
    table = Table(("MiB above NumPy", "<24"), *((name, "14.1f") for name in columns))
    table.print_titles()

    def measure_model(name, model, threads):
        inputs = {name: [list(array.shape), str(array.dtype)] for name, array
                  in random_inputs(str(model), dict(arguments.shape)).items()}
        figures = {"peak": {}, "steady": {}, "planned": {}}
        for runtime in ("numpy", *columns):
            told = []
            for _ in range(arguments.repeats):
                report.say(runtime)
                told.append(run_process(measure, {
                    "model": str(model), "inputs": inputs, "threads": threads, "runtime": runtime,
                    "module_dir": str(arguments.module_dir)}, caches=""))
            for figure, found in figures.items():
                found[runtime] = statistics.median(one[figure] for one in told)
        for title, figure in ((name, "peak"), ("  at the end", "steady"), ("  planned", "planned")):
            if figure == "peak" or arguments.steady:
                found = figures[figure]
                table.print(title, *((found[each] - found["numpy"]) / MEBI for each in columns))
        report.rows.append({"model": name, "threads": threads, **figures})

    report.each_case(measure_model)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
