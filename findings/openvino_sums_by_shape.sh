#!/usr/bin/env bash
# The error of a sum of OpenVINO depends on the shape of the same numbers: [1, 1024] is added up in
# parts, [1024] and [1, 1024, 1, 1] one number after the other, with ten times the error.
#
# The guess: a reduction over all elements adds up the same memory in the same way, with any axes of
# length 1; sums of a thousand float32 numbers in SIMD lanes have an error of one or two units.
#
#   expected: errors of all shapes below 3 units in the last place, for 1,024 positive numbers
#   seen:     openvino 2026.4.1: below 3 for [1, 1024], [1024, 1], [1, 1024, 1] and [2, 8, 8, 8];
#             above 8 for [1024], [1, 1024, 1, 1], [1024, 1, 1] and [1, 256, 2, 2]
#
# usage: findings/openvino_sums_by_shape.sh   Ends with 0 if OpenVINO still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openvino==2026.4.1 onnx==1.23.0 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import openvino
from onnx import TensorProto, helper

ROWS = (((1, 1024), True), ((1024, 1), True), ((1, 1024, 1), True), ((2, 8, 8, 8), True),
        ((1024,), False), ((1, 1024, 1, 1), False), ((1024, 1, 1), False), ((1, 256, 2, 2), False))
random = np.random.default_rng(1)
as_stated = True
for shape, is_exact in ROWS:
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("ReduceSum", ["a"], ["y"], keepdims=0)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                  {"INFERENCE_PRECISION_HINT": "f32"})
    worst = 0.0
    for _ in range(300):
        x = random.standard_normal(shape).astype(np.float32)
        exact = np.abs(x.astype(np.float64)).sum()
        worst = max(worst, abs(float(compiled(x)[0]) - exact) / np.spacing(np.float32(exact)))
    print(list(shape), f"{worst:.1f}")
    as_stated &= worst < 3 if is_exact else worst > 8
print("openvino", openvino.get_version())
sys.exit(0 if as_stated else 1)
PYTHON
