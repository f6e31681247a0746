#!/usr/bin/env bash
# A Loop with a number of iterations and no condition input: ONNX Runtime ends it when its body says
# so, and the reference evaluator of ONNX does not begin it.
#
# The guess: both run it as often as the number says. ONNX's text of Loop shows this form as a for
# loop over the trip count, in which the condition that the body computes is ignored.
#
# A model that is exported in this form computes something else on each of the three; comparing two
# of them finds a fault in the third one's place.
#
#   expected: 10 iterations on both
#   seen:     onnxruntime 1.31.1: 3, because the body gives "iteration < 2"; onnx 1.23.0: 0
#
# usage: findings/onnxruntime_loop_without_condition.sh   Ends with 0 if both still behave as stated.
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


def value(name, element, shape):
    return helper.make_tensor_value_info(name, element, shape)


def number(name, kind, content):
    return helper.make_tensor(name, kind, [], [content])


body = helper.make_graph(
    [helper.make_node("Less", ["i", "two"], ["goes_on"]),
     helper.make_node("Add", ["v", "one"], ["next"])],
    "body",
    [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
     value("v", TensorProto.FLOAT, [])],
    [value("goes_on", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [])])
graph = helper.make_graph(
    [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)], "graph",
    [value("count", TensorProto.INT64, []), value("x", TensorProto.FLOAT, [])],
    [value("y", TensorProto.FLOAT, [])],
    [number("one", TensorProto.FLOAT, 1.0), number("two", TensorProto.INT64, 2)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
feeds = {"count": np.array(10), "x": np.array(0, np.float32)}
session = onnxruntime.InferenceSession(model.SerializeToString(),
                                       providers=["CPUExecutionProvider"])
seen = {"onnxruntime": float(session.run(None, feeds)[0]),
        "onnx.reference": float(ReferenceEvaluator(model).run(None, feeds)[0])}
print("iterations:", seen)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
sys.exit(0 if seen == {"onnxruntime": 3.0, "onnx.reference": 0.0} else 1)
PYTHON
