#!/usr/bin/env bash
# OpenVINO uses the slopes of ONNX's PRelu along another axis than ONNX says: slopes of one dimension
# along axis 1 instead of the last one, and slopes along axis 1 behind a product of four dimensions
# along the product's columns.
#
# The guess: slopes broadcast to the input from the right, as ONNX says, and what cannot be fused into
# a product is computed on its own.
#
# OpenVINO's own PReLU takes slopes of one dimension for those of the channels, if their number is that
# of axis 1; the reader of ONNX hands them over as they are. And the CPU plug-in fuses a PReLU into a
# product before it, takes axis 1 for the columns, and uses the slopes of heads for columns. If both
# axes have the same length the results are wrong without a message, else they are right or
# compile_model() raises "data size: 9 OC: 4". ONNX's test models have other lengths, so they do not
# show it. Precision is float32 throughout.
#
#   expected: all networks are compiled and agree with ONNX Runtime
#   seen:     openvino 2026.4.1: as stated in the table ROWS
#
# usage: findings/openvino_prelu_slopes.sh   Ends with 0 if OpenVINO still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openvino==2026.4.1 onnx==1.23.0 onnxruntime==1.31.1 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

ROWS = (  # node before the PRelu, input, columns, slopes, observed result
    ("Tanh", (1, 9, 31, 9), 9, (9,), "differs"),
    ("Tanh", (1, 9, 31, 9), 9, (1, 1, 9), "agrees"),
    ("Tanh", (1, 9, 31, 4), 4, (4,), "agrees"),
    ("MatMul", (1, 9, 31, 9), 9, (9, 1, 1), "differs"),
    ("MatMul", (1, 9, 31, 9), 4, (9, 1, 1), "refused"),
    ("MatMul", (9, 31, 9), 4, (9, 1, 1), "agrees"),
)
random = np.random.default_rng(1)
as_stated = True
for first, shape, columns, slopes, stated in ROWS:
    constants = [numpy_helper.from_array(random.standard_normal(dims).astype(np.float32), name)
                 for name, dims in (("w", (shape[-1], columns)), ("s", slopes))]
    graph = helper.make_graph(
        [helper.make_node(first, ["x", "w"] if first == "MatMul" else ["x"], ["m"]),
         helper.make_node("PRelu", ["m", "s"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (*shape[:-1], columns))], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8).SerializeToString()
    x = random.standard_normal(shape).astype(np.float32)
    right = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    core = openvino.Core()
    try:
        compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        error = np.abs(compiled(x)[0] - right).max()
        seen = "agrees" if error < 1e-4 else f"differs by {error:.3g} of {np.abs(right).max():.3g}"
    except RuntimeError as error:
        seen = "refused: " + str(error).strip().splitlines()[-1]
    print(f"{first} {shape}, {columns} columns, slopes {slopes}: {seen}")
    as_stated &= seen.startswith(stated)
print("openvino", openvino.get_version())
sys.exit(0 if as_stated else 1)
PYTHON
