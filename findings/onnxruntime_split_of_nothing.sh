#!/usr/bin/env bash
# StringSplit of an empty string at a delimiter: ONNX Runtime finds no piece, the reference evaluator
# of ONNX one, which is empty.
#
# The guess: one empty piece on both, as str.split(",") of Python gives, whose behaviour the operator
# has for all other strings (",a," has three pieces on both).
#
# The second output, the number of pieces, is used as a number of words or columns: it differs by one
# for each empty field, and the result is narrower if all strings are empty.
#
#   expected: 1 piece of "" at ","
#   seen:     onnxruntime 1.31.1: 0; onnx 1.23.0: 1
#
# usage: findings/onnxruntime_split_of_nothing.sh   Ends with 0 if both still behave as stated.
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

graph = helper.make_graph(
    [helper.make_node("StringSplit", ["x"], ["pieces", "count"], delimiter=",")], "graph",
    [helper.make_tensor_value_info("x", TensorProto.STRING, [None])],
    [helper.make_tensor_value_info("pieces", TensorProto.STRING, [None, None]),
     helper.make_tensor_value_info("count", TensorProto.INT64, [None])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
onnx.checker.check_model(model, full_check=True)
x = np.array([",a,", "b", ""], dtype=object)
session = onnxruntime.InferenceSession(model.SerializeToString(),
                                       providers=["CPUExecutionProvider"])
seen = {"onnxruntime": session.run(["count"], {"x": x})[0].tolist(),
        "onnx.reference": ReferenceEvaluator(model).run(["count"], {"x": x})[0].tolist()}
print("pieces:", seen)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
sys.exit(0 if seen == {"onnxruntime": [3, 1, 0], "onnx.reference": [3, 1, 1]} else 1)
PYTHON
