#!/usr/bin/env bash
# OpenVINO computes (x + a) + b with constants a and b as x + (a + b), and (x * a) * b as x * (a * b).
# A small sum loses its digits, and a finite product becomes infinite or zero.
#
# The guess: with the precision hint f32, two operators in a row are each rounded once to float32, in
# the order of the model, as NumPy does; only constants among themselves are computed before.
#
# Sums are joined through Neg, Identity and factors, products through Neg; a Transpose or Reshape
# between prevents both, and so does a second reader. It also multiplies the constant of a Mul into the
# weights of a Conv or MatMul beside it, where the same happens.
#
#   expected: (1e6 - 1e6) - 0.1 is -0.1; 1e-30 * 1e30 * 1e30 is 1e30
#   seen:     openvino 2026.4.1: -0.125; infinity
#
# usage: findings/openvino_joined_constants.sh   Ends with 0 if OpenVINO still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openvino==2026.4.1 onnx==1.23.0 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

SHAPE = (1, 8, 6, 8)
CONSTANTS = {"million": 1e6, "tenth": 0.1, "huge": 1e30, "weights": np.full((8, 8, 1, 1), 1e30)}
ROWS = (  # x; nodes: operator, inputs, output; the right result; whether OpenVINO gives another
    (1e6, [("Sub", "x million", "s"), ("Sub", "s tenth", "y")], -0.1, True),
    (1e6, [("Sub", "x million", "s"), ("Add", "s tenth", "y")], 0.1, True),
    (1e6, [("Sub", "x million", "s"), ("Neg", "s", "n"), ("Sub", "n tenth", "y")], -0.1, True),
    (1e6, [("Sub", "x million", "s"), ("Abs", "s", "n"), ("Sub", "n tenth", "y")], -0.1, False),
    (1e6, [("Sub", "x million", "s"), ("Transpose", "s", "t"), ("Sub", "t tenth", "y")], -0.1, False),
    (1e-30, [("Mul", "x huge", "p"), ("Mul", "p huge", "y")], 1e30, True),
    (1e-30, [("Mul", "x huge", "p"), ("Transpose", "p", "t"), ("Mul", "t huge", "y")], 1e30, False),
    (1e-30, [("Conv", "x weights", "c"), ("Mul", "c huge", "y")], 8e30, True),
)
as_stated = True
for start, row, exact, is_lost in ROWS:
    nodes = [helper.make_node(op, inputs.split(), [output]) for op, inputs, output in row]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value, np.float32), name)
         for name, value in CONSTANTS.items() if name in read])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                  {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(np.full(SHAPE, start, np.float32))[0].flat[0]
    print(" ".join(op for op, _, _ in row), found, "where", exact, "is right")
    as_stated &= bool(abs(found / exact - 1) > 1e-3) == is_lost
print("openvino", openvino.get_version())
sys.exit(0 if as_stated else 1)
PYTHON
