"""One process of bench/kernels.py: times one layer, a model of one node, on each of Tessera's
backends and on ONNX Runtime, in turns."""

import numpy as np
from harness.runtimes import PEERS, BoundOnnxRuntime, differences, load_tessera, random_inputs
from harness.turns import MIN_BLOCKS, take_turns, timer_of
from networks.graph_writer import model_of
from onnx import helper

WARM_UP_SECONDS = 0.05
REFERENCE = "reference"


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
        one_number = model_of([helper.make_node("Neg", ["x"], ["y"])], {"x": [1]}, {"y": [1]},
                              opset=13).SerializeToString()
        call = timer_of(BoundOnnxRuntime(one_number, {"x": np.ones(1, "f")}, threads).run)
        self.overhead = sorted(call() for _ in range(1001))[500]
        self.run = BoundOnnxRuntime(model, inputs, threads).run
        self.call = timer_of(self.run)

    def seconds(self):
        return max(1e-9, self.call() - self.overhead)


def measure_layer(task):
    """For run_process(): the contenders of the task, and why others cannot run."""
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
