#!/usr/bin/env bash
# ONNX Runtime's Sigmoid of float32 loses all digits of small results: it is 0 from -18 on, and at -16
# it is about half of the value, less than at -17.
#
# The guess: Sigmoid is 1 / (1 + exp(-x)), so its relative error is some units in the last place as
# long as the result is a normal number, that is down to about -87; and it never falls where x grows.
#
# A detector whose scores are all near 0 (most pixels of a picture without text) so gets scores that
# are 0 or in the wrong order; comparing runtimes by relative errors finds differences of 100 %.
# With float64 the absolute error is about 1e-16, as of 1 minus a number: the result is 0 at -40.
#
#   expected: relative errors below 1e-6; ascending results
#   seen:     onnxruntime 1.31.1: 1.1 % at -13, 47 % at -16, 100 % (0) at -18 and below; the result at
#             -16 is smaller than at -16.5 and -17. float64: 3e-8 at -20, 100 % at -40
#
# usage: findings/onnxruntime_sigmoid_tail.sh   Ends with 0 if ONNX Runtime still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxruntime==1.31.1 onnx==1.23.0 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

X = np.array([-40, -20, -18, -17, -16.5, -16, -14, -13, -5, 0], np.float32)


def sigmoid(element, x):
    graph = helper.make_graph(
        [helper.make_node("Sigmoid", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", element, [None])],
        [helper.make_tensor_value_info("y", element, [None])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


exact = 1 / (1 + np.exp(-X.astype(np.float64)))
found = sigmoid(TensorProto.FLOAT, X)
errors = dict(zip(X.tolist(), np.abs(found - exact) / exact))
for x, y, error in zip(X, found, errors.values()):
    print(f"{x:6.1f} {y:.7e} {100 * error:8.3f} %")
of_double = np.abs(sigmoid(TensorProto.DOUBLE, X.astype(np.float64)) - exact) / exact
double_errors = dict(zip(X.tolist(), of_double))
print(f"float64: {double_errors[-20]:.1e} at -20, {double_errors[-40]:.1e} at -40")
print("onnxruntime", onnxruntime.__version__)
as_stated = (errors[-18] == errors[-20] == errors[-40] == 1 and errors[-16] > 0.3 and
             errors[-13] > 0.005 and errors[-5] < 1e-4 and
             found[X == -16][0] < found[X == -17][0] and double_errors[-40] == 1 and
             1e-9 < double_errors[-20] < 1e-6)
sys.exit(0 if as_stated else 1)
PYTHON
