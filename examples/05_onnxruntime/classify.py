#!/usr/bin/env python3
"""A program for onnxruntime that runs on Tessera: only its import line was changed.

It classifies points of a plane with a small network, in batches of several sizes, and then many
times in the same memory (I/O binding).

example: PYTHONPATH=build/release/python .venv/bin/python examples/05_onnxruntime/classify.py"""

import numpy as np
import tessera.onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper


def make_model():
    """Whether a point is inside the unit circle: x*x + y*y - 1, by a matrix, and two classes."""
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["points", "points"], ["squares"]),
            helper.make_node("Gemm", ["squares", "weight", "bias"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
        ],
        "circle",
        [helper.make_tensor_value_info("points", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 2])],
        [
            numpy_helper.from_array(np.array([[9, -9], [9, -9]], np.float32), "weight"),
            numpy_helper.from_array(np.array([-9, 9], np.float32), "bias"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(make_model().SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    given, = session.get_inputs()
    print(f"input: {given.name}, {given.type}, {given.shape}; providers: {session.get_providers()}")

    random = np.random.default_rng(1)
    for count in (1, 4, 1000):
        points = random.uniform(-1.2, 1.2, (count, 2)).astype(np.float32)
        probabilities, = session.run(None, {given.name: points})
        inside = probabilities[:, 1] > 0.5
        right = inside == ((points**2).sum(axis=1) < 1)
        print(f"{count} points: {inside.sum()} inside, all right: {right.all()}")

    points = ort.OrtValue.ortvalue_from_shape_and_type([500, 2], np.float32)
    result = ort.OrtValue.ortvalue_from_shape_and_type([500, 2], np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input(given.name, points)
    binding.bind_ortvalue_output("probabilities", result)
    hits = 0
    for _ in range(100):
        points.update_inplace(random.uniform(-1, 1, (500, 2)).astype(np.float32))
        session.run_with_iobinding(binding)
        hits += int((result.numpy()[:, 1] > 0.5).sum())
    print(f"50000 points in one memory: pi is about {4 * hits / 50000:.2f}")

    try:
        session.run(None, {given.name: np.zeros((3, 5), np.float32)})
    except ort.capi.onnxruntime_pybind11_state.InvalidArgument:
        print("points with 5 coordinates are an InvalidArgument")


if __name__ == "__main__":
    main()
