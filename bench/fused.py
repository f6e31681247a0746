#!/usr/bin/env python3
"""Fused groups that are compiled (backend jit), beside the same nodes on Tessera's own kernels,
oneDNN (through Tessera), ONNX Runtime and OpenVINO: GELU, SiLU, softmax, layer and RMS normalization
at three sizes, and a chain of 1,100 adds and multiplications, which is one kernel.

All are called through Python, in one process. They take turns in blocks, and a block begins only when
no thread computes any more, because threads of ONNX Runtime spin after a run. The times are medians
of runs in microseconds; that of memcpy is the limit of what only moves data. With --memory new, each
run returns arrays of its own; with bound, each run writes to the same memory, which was bound
before."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import compare

COLUMNS = 512
SIZES = {"16 KiB": 4096, "1 MiB": 262_144, "64 MiB": 16_777_216}
CHAIN = 1100
BLOCK_SECONDS = 0.05


def rows_of_groups():
    """Name -> rows (op, inputs, output, attributes) of the nodes from x to y."""
    return {
        "gelu": [("Div", ["x", "root"], "a", {}), ("Erf", ["a"], "b", {}),
                 ("Add", ["b", "one"], "c", {}), ("Mul", ["x", "c"], "d", {}),
                 ("Mul", ["d", "half"], "y", {})],
        "silu": [("Sigmoid", ["x"], "s", {}), ("Mul", ["x", "s"], "y", {})],
        "softmax": [("Mul", ["x", "half"], "a", {}), ("Softmax", ["a"], "y", {"axis": -1})],
        "layer norm": [
            ("ReduceMean", ["x"], "m", {"axes": [-1]}), ("Sub", ["x", "m"], "d", {}),
            ("Mul", ["d", "d"], "q", {}), ("ReduceMean", ["q"], "v", {"axes": [-1]}),
            ("Add", ["v", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
            ("Div", ["d", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
        "rms norm": [
            ("Mul", ["x", "x"], "q", {}), ("ReduceMean", ["q"], "m", {"axes": [-1]}),
            ("Add", ["m", "eps"], "e", {}), ("Sqrt", ["e"], "r", {}),
            ("Div", ["x", "r"], "n", {}), ("Mul", ["n", "gain"], "y", {})],
    }


def chain_rows():
    names = ["x", *(f"v{at}" for at in range(CHAIN - 1)), "y"]
    return [("Add" if at % 2 else "Mul", [names[at], "half"], names[at + 1], {})
            for at in range(CHAIN)]


def save_model(path, rows, shape):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants = {"root": 2 ** 0.5, "one": 1, "half": 0.5, "eps": 1e-5,
                 "gain": np.linspace(0.5, 1, shape[-1])}
    used = {name for _, inputs, _, _ in rows for name in inputs}
    nodes = [helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes)
             for op, inputs, output, attributes in rows]
    graph = helper.make_graph(
        nodes, "group", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(value, np.float32), name)
         for name, value in constants.items() if name in used])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


class Copy:
    """numpy.copyto() into memory that was written before."""

    def __init__(self, source):
        import numpy as np

        self.source = source
        self.target = np.zeros_like(source)

    def run(self):
        import numpy as np

        np.copyto(self.target, self.source)


class BoundOnnxRuntime:
    """A session of ONNX Runtime with bound memory."""

    def __init__(self, runtime, inputs, output):
        import onnxruntime

        self.session = runtime.session
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_ortvalue_input(
                name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        self.output = onnxruntime.OrtValue.ortvalue_from_numpy(output)
        self.binding.bind_ortvalue_output("y", self.output)

    def run(self):
        self.session.run_with_iobinding(self.binding)
        return [self.output.numpy()]


class BoundOpenVino:
    """A request of OpenVINO whose results are views of its own memory."""

    def __init__(self, runtime):
        self.runtime = runtime

    def run(self):
        results = self.runtime.request.infer(
            self.runtime.inputs, share_inputs=True, share_outputs=True)
        return [results[port] for port in self.runtime.outputs]


def load(path, inputs, threads, is_bound):
    """Name -> an object whose run() computes the model once."""
    import numpy as np
    import runtimes

    backends = {"jit": "jit", "native": "native", "oneDNN": "onednn"}
    loaded = {name: runtimes.Tessera(path, inputs, threads, [backend, "reference"])
              for name, backend in backends.items()}
    onnx_runtime = runtimes.OnnxRuntime(path, inputs, threads)
    openvino = runtimes.OpenVino(path, inputs, threads)
    if is_bound:
        for runtime in loaded.values():
            runtime.executor.bind_output("y", np.zeros_like(inputs["x"]))
        onnx_runtime = BoundOnnxRuntime(onnx_runtime, inputs, np.zeros_like(inputs["x"]))
        openvino = BoundOpenVino(openvino)
    return {**loaded, "ONNX Runtime": onnx_runtime, "OpenVINO": openvino}


def check(loaded):
    import numpy as np
    import runtimes

    expected = np.array(loaded["ONNX Runtime"].run()[0])
    for name, runtime in loaded.items():
        difference = runtimes.explain_difference([expected], [np.asarray(runtime.run()[0])])
        if difference:
            sys.exit(f"fused: {name} differs from ONNX Runtime: {difference}")


def median_times(loaded, seconds):
    """Name -> median microseconds of a run."""
    import measure_process

    for runtime in loaded.values():
        measure_process.warm_up(runtime)
    times = measure_process.measure(loaded, seconds, BLOCK_SECONDS, seed=0)
    return {name: 1e6 * statistics.median(of_name) for name, of_name in times.items()}


def cases():
    """(name, rows, shape)"""
    for name, rows in rows_of_groups().items():
        for size, elements in SIZES.items():
            yield f"{name}, {size}", rows, [elements // COLUMNS, COLUMNS]
    for elements in (1, 1024):
        yield f"{CHAIN} in a row, {elements}", chain_rows(), [elements]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/fused.py --threads 2 --memory bound")
    parser.add_argument("--threads", type=int, default=1, help="(default: 1)")
    parser.add_argument("--seconds", type=float, default=0.3,
                        help="for each runtime of a row (default: 0.3)")
    parser.add_argument("--memory", choices=["new", "bound"], default="new",
                        help="of the outputs (default: new)")
    parser.add_argument("--only", default="", help="rows whose names begin so")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    module_dir = compare.ROOT / "build/release/python"
    compare.enter_environment(module_dir)
    sys.path.insert(0, str(module_dir))
    import numpy as np
    import openvino  # noqa: F401  its copy of oneTBB is the newest, and is used by all

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for name, nodes, shape in cases():
            if not name.startswith(arguments.only):
                continue
            save_model(path, nodes, shape)
            x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            loaded = load(path, {"x": x}, arguments.threads, arguments.memory == "bound")
            check(loaded)
            loaded["memcpy"] = Copy(x)
            rows.append({"row": name, **median_times(loaded, arguments.seconds)})
            if not arguments.json:
                if len(rows) == 1:
                    print("| group | " + " | ".join(list(rows[0])[1:]) + " |")
                    print("|---" * len(rows[0]) + "|")
                values = [f"{value:,.1f}" for value in list(rows[-1].values())[1:]]
                print(f"| {name} | " + " | ".join(values) + " |", flush=True)
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "memory": arguments.memory,
                          "rows_us": rows}, indent=2))


if __name__ == "__main__":
    main()
