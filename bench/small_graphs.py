#!/usr/bin/env python3
"""Binds and runs many small graphs once each, with measured prices and without.

A program that always binds new graphs cannot spend seconds on each. Graphs with the same backends
share measurements, so only new layers cost time. The graphs are chains of nodes drawn from a few
layers with few shapes. Each half runs in a separate process without stored artifacts; the time
includes load, bind and one run of all graphs."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import compare

CHANNELS = 16
SIDE = 14
HIDDEN = 64
SEED = 11


def layers_of_images(rng, helper, numpy_helper):
    """Name -> a function that makes the layer's node, from an image to an image of the same shape.
    """
    import numpy as np

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) * 0.1).astype(np.float32), name)

    weights = {name: weight(name, CHANNELS, CHANNELS, side, side)
               for name, side in (("w1", 1), ("w3", 3))}
    weights["scale"] = weight("scale", 1, CHANNELS, 1, 1)

    def unary(op, **attributes):
        return lambda x, y: helper.make_node(op, [x], [y], **attributes)

    def convolution(name, side):
        return lambda x, y: helper.make_node("Conv", [x, name], [y], pads=[side // 2] * 4)

    return {
        "conv1": convolution("w1", 1), "conv3": convolution("w3", 3),
        "relu": unary("Relu"), "sigmoid": unary("Sigmoid"), "tanh": unary("Tanh"),
        "softmax": unary("Softmax", axis=1),
        "max_pool": unary("MaxPool", kernel_shape=[3, 3], pads=[1] * 4),
        "average_pool": unary("AveragePool", kernel_shape=[3, 3], pads=[1] * 4),
        "add": lambda x, y: helper.make_node("Add", [x, x], [y]),
        "mul": lambda x, y: helper.make_node("Mul", [x, "scale"], [y]),
    }, weights


def layers_of_rows(rng, helper, numpy_helper):
    """The same for rows of numbers."""
    import numpy as np

    weights = {name: numpy_helper.from_array(
        (rng.standard_normal(shape) * 0.1).astype(np.float32), name)
        for name, shape in (("square", (HIDDEN, HIDDEN)), ("bias", (HIDDEN,)), ("gain", (HIDDEN,)))}

    def unary(op, **attributes):
        return lambda x, y: helper.make_node(op, [x], [y], **attributes)

    return {
        "matmul": lambda x, y: helper.make_node("MatMul", [x, "square"], [y]),
        "gemm": lambda x, y: helper.make_node("Gemm", [x, "square", "bias"], [y]),
        "bias": lambda x, y: helper.make_node("Add", [x, "bias"], [y]),
        "gain": lambda x, y: helper.make_node("Mul", [x, "gain"], [y]),
        "normalise": lambda x, y: helper.make_node("LayerNormalization", [x, "gain", "bias"], [y]),
        "softmax": unary("Softmax", axis=-1), "relu": unary("Relu"), "tanh": unary("Tanh"),
        "sigmoid": unary("Sigmoid"), "abs": unary("Abs"),
    }, weights


def make_graphs(folder, count, nodes):
    """Files of `count` graphs with `nodes` nodes each, drawn from 20 layers."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(SEED)
    kinds = [(layers_of_images(rng, helper, numpy_helper), [1, CHANNELS, SIDE, SIDE]),
             (layers_of_rows(rng, helper, numpy_helper), [8, HIDDEN])]
    files = []
    for index in range(count):
        (layers, weights), shape = kinds[index % len(kinds)]
        names = list(layers)
        made = [layers[names[rng.integers(len(names))]](f"v{at}", f"v{at + 1}")
                for at in range(nodes)]
        read = {name for node in made for name in node.input}
        graph = helper.make_graph(
            made, f"graph{index}", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(f"v{nodes}", TensorProto.FLOAT, shape)],
            [weight for name, weight in weights.items() if name in read])
        files.append(folder / f"graph{index:03}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), files[-1])
    return files


def measure(task):
    """One process: the seconds for each graph, and what was measured for it."""
    sys.path.insert(0, task["module_dir"])
    import numpy as np
    import tessera

    backends = tessera.Backends()
    seconds, measured, tuning, phases = [], [], [], {}
    for file in task["files"]:
        started = time.perf_counter()
        model = tessera.load(file, backends=backends)
        executor = model.bind(threads=task["threads"], optimize=task["optimize"])
        value, = executor.inputs
        executor.run({value.name: np.ones(value.shape, np.float32)})
        seconds.append(time.perf_counter() - started)
        told = executor.plan().tuning
        measured.append(told.measured)
        tuning.append(told.seconds)
        for phase, spent in told.phases.items():
            phases[phase] = phases.get(phase, 0) + spent
    return {"seconds": seconds, "measured": measured, "tuning": tuning, "phases": phases}


def run_half(arguments, files, optimize):
    task = {"files": [str(file) for file in files], "threads": arguments.threads[0],
            "optimize": optimize, "module_dir": str(arguments.module_dir)}
    process = subprocess.run([sys.executable, __file__, "--process"], input=json.dumps(task),
                             capture_output=True, text=True, check=False, env={
                                 **os.environ, "TESSERA_CACHE_DIR": str(files[0].parent / "caches"),
                                 "XDG_CACHE_HOME": str(files[0].parent / "user")})
    if process.returncode != 0:
        compare.fail("a process failed: " + process.stderr.strip()[-300:])
    return json.loads(process.stdout)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/small_graphs.py --graphs 200 --threads 2")
    parser.add_argument("--graphs", type=compare.whole_number, default=200, metavar="N")
    parser.add_argument("--nodes", type=compare.whole_number, default=10, metavar="N")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[2], metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return compare.parse_with_cores(parser)


def main():
    if sys.argv[1:] == ["--process"]:
        json.dump(measure(json.load(sys.stdin)), sys.stdout)
        return 0
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    with tempfile.TemporaryDirectory() as folder:
        files = make_graphs(pathlib.Path(folder), arguments.graphs, arguments.nodes)
        plain = run_half(arguments, files, False)
        tuned = run_half(arguments, files, True)
    ratio = sum(tuned["seconds"]) / sum(plain["seconds"])
    if arguments.json:
        print(json.dumps({"plain": plain, "tuned": tuned, "ratio": ratio}))
        return 0
    new = sum(1 for count in tuned["measured"] if count > 0)
    print(f"{len(files)} graphs of {arguments.nodes} nodes, {arguments.threads[0]} threads; load, "
          "bind and one run of each")
    print(f"  without prices  {sum(plain['seconds']):8.3f} s")
    print(f"  measured first  {sum(tuned['seconds']):8.3f} s   {ratio:.2f} times")
    print(f"  {sum(tuned['measured'])} candidates and conversions measured, in {new} of the graphs; "
          f"the longest tuning took {1e3 * max(tuned['tuning']):.0f} ms")
    for phase, spent in sorted(tuned["phases"].items(), key=lambda entry: -entry[1]):
        print(f"    {phase:12}{spent:8.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
