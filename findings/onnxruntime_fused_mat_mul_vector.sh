#!/usr/bin/env bash
# FusedMatMul of com.microsoft with transA, a matrix and a vector: ONNX Runtime multiplies by the
# numbers of the matrix as they lie in memory, without transposing them.
#
# The guess: the product of the transposed matrix, as of two matrices, whose last axes transA
# transposes; or an error, if vectors were not meant.
#
# Whoever fuses a Transpose into a product by a vector (a linear layer for one sample, attention
# weights of one query) gets other numbers of the right shape.
#
#   matrix:   [[0, 1, 2], [3, 4, 5]], vector [1, 10]
#   expected: [30, 41, 52]
#   seen:     onnxruntime 1.31.1: [10, 32, 54]; with the vector as a matrix of one column, as expected
#
# usage: findings/onnxruntime_fused_mat_mul_vector.sh   Ends with 0 if it still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.0 onnxruntime==1.31.1 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def product(vector_shape):
    graph = helper.make_graph(
        [helper.make_node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft", transA=1)],
        "graph", [helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 3]),
                  helper.make_tensor_value_info("b", TensorProto.FLOAT, vector_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    feeds = {"a": np.arange(6, dtype=np.float32).reshape(2, 3),
             "b": np.array([1, 10], np.float32).reshape(vector_shape)}
    return session.run(None, feeds)[0].ravel().tolist()


seen = {"a vector": product([2]), "a matrix of one column": product([2, 1])}
print(seen)
print("onnxruntime", onnxruntime.__version__)
sys.exit(0 if seen == {"a vector": [10, 32, 54], "a matrix of one column": [30, 41, 52]} else 1)
PYTHON
