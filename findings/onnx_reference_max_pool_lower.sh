#!/usr/bin/env bash
# onnx.reference computes MaxPool with auto_pad=SAME_LOWER and strides above 1 as another operator:
# its result has the quotient of size and stride rounded down, and the padding is split as for
# SAME_UPPER.
#
# The guess: SAME_LOWER and SAME_UPPER give results of the same size, ceil(size / stride), and differ
# only in the side that has the larger half of the padding, as ONNX states. AveragePool of the same
# evaluator does that.
#
#   expected: onnx.reference agrees with ONNX Runtime for both, on axes of 7, 8, 9 and 10 elements
#   seen:     onnx 1.23.0: SAME_UPPER agrees; SAME_LOWER has 3, 4, 4 and 5 elements for 4, 4, 5 and 5,
#             and where the sizes are equal, the maxima are those of other windows
#
# usage: findings/onnx_reference_max_pool_lower.sh   Ends with 0 if the evaluator still behaves as
# stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.0 onnxruntime==1.31.1 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def sizes_and_agreement(auto_pad, size):
    node = helper.make_node("MaxPool", ["x"], ["y"], auto_pad=auto_pad, kernel_shape=[3, 3],
                            strides=[2, 2])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    x = np.random.default_rng(1).permutation(size * size).reshape(1, 1, size, size)
    x = x.astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    found, expected = ReferenceEvaluator(model).run(None, {"x": x})[0], session.run(None, {"x": x})[0]
    return found.shape[2], expected.shape[2], np.array_equal(found, expected)


as_stated = True
for size in (7, 8, 9, 10):
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        found, expected, agree = sizes_and_agreement(auto_pad, size)
        print(f"{auto_pad}, {size} elements: {found} by onnx.reference, {expected} by ONNX Runtime, "
              f"agree: {agree}")
        is_lower = auto_pad == "SAME_LOWER"
        as_stated &= expected == -(-size // 2) and found == (size // 2 if is_lower else expected)
        as_stated &= agree == (not is_lower)
print("onnx", onnx.__version__)
sys.exit(0 if as_stated else 1)
PYTHON
