"""The runtimes that bench/compare.py compares, configured to do the same work: float32, the same
number of threads, one inference at a time. Each is a class; an object of it is one loaded model."""

import numpy as np


NAN_FAST_ROW = "tessera:nan=fast"
UNFUSED_ROW = "tessera:fuse=off"


def bind_options_of(row):
    """Tessera's bind options for the row of this name, in addition to those of all rows. Omits an
    option that an earlier build (bench/builds.py) does not have."""
    return {NAN_FAST_ROW: {"nan": "fast"}, UNFUSED_ROW: {"fuse": False}}.get(row, {})


class Tessera:
    """Tessera on all its backends, or on the named ones."""

    def __init__(self, model, inputs, threads, backends=(), costs="", **options):
        import tessera

        shapes = {name: array.shape for name, array in inputs.items()}
        self.inputs = inputs
        self.executor = tessera.load(model, log=lambda message: None, threads=threads).bind(
            shapes, threads=threads, backends=backends, cost_table=costs, optimize=False,
            **options
        )

    def run(self):
        return self.executor.run(self.inputs)

    @staticmethod
    def version():
        import tessera

        return tessera.__version__


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
        self.session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        wanted = {value.name for value in self.session.get_inputs()}
        self.inputs = {name: array for name, array in inputs.items() if name in wanted}

    def run(self):
        return self.session.run(None, self.inputs)

    @staticmethod
    def version():
        import onnxruntime

        return onnxruntime.__version__


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

    def __init__(self, model, inputs, threads, cache_dir=""):
        """`cache_dir`: the folder for compiled models; "" for none."""
        import openvino

        core = openvino.Core()
        network = core.read_model(model)
        if any(port.partial_shape.is_dynamic for port in network.inputs):
            network.reshape({name: array.shape for name, array in inputs.items()})
        settings = {**self.SETTINGS, "INFERENCE_NUM_THREADS": threads}
        if cache_dir:
            settings["CACHE_DIR"] = cache_dir
        compiled = core.compile_model(network, "CPU", settings)
        # The inputs that the compiled network kept; inputs that nothing reads are removed.
        known = {name for port in compiled.inputs for name in port.names}
        self.inputs = {name: array for name, array in inputs.items() if name in known}
        self.outputs = compiled.outputs
        self.request = compiled.create_infer_request()

    def run(self):
        results = self.request.infer(self.inputs, share_inputs=True)
        return [results[port] for port in self.outputs]

    @staticmethod
    def version():
        import openvino

        return openvino.__version__.partition("-")[0]


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def random_inputs(model, shapes):
    """Arrays for every input of `model`: floats from the normal distribution, integers from the
    range that they index, as `tessera run --random` generates them."""
    import tessera

    arrays = {}
    for value in tessera.load(model, log=lambda message: None).inputs:
        shape = shapes.get(value.name, value.shape)
        if shape is None or any(isinstance(dim, str) for dim in shape):
            raise SystemExit(
                f"input '{value.name}' has no fixed shape ({value.text}): "
                f"give it with --shape '{value.name}=DIMxDIM...'"
            )
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
    them.
    """
    if len(expected) != len(actual):
        return f"{len(actual)} outputs, expected {len(expected)}"
    for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        if wanted.shape != found.shape or wanted.dtype != found.dtype:
            return (
                f"output {index} is {found.dtype} {found.shape}, "
                f"expected {wanted.dtype} {wanted.shape}"
            )
        wanted, found = wanted.astype(np.float64), found.astype(np.float64)
        scale = np.sqrt(np.mean(wanted**2)) if wanted.size else 0
        is_near = np.abs(found - wanted) <= 1e-3 * scale + 1e-3 * np.abs(wanted)
        if not is_near.all():  # also if an element is NaN
            worst = np.nanmax(np.abs(found - wanted))
            return f"output {index} is off by up to {worst:.3g} (root mean square {scale:.3g})"
    return ""
