#!/usr/bin/env bash
# A product along an axis of 0 elements, one of whose operands is transposed: ONNX Runtime joins both
# nodes and returns memory that nobody wrote. A sum of an empty list along axis -1 with
# keepdims: ONNX Runtime returns an empty list, although it has inferred one element.
#
# The guess: zeros, and [0], as NumPy and the reference evaluator of ONNX give. ONNX Runtime gives
# zeros too if graph optimisations are off.
#
# Models of open lengths meet both with an input of length 0; the first gives other numbers in each
# run, and no error.
#
#   expected: a product of zeros; a sum of dimensions [1]
#   seen:     onnxruntime 1.31.1: what an earlier run left in the memory; dimensions [0]
#
# usage: findings/onnxruntime_sums_of_nothing.sh   Ends with 0 if both still behave as stated.
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


def run(nodes, x):
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", element, [None] * x.ndim)],
        [helper.make_tensor_value_info("y", element, [None] * x.ndim)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


product = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
           helper.make_node("MatMul", ["x", "t"], ["y"])]
empty = np.zeros((7, 8, 0), np.float32)
products = []
for _ in range(20):
    run(product, np.ones((7, 8, 5), np.float32))  # leaves memory that is not zero
    products.append(run(product, empty))
are_zeros = all((each == 0).all() for each in products)
sums = run([helper.make_node("Constant", [], ["axes"], value_ints=[-1]),
            helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)],
           np.zeros(0, np.int64))
print("products are zeros:", are_zeros, " dimensions of the sum:", list(sums.shape))
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
sys.exit(0 if not are_zeros and sums.shape == (0,) else 1)
PYTHON
