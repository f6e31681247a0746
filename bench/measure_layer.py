"""One process of bench/kernels.py: times one layer, a model of one node, on each of Tessera's
backends and on ONNX Runtime, in turns. Reads its task as JSON from stdin, writes its result to
stdout."""

import gc
import json
import os
import random
import sys
import time

from measure_process import MIN_BLOCKS, WARM_UP_RUNS, rest

WARM_UP_SECONDS = 0.05
REFERENCE = "reference"


class Refused(Exception):
    """A backend cannot run the layer; the text says why."""


class OneBackend:
    """Tessera on one backend. The time of a run is that of its kernels, as the executor recorded
    it, without conversions between layouts and the overhead of a call from Python."""

    def __init__(self, model, inputs, threads, backend):
        import tessera

        loaded = tessera.load(model, log=lambda message: None, threads=threads)
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

    def outputs(self):
        return self.executor.run(self.inputs)

    def seconds_of_run(self):
        self.executor.run(self.inputs)
        return sum(step.duration_ns for step in self.executor.steps
                   if step.op != "convert") * 1e-9


class BoundOnnxRuntime:
    """ONNX Runtime with default options, with inputs and outputs bound. The time of a run is that
    of a call minus that of a call that computes one number."""

    algorithm = layout = ""
    flops = 0

    def __init__(self, model, inputs, threads):
        import runtimes

        session = runtimes.OnnxRuntime(model, inputs, threads)
        self.session, self.inputs = session.session, session.inputs
        self.binding = self._bind(self.session, self.inputs)
        self.overhead_seconds = self._overhead(threads)

    @staticmethod
    def _bind(session, inputs):
        import onnxruntime

        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for output, array in zip(session.get_outputs(), session.run(None, inputs), strict=True):
            binding.bind_ortvalue_output(
                output.name, onnxruntime.OrtValue.ortvalue_from_numpy(array)
            )
        return binding

    def _overhead(self, threads):
        import numpy as np
        import onnx
        import runtimes
        from onnx import TensorProto, helper

        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "call", *zip(value))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                  ir_version=8)
        onnx.checker.check_model(model)
        call = runtimes.OnnxRuntime(model.SerializeToString(), {"x": np.ones(1, "f")}, threads)
        binding = self._bind(call.session, call.inputs)
        return sorted(self._call(call.session, binding) for _ in range(1001))[500]

    @staticmethod
    def _call(session, binding):
        begin = time.perf_counter()
        session.run_with_iobinding(binding)
        return time.perf_counter() - begin

    def outputs(self):
        return self.session.run(None, self.inputs)

    def seconds_of_run(self):
        return max(1e-9, self._call(self.session, self.binding) - self.overhead_seconds)


def load_all(task):
    """The contenders by name, and why others cannot run."""
    import runtimes

    sys.path.insert(0, task["module_dir"])
    inputs = runtimes.random_inputs(task["model"], {})
    loaded, refusals = {}, {}
    for name in task["contenders"]:
        try:
            if name in runtimes.PEERS:
                loaded[name] = BoundOnnxRuntime(task["model"], inputs, task["threads"])
            else:
                loaded[name] = OneBackend(task["model"], inputs, task["threads"], name)
        except Refused as refused:
            refusals[name] = str(refused)
    return loaded, refusals


def differences(loaded):
    """How outputs differ from those of the last contender, which is a peer if there is one."""
    import runtimes

    expected = list(loaded.values())[-1].outputs() if loaded else []
    found = {name: runtimes.explain_difference(expected, contender.outputs())
             for name, contender in loaded.items()}
    return {name: text for name, text in found.items() if text}


def warm_up(contender):
    started = time.perf_counter()
    runs = 0
    while runs < WARM_UP_RUNS or time.perf_counter() - started < WARM_UP_SECONDS:
        contender.seconds_of_run()
        runs += 1


def run_block(contender, seconds):
    """The times of runs for about `seconds`, without the first run, which wakes threads."""
    contender.seconds_of_run()
    times = []
    started = time.perf_counter()
    while not times or time.perf_counter() - started < seconds:
        times.append(contender.seconds_of_run())
    return times


def measure(loaded, seconds, seed):
    """Every contender's times, in blocks that take turns in a new random order in each round."""
    order = random.Random(seed)
    names = list(loaded)
    times = {name: [] for name in names}
    for _ in range(MIN_BLOCKS):
        order.shuffle(names)
        for name in names:
            rest()
            times[name] += run_block(loaded[name], seconds / MIN_BLOCKS)
    return times


def main():
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, task["cores"])
    # Runtimes may print to stdout; send that to stderr and keep stdout for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    loaded, refusals = load_all(task)
    result = {"refusals": refusals, "differences": differences(loaded),
              "flops": max((each.flops for each in loaded.values()), default=0)}
    if not result["differences"]:
        for contender in loaded.values():
            warm_up(contender)
        gc.disable()
        times = measure(loaded, task["seconds"], task["seed"])
        result["contenders"] = {
            name: {"median_us": sorted(found)[len(found) // 2] * 1e6, "runs": len(found),
                   "algorithm": loaded[name].algorithm, "layout": loaded[name].layout}
            for name, found in times.items()
        }
    json.dump(result, answer)
    answer.flush()
    # Skips destructors: runtimes that share a process may depend on the order in which they are
    # destroyed.
    os._exit(0)


if __name__ == "__main__":
    main()
