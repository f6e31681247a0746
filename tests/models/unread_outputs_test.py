"""Outputs that a model names and nothing reads: networks from PyTorch have them at each LSTM and
GRU, and models that use only the indices of a TopK leave its values unread. Measured kernels write
them too."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto
from small_models import model_of, node, normal, tensor_type

LENGTH, BATCH, SIZE, HIDDEN = 7, 2, 5, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
NUMPY_TYPES = {TensorProto.FLOAT: np.float32, TensorProto.INT64: np.int64}


def recurrence(op: str, outputs: list, read: list) -> tuple:
    random = np.random.default_rng(0)
    lines = GATES[op] * HIDDEN
    nodes = [node(op, "x w r", outputs, hidden_size=HIDDEN, direction="bidirectional")]
    constants = {"w": 0.5 * normal(random, 2, lines, SIZE),
                 "r": 0.5 * normal(random, 2, lines, HIDDEN)}
    return nodes, {"x": [LENGTH, BATCH, SIZE]}, dict.fromkeys(read, TensorProto.FLOAT), constants


def top(read: str) -> tuple:
    kind = TensorProto.INT64 if read == "indices" else TensorProto.FLOAT
    return [node("TopK", "x k", "values indices")], {"x": [4, 50]}, {read: kind}, {"k": [3]}


def split() -> tuple:
    nodes = [node("Split", "x", "a b c", axis=1), node("Relu", "b")]
    return nodes, {"x": [4, 30]}, {"y": TensorProto.FLOAT}, {}


def pool() -> tuple:
    nodes = [node("MaxPool", "x", "y indices", kernel_shape=[2, 2])]
    return nodes, {"x": [1, 3, 8, 8]}, {"y": TensorProto.FLOAT}, {}


MODELS = {
    "lstm": recurrence("LSTM", ["y", "h", "c"], ["y"]),
    "lstm, last cell state": recurrence("LSTM", ["y", "h", "c"], ["c"]),
    "lstm, last output": recurrence("LSTM", ["y", "h", "c"], ["h"]),
    "gru": recurrence("GRU", ["y", "h"], ["y"]),
    "gru, last output": recurrence("GRU", ["y", "h"], ["h"]),
    "rnn": recurrence("RNN", ["y", "h"], ["y"]),
    "top, indices": top("indices"),
    "top, values": top("values"),
    "split": split(),
    "pool": pool(),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_measured_like_onnx_runtime(tessera, name, threads):
    nodes, inputs, outputs, constants = MODELS[name]
    types = {key: tensor_type(kind, None) for key, kind in outputs.items()}
    model = model_of(nodes, inputs, types, constants, opset=14)
    random = np.random.default_rng(1)
    fed = {key: random.normal(0, 1, dims).astype(np.float32) for key, dims in inputs.items()}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = dict(zip(outputs, session.run(list(outputs), fed), strict=True))
    executor = tessera.load(model.SerializeToString()).bind(optimize=True, threads=threads)
    for (key, kind), found in zip(outputs.items(), executor.run(fed), strict=True):
        assert found.dtype == NUMPY_TYPES[kind]
        np.testing.assert_allclose(found, expected[key], rtol=1e-4, atol=1e-5)
