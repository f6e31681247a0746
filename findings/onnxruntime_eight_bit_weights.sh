#!/usr/bin/env bash
# MatMulNBits of com.microsoft with one row, weights of 8 bits, and accuracy_level left at its
# default: ONNX Runtime takes far longer than with weights of 4 bits, of which it reads half as many
# bytes, and far longer than with accuracy_level 4, which only changes how sums are computed.
#
# The guess: about twice the time of 4 bits, because a product with one row is bound by memory, and
# two to four times that of accuracy_level 4.
#
# Whoever quantises a decoder to 8 bits, for the sake of accuracy, and leaves the attribute out as
# exporters may, gets a decoder that is many times slower than in float32.
#
#   expected: 4 bits / 8 bits / 8 bits with accuracy_level 4, in the ratio 1 : 2 : 1
#   seen:     onnxruntime 1.31.1, one thread, 2048 x 2048, blocks of 32: 8 bits take at least 10 times
#             as long as 4 bits, and at least 10 times as long as with accuracy_level 4
#
# usage: findings/onnxruntime_eight_bit_weights.sh   Ends with 0 if it still behaves as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.0 onnxruntime==1.31.1 numpy==2.4.6

"$folder/venv/bin/python" - <<'PYTHON'
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SIZE, BLOCK = 2048, 32
RANDOM = np.random.default_rng(0)


def seconds(bits, **level):
    blocks = SIZE // BLOCK
    weights = RANDOM.integers(0, 256, (SIZE, blocks, BLOCK * bits // 8), dtype=np.uint8)
    scales = RANDOM.uniform(0.01, 0.02, SIZE * blocks).astype(np.float32)
    node = helper.make_node("MatMulNBits", ["a", "b", "scales"], ["y"], domain="com.microsoft",
                            K=SIZE, N=SIZE, bits=bits, block_size=BLOCK, **level)
    graph = helper.make_graph(
        [node], "graph", [helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, SIZE])],
        [numpy_helper.from_array(weights, "b"), numpy_helper.from_array(scales, "scales")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    feeds = {"a": RANDOM.standard_normal((1, SIZE)).astype(np.float32)}
    times = []
    for _ in range(15):
        start = time.process_time()
        session.run(None, feeds)
        times.append(time.process_time() - start)
    return min(times)


four, eight, eight_in_bytes = seconds(4), seconds(8), seconds(8, accuracy_level=4)
print(f"ms: 4 bits {1e3 * four:.2f}, 8 bits {1e3 * eight:.2f}, "
      f"8 bits with accuracy_level 4 {1e3 * eight_in_bytes:.2f}")
print("onnxruntime", onnxruntime.__version__)
sys.exit(0 if eight > 10 * four and eight > 10 * eight_in_bytes else 1)
PYTHON
