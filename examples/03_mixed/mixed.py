#!/usr/bin/env python3
"""A model that no single library can run: convolutions before and after an op that only the plug-in of
examples/01_backend knows. This program creates, tunes, explains and runs it, and compares it with NumPy.

`Distance` is a codebook layer: for each pixel, the distances of its features from 16 learned vectors."""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDE = 96  # pixels
FEATURES = 32
CENTRES = 16
CLASSES = 10


def make_weights():
    generator = np.random.default_rng(7)

    def filters(outputs, inputs):
        scale = np.sqrt(2 / (9 * inputs))
        return (scale * generator.standard_normal((outputs, inputs, 3, 3))).astype(np.float32)

    return {"filter1": filters(FEATURES, 3), "filter2": filters(FEATURES, FEATURES),
            "centres": generator.standard_normal((CENTRES, FEATURES)).astype(np.float32),
            "filter3": filters(FEATURES, CENTRES), "filter4": filters(CLASSES, FEATURES)}


def make_model(weights):
    make = helper.make_node
    around = {"pads": [1, 1, 1, 1]}
    nodes = [
        make("Conv", ["picture", "filter1"], ["c1"], "conv1", **around),
        make("Relu", ["c1"], ["r1"], "relu1"),
        make("Conv", ["r1", "filter2"], ["c2"], "conv2", **around),
        make("Relu", ["c2"], ["r2"], "relu2"),
        # One row for each pixel, in the form in which exporters write permute and reshape.
        make("Transpose", ["r2"], ["by_pixel"], "to_pixels", perm=[0, 2, 3, 1]),
        make("Reshape", ["by_pixel", "rows"], ["points"], "to_rows"),
        make("Distance", ["points", "centres"], ["distances"], "codebook", domain="org.example"),
        make("Reshape", ["distances", "pixels"], ["maps_last"], "from_rows"),
        make("Transpose", ["maps_last"], ["maps"], "to_maps", perm=[0, 3, 1, 2]),
        make("Conv", ["maps", "filter3"], ["c3"], "conv3", **around),
        make("Relu", ["c3"], ["r3"], "relu3"),
        make("Conv", ["r3", "filter4"], ["c4"], "conv4", **around),
        make("GlobalAveragePool", ["c4"], ["scores"], "pool"),
    ]
    constants = {**weights, "rows": np.array([-1, FEATURES], np.int64),
                 "pixels": np.array([1, SIDE, SIDE, CENTRES], np.int64)}
    graph = helper.make_graph(
        nodes, "codebook",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES, 1, 1])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def numpy_scores(picture, weights):
    """Computes the results of the model in float64."""

    def convolved(maps, filters):
        padded = np.pad(maps, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        return np.tensordot(filters.astype(np.float64), windows, axes=((1, 2, 3), (0, 3, 4)))

    features = np.maximum(convolved(picture[0], weights["filter1"]), 0)
    features = np.maximum(convolved(features, weights["filter2"]), 0)
    away = features[None] - weights["centres"][:, :, None, None]
    maps = np.sqrt((away ** 2).sum(axis=1))
    maps = np.maximum(convolved(maps, weights["filter3"]), 0)
    return convolved(maps, weights["filter4"]).mean(axis=(1, 2)).reshape(1, CLASSES, 1, 1)


def write_files(folder):
    weights = make_weights()
    picture = np.random.default_rng(8).standard_normal((1, 3, SIDE, SIDE)).astype(np.float32)
    onnx.save(make_model(weights), folder / "codebook.onnx")
    np.save(folder / "picture.npy", picture)
    np.save(folder / "scores.npy", numpy_scores(picture, weights).astype(np.float32))


def usable_libraries(tessera):
    """Returns names in the order of `tessera backends`, without OpenVINO: it computes large parts of a
    model as one step, and this example is about the steps."""
    done = subprocess.run([tessera, "backends", "--json"], stdout=subprocess.PIPE, check=True)
    return [backend["backend"] for backend in json.loads(done.stdout)["backends"]
            if backend["is_usable"] and backend["backend"] != "openvino"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: examples/03_mixed/mixed.py --backend /tmp/example/example_backend.so")
    parser.add_argument("--backend", type=pathlib.Path, required=True,
                        help="the plug-in, built as examples/01_backend/README.md says")
    parser.add_argument("--tessera", type=pathlib.Path, default=ROOT / "build/release/bin/tessera",
                        help="the program (default: that of the release build)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path,
                        help="for the model and the costs (default: one that is removed again)")
    arguments = parser.parse_args()
    for path in (arguments.backend, arguments.tessera):
        if not path.is_file():
            parser.error(f"there is no {path}: README.md beside this file says how to build it")

    backends = ",".join(["example", *usable_libraries(arguments.tessera)])

    def call(command, *options):
        words = [command, "codebook.onnx", "--backend-path", str(arguments.backend.resolve()),
                 "--backends", backends, "--threads", str(arguments.threads), *options]
        print("\n$ tessera " + shlex.join(words), flush=True)
        status = subprocess.run([arguments.tessera.resolve(), *words], cwd=folder, check=False)
        if status.returncode:
            sys.exit(status.returncode)

    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder)
        call("tune", "--output", "costs.json")
        call("explain", "--costs", "costs.json")
        call("run", "--costs", "costs.json", "--input", "picture=picture.npy",
             "--expect", "scores=scores.npy", "--rtol", "1e-3", "--atol", "1e-3")


if __name__ == "__main__":
    main()
