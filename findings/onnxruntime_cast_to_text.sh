#!/usr/bin/env bash
# Cast of double to string in ONNX Runtime writes eight significant digits, those of a float32, so
# numbers that differ become the same text.
#
# The guess: 17 digits, or the shortest text that gives the same number again, as the reference
# evaluator of ONNX writes (NumPy's text). The standard asks for "plain floating-point
# representation", and names no loss.
#
# Keys of dictionaries, identifiers and times in seconds are doubles that reach string operators
# (LabelEncoder, Equal, Concat) by a Cast. In the other direction a text such as "1e3" becomes the
# integer 1, because what follows the first digits is ignored.
#
#   expected: 1700000000.25 -> "1700000000.25"; "1e3" -> 1000, or an error
#   seen:     onnxruntime 1.31.1: "1.7e+09", as for 1700000001.75; "1e3" -> 1 as int64
#
# usage: findings/onnxruntime_cast_to_text.sh   Ends with 0 if it still behaves as stated.
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


def cast_model(source, target):
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=target)], "graph",
        [helper.make_tensor_value_info("x", source, [None])],
        [helper.make_tensor_value_info("y", target, [None])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def cast(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].tolist()


to_text = cast_model(TensorProto.DOUBLE, TensorProto.STRING)
times = np.array([1700000000.25, 1700000001.75])
seen = {"text": cast(to_text, times),
        "integer": cast(cast_model(TensorProto.STRING, TensorProto.INT64),
                        np.array(["1e3"], dtype=object))}
print(seen)
print("onnx.reference:", ReferenceEvaluator(to_text).run(None, {"x": times})[0].tolist())
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
sys.exit(0 if seen == {"text": ["1.7e+09", "1.7e+09"], "integer": [1]} else 1)
PYTHON
