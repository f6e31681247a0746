#!/usr/bin/env bash
# onnx.reference does not read the input sequence_lens of RNN, GRU and LSTM: it computes all steps of
# every sequence, and says nothing.
#
# The guess: the reference evaluator follows the standard here as elsewhere. ONNX says that
# sequence_lens gives the lengths of the sequences in a batch; outputs behind the end of a sequence
# are zero, and Y_h is the state at its last step.
#
# ONNX Runtime computes that. A comparison of a padded batch with the evaluator rejects right
# results and accepts wrong ones. None of ONNX's test models for these operators gives lengths.
#
#   expected: onnx.reference agrees with ONNX Runtime for lengths 5, 2, 3
#   seen:     onnx 1.23.0: it agrees without sequence_lens, and gives the same results with it
#
# usage: findings/onnx_reference_sequence_lens.sh   Ends with 0 if the evaluator still behaves as stated.
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

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 2
random = np.random.default_rng(1)
as_stated = True
for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    values = {"x": random.standard_normal((STEPS, BATCH, INPUTS)),
              "w": random.standard_normal((1, gates * HIDDEN, INPUTS)),
              "r": random.standard_normal((1, gates * HIDDEN, HIDDEN))}
    values = {name: array.astype(np.float32) for name, array in values.items()}
    results = {}
    for lengths in (None, (5, 2, 3)):
        feeds = dict(values)
        if lengths:
            feeds["lengths"] = np.array(lengths, np.int32)
        node = helper.make_node(op, ["x", "w", "r", *(["", "lengths"] if lengths else [])], ["y", "h"],
                                hidden_size=HIDDEN)
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in feeds.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yh"])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        results[lengths] = (ReferenceEvaluator(model).run(None, feeds), session.run(None, feeds))

    def agree(one, other):
        return all(np.allclose(*pair, atol=1e-5) for pair in zip(one, other))

    without, given = results[None], results[(5, 2, 3)]
    row = {"agrees without": agree(*without), "agrees with": agree(*given),
           "same with and without": agree(without[0], given[0])}
    print(op, row)
    as_stated &= list(row.values()) == [True, False, True]
print("onnx", onnx.__version__)
sys.exit(0 if as_stated else 1)
PYTHON
