"""The runtimes that are compared, configured to do the same work: float32, the same number of
threads, one inference at a time. Each is a class; an object of it is one loaded model, which run()
computes once."""

import sys
import time

import numpy as np

from harness.turns import take_turns, timer_of

OWN = "tessera"
NAN_FAST_ROW = "tessera:nan=fast"
UNFUSED_ROW = "tessera:fuse=off"
PLANS_ROW = "tessera:plans"  # a plan for each set of input shapes


def bind_options_of(row):
    """Tessera's bind options for the row of this name, in addition to those of all rows. Omits an
    option that an earlier build (bench/builds.py) does not have."""
    return {NAN_FAST_ROW: {"nan": "fast"}, UNFUSED_ROW: {"fuse": False},
            PLANS_ROW: {"families": False}}.get(row, {})


def shapes_of(inputs):
    return {name: array.shape for name, array in inputs.items()}


def ranges_of(task):
    """The shapes of `task["ranges"]`, in which a size may be its lowest and its highest number, as
    Model.bind() takes them; None without any."""
    return {name: tuple(range(dim[0], dim[1] + 1) if isinstance(dim, list) else dim for dim in dims)
            for name, dims in task.get("ranges", {}).items()} or None


def load_tessera(model, threads=None):
    """The loaded model, without messages."""
    import tessera

    options = {"threads": threads} if threads else {}
    return tessera.load(model, log=lambda message: None, **options)


class Tessera:
    """Tessera on all its backends, or on the named ones."""

    def __init__(self, model, inputs, threads, backends=(), costs="", shapes=None, **options):
        self.inputs = inputs
        self.executor = load_tessera(model, threads).bind(
            shapes or shapes_of(inputs), threads=threads, backends=backends, cost_table=costs,
            **{"optimize": False, **options})

    def run(self):
        return self.executor.run(self.inputs)


class OnnxRuntime:
    """ONNX Runtime with default options, except the number of threads: all optimisations; its
    threads spin while they wait."""

    def __init__(self, model, inputs, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options,
                                                    providers=["CPUExecutionProvider"])
        wanted = {value.name for value in self.session.get_inputs()}
        self.inputs = {name: array for name, array in inputs.items() if name in wanted}

    def run(self):
        return self.session.run(None, self.inputs)


class BoundOnnxRuntime(OnnxRuntime):
    """The same with I/O binding: each run writes to the same memory."""

    def __init__(self, model, inputs, threads):
        import onnxruntime

        super().__init__(model, inputs, threads)
        make_value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.values = [make_value(array) for array in super().run()]
        self.outputs = [value.numpy() for value in self.values]  # in the same memory
        self.binding = self.session.io_binding()
        for name, array in self.inputs.items():
            self.binding.bind_ortvalue_input(name, make_value(array))
        for port, value in zip(self.session.get_outputs(), self.values, strict=True):
            self.binding.bind_ortvalue_output(port.name, value)

    def run(self):
        self.session.run_with_iobinding(self.binding)
        return self.outputs


class OpenVino:
    """OpenVINO, configured for minimum latency and full float32 precision."""

    SETTINGS = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "KV_CACHE_PRECISION": "f32",
        "ENABLE_CPU_PINNING": False,
    }

    def __init__(self, model, inputs, threads, **settings):
        """`settings` that differ, or others."""
        import openvino

        core = openvino.Core()
        network = core.read_model(model)
        self.fix_shapes(network, inputs)
        self.compiled = core.compile_model(network, "CPU", {
            **self.SETTINGS, "INFERENCE_NUM_THREADS": threads, **settings})
        # The inputs that the compiled network kept; inputs that nothing reads are removed.
        known = {name for port in self.compiled.inputs for name in port.names}
        self.inputs = {name: array for name, array in inputs.items() if name in known}
        self.outputs = self.compiled.outputs
        self.request = self.compiled.create_infer_request()

    def fix_shapes(self, network, inputs):
        if any(port.partial_shape.is_dynamic for port in network.inputs):
            network.reshape(shapes_of(inputs))

    def run(self, **options):
        results = self.request.infer(self.inputs, share_inputs=True, **options)
        return [results[port] for port in self.outputs]


class OpenOpenVino(OpenVino):
    """OpenVINO with the dimensions that the model leaves open, as the other runtimes have them."""

    def fix_shapes(self, network, inputs):
        pass


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}
# The same for runs on inputs of several shapes.
OPEN_PEERS = {**PEERS, "openvino": OpenOpenVino}


