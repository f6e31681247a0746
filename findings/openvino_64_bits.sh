#!/usr/bin/env bash
# OpenVINO's CPU plug-in computes models of double in float32 and those of int64 in int32, with inputs
# and outputs of the declared types and without a message: Neg of 1e300 is -3.4e38, and Neg of
# 2^40 + 1 is -1.
#
# The guess: an element type that a device does not have is refused, or at least computed in a wider
# one; the inference precision that users can ask for is about 16 and 32 bits.
#
# A program gets other numbers if it checks a network against a copy of itself in double, or if it
# passes identifiers, times in nanoseconds or hashes in int64 through a Gather or an Add.
#
#   expected: Neg of double and of int64 is exact
#   seen:     openvino 2026.4.1: rounded to float32, at most 3.4e38; cut to 32 bits
#
# usage: findings/openvino_64_bits.sh   Ends with 0 if OpenVINO still behaves as stated.
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


def negated(element, x):
    info = [helper.make_tensor_value_info(name, element, x.shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    core = openvino.Core()
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU")(x)[0]


x = np.array([1 / 3, 2.0**40 + 1, 1e300])
y = negated(TensorProto.DOUBLE, x)
largest = np.finfo(np.float32).max
in_float32 = -np.minimum(x, largest).astype(np.float32).astype(np.float64)
print("double", y, y.dtype)
as_stated = y.dtype == np.float64 and np.array_equal(y, in_float32)

x = np.array([2**31 - 1, 2**40 + 1], np.int64)
y = negated(TensorProto.INT64, x)
print("int64", y, y.dtype)
as_stated &= y.dtype == np.int64 and y.tolist() == [-(2**31 - 1), -1]
print("openvino", openvino.get_version())
sys.exit(0 if as_stated else 1)
PYTHON
