#!/usr/bin/env bash
# onnx.reference normalises with LRN as many channels as there are images in the batch: of one image
# only the first channel, and the others stay as they are.
#
# The guess: the reference evaluator computes LRN as ONNX states it, each channel by the squares of
# the channels around it. ONNX's test models for LRN would show an error of this size.
#
# ONNX Runtime computes that. The test models have as many images as channels (5 x 5 x 5 x 5), and
# with these the evaluator is right. With more images than channels it raises an error.
#
#   expected: onnx.reference agrees with ONNX Runtime for 1, 2 and 4 images of 4 channels
#   seen:     onnx 1.23.0: of each image the first 1, 2 and 4 channels agree; the others are the input
#
# usage: findings/onnx_reference_lrn.sh   Ends with 0 if the evaluator still behaves as stated.
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

CHANNELS = 4
random = np.random.default_rng(1)
node = helper.make_node("LRN", ["x"], ["y"], size=3, alpha=0.5)
as_stated = True
for images in (1, 2, CHANNELS):
    x = random.uniform(1, 2, (images, CHANNELS, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    found, expected = ReferenceEvaluator(model).run(None, {"x": x})[0], session.run(None, {"x": x})[0]
    agree = [bool(np.allclose(found[:, c], expected[:, c], rtol=1e-5)) for c in range(CHANNELS)]
    unchanged = [bool(np.allclose(found[:, c], x[:, c], rtol=1e-6)) for c in range(CHANNELS)]
    print(f"{images} images of {CHANNELS} channels: agree {agree}, unchanged {unchanged}")
    as_stated &= agree == [c < images for c in range(CHANNELS)] and unchanged == [not a for a in agree]
print("onnx", onnx.__version__)
sys.exit(0 if as_stated else 1)
PYTHON
