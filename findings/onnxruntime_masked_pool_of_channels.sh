#!/usr/bin/env bash
# MaxpoolWithMask of com.microsoft takes a mask of the shape of its input. With several channels, ONNX
# Runtime applies to a channel the mask of another one.
#
# The guess: an element counts if its own mask is positive, in every channel. With one channel, it is
# so.
#
# The pool of a text whose padding differs from channel to channel silently takes the largest of
# elements that were masked.
#
#   expected: the pool of each channel is what the same channel gives alone
#   seen:     onnxruntime 1.31.1: channel 0 is right; later ones use the elements of the mask from
#             (channel * elements of a channel) % channels on, counted from the mask's beginning
#
# usage: findings/onnxruntime_masked_pool_of_channels.sh   Ends with 0 if it still behaves as stated.
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


def pool(x, mask):
    node = helper.make_node("MaxpoolWithMask", ["x", "m"], ["y"], domain="com.microsoft",
                            kernel_shape=[2, 2], strides=[2, 2])
    graph = helper.make_graph(
        [node], "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
         helper.make_tensor_value_info("m", TensorProto.INT32, mask.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)])
    model = helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                            helper.make_opsetid("com.microsoft", 1)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x, "m": mask})[0]


random = np.random.default_rng(1)
channels = 3
x = random.integers(1, 100, (1, channels, 4, 4)).astype(np.float32)
mask = random.integers(0, 2, x.shape).astype(np.int32)
mask[0, :, ::2, ::2] = 1  # each window has an element that counts
together = pool(x, mask)[0]
alone = [pool(x[:, at:at + 1], mask[:, at:at + 1])[0, 0] for at in range(channels)]
is_right = [bool((together[at] == alone[at]).all()) for at in range(channels)]
shifted = []
for at in range(channels):
    first = at * 16 % channels
    other = mask.reshape(-1)[first:first + 16].reshape(1, 1, 4, 4)
    shifted.append(bool((pool(x[:, at:at + 1], other)[0, 0] == together[at]).all()))
print("as its own mask says:", is_right, " as the mask from that place says:", shifted)
print("onnxruntime", onnxruntime.__version__)
sys.exit(0 if is_right[0] and not all(is_right) and all(shifted) else 1)
PYTHON
