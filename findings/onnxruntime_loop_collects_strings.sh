#!/usr/bin/env bash
# A Loop whose scan output is a string that its body passes on unchanged (Identity of an outer or a
# carried value): ONNX Runtime gives the string once, and empty strings for all later iterations.
#
# The guess: the string once for each iteration, as numbers are collected in the same place, and as
# strings are that the body computes (StringConcat).
#
# Labels or words that a model repeats for each row are lost without an error or a warning, with and
# without graph optimisation.
#
#   expected: ["word", "word", "word"] both times
#   seen:     onnxruntime 1.31.1: ["word", "", ""] passed on, ["word!", "word!", "word!"] computed
#
# usage: findings/onnxruntime_loop_collects_strings.sh   Ends with 0 if it still behaves as stated.
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

BOOL, INT64, STRING = TensorProto.BOOL, TensorProto.INT64, TensorProto.STRING


def value(name, element, shape=()):
    return helper.make_tensor_value_info(name, element, shape)


def collected(node, optimises):
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes_on"]), node], "body",
        [value("i", INT64), value("go", BOOL)], [value("goes_on", BOOL), value("seen", STRING)])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", ""], ["all"], body=body)], "graph",
        [value("count", INT64), value("x", STRING)], [value("all", STRING, [None])],
        [helper.make_tensor("mark", STRING, [], ["!"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    if not optimises:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"count": np.array(3), "x": np.array("word", object)})[0].tolist()


passed_on = helper.make_node("Identity", ["x"], ["seen"])
computed = helper.make_node("StringConcat", ["x", "mark"], ["seen"])
seen = [[collected(node, optimises) for node in (passed_on, computed)]
        for optimises in (True, False)]
print("optimised:", seen[0], "as it is:", seen[1])
print("onnxruntime", onnxruntime.__version__)
sys.exit(0 if seen == [[["word", "", ""], ["word!"] * 3]] * 2 else 1)
PYTHON
