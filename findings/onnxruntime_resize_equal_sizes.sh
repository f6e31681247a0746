#!/usr/bin/env bash
# ONNX Runtime's Resize returns its input as it is wherever the rounded size of the output equals that
# of the input, although the scale that the model gives is not 1.
#
# The guess: an output element at i comes from the input at (i + 0.5) / scale - 0.5, as the standard
# says of half_pixel, so with scale 1.25 element 1 is 0.7, however many elements there are.
#
# A network that enlarges by 1.05 so behaves otherwise below 20 pixels than from 20 pixels on: its
# result jumps with the size of the image, and tests on small inputs say nothing about large ones.
# onnx.reference and the standard keep the scale.
#
#   expected: 0, 0.7, 1.5 for 0, 1, 2 with scale 1.25, as the first elements of longer inputs are
#   seen:     onnxruntime 1.31.1: 0, 1, 2 for three elements; 0, 0.7, 1.5, 2.3, 3 for four. With
#             scale 1.05, 19 elements come back as they are, and 20 do not. The same for cubic.
#
# usage: findings/onnxruntime_resize_equal_sizes.sh   Ends with 0 if ONNX Runtime still behaves as
# stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxruntime==1.31.1 onnx==1.23.0 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def resized(count, scale, mode):
    """What ONNX Runtime and onnx.reference make of 0, 1, 2, ..., of which there are `count`."""
    scales = numpy_helper.from_array(np.array([1, 1, scale, 1], np.float32), "scales")
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, None, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [scales])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    x = {"x": np.arange(count, dtype=np.float32).reshape(1, 1, count, 1)}
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, x)[0].ravel(), ReferenceEvaluator(model).run(None, x)[0].ravel()


as_stated = True
for count, scale, mode, is_copied in ((3, 1.25, "linear", True), (4, 1.25, "linear", False),
                                      (19, 1.05, "linear", True), (20, 1.05, "linear", False),
                                      (3, 1.25, "cubic", True)):
    found, reference = resized(count, scale, mode)
    copies = len(found) == count and np.array_equal(found, np.arange(count))
    print(f"{count} elements, scale {scale}, {mode}: {found[:5]}, reference {reference[:5]}")
    as_stated &= copies == is_copied and not np.array_equal(reference[:count], np.arange(count))
print("onnxruntime", onnxruntime.__version__)
sys.exit(0 if as_stated else 1)
PYTHON