def random_inputs(model, shapes):
    """Arrays for every input of `model`: floats from the normal distribution, integers from the
    range that they index, as `tessera run --random` generates them."""
    arrays = {}
    for value in load_tessera(model).inputs:
        shape = shapes.get(value.name, value.shape)
        if shape is None or any(isinstance(dim, str) for dim in shape):
            raise SystemExit(f"input '{value.name}' has no fixed shape ({value.text}): "
                             f"give it with --shape '{value.name}=DIMxDIM...'")
        generator = np.random.default_rng(list(value.name.encode()))
        dtype = np.dtype(value.type)
        if dtype == np.bool_:
            arrays[value.name] = generator.integers(0, 2, shape).astype(dtype)
        elif dtype.kind in "iu":
            limit = min(value.index_limit or 10, np.iinfo(dtype).max)
            arrays[value.name] = generator.integers(0, limit, shape).astype(dtype)
        else:
            arrays[value.name] = generator.standard_normal(shape).astype(dtype)
    return arrays


def explain_difference(expected, actual):
    """How the arrays of two runtimes differ by more than rounding, or "" if they do not.

    The tolerance is 1e-3 of the array's root mean square, plus 1e-3 of each element. Convolutions
    by transforms (Winograd) have larger rounding errors than direct sums, and every runtime may use
    them."""
    if len(expected) != len(actual):
        return f"{len(actual)} outputs, expected {len(expected)}"
    for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        if wanted.shape != found.shape or wanted.dtype != found.dtype:
            return (f"output {index} is {found.dtype} {found.shape}, "
                    f"expected {wanted.dtype} {wanted.shape}")
        wanted, found = wanted.astype(np.float64), found.astype(np.float64)
        scale = np.sqrt(np.mean(wanted**2)) if wanted.size else 0
        is_near = np.abs(found - wanted) <= 1e-3 * scale + 1e-3 * np.abs(wanted)
        if not is_near.all():  # also if an element is NaN
            worst = np.nanmax(np.abs(found - wanted))
            return f"output {index} is off by up to {worst:.3g} (root mean square {scale:.3g})"
    return ""


def differences(expected, outputs):
    """Name -> how its outputs differ from `expected`, of those that differ."""
    found = {name: explain_difference(expected, each) for name, each in outputs.items()}
    return {name: text for name, text in found.items() if text}


def check_agreement(outputs):
    """Ends the process if a runtime's outputs, by its name, differ from the first peer's."""
    standard = next((name for name in outputs if name in PEERS), next(iter(outputs)))
    wrong = differences(outputs[standard], outputs)
    if wrong:
        raise SystemExit("; ".join(f"{name}: {text}" for name, text in wrong.items()))


# --- One process with all runtimes ---


def load_all(task, peers=PEERS):
    """The runtimes of `task["runtimes"]`, by name, and the milliseconds that each took to load."""
    # OpenVINO's copy of oneTBB is the newest, so it is loaded first and used by all.
    if "openvino" in task["runtimes"]:
        import openvino  # noqa: F401
    inputs = random_inputs(task["model"], task["shapes"])
    loaded, load_ms = {}, {}
    for name, backends in task["runtimes"].items():
        started = time.perf_counter()
        if name in peers:
            loaded[name] = peers[name](task["model"], inputs, task["threads"])
        else:
            loaded[name] = Tessera(task["model"], inputs, task["threads"], backends,
                                   task.get("costs", {}).get(name, ""), ranges_of(task),
                                   **bind_options_of(name))
        load_ms[name] = (time.perf_counter() - started) * 1e3
    return loaded, load_ms


def versions_of(loaded):
    """Name of a runtime that is loaded -> its version."""
    return {name: sys.modules[name].__version__.partition("-")[0]
            for name in loaded if ":" not in name}


def compare_runtimes(task):
    """For run_process(): loads one model in the runtimes `task["runtimes"]`, name -> backends of
    Tessera; checks that their outputs agree with the first peer's, and times them in turns."""
    loaded, load_ms = load_all(task)
    check_agreement({name: runtime.run() for name, runtime in loaded.items()})
    timers = {name: timer_of(runtime.run) for name, runtime in loaded.items()}
    return {"load_ms": load_ms, "versions": versions_of(loaded),
            "times": take_turns(timers, task["seconds"], seed=task["seed"])}
