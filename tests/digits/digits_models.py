"""Models of a few nodes, of which tests of digits look at the output y."""

import numpy as np
from onnx import TensorProto
from small_models import model_bytes, node, tensor_type

TYPES = {np.dtype(name): number for name, number in (
    ("float32", TensorProto.FLOAT), ("float64", TensorProto.DOUBLE), ("float16", TensorProto.FLOAT16),
    ("int32", TensorProto.INT32), ("int64", TensorProto.INT64), ("uint32", TensorProto.UINT32),
    ("uint64", TensorProto.UINT64))}


def op(name, inputs=("x",), output="y", **attributes):
    return name, list(inputs), output, attributes


def make_model(nodes, inputs, constants=(), output=TensorProto.FLOAT, opset=24):
    return model_bytes([node(name, reads, [writes], f"node{index}", **attributes)
                        for index, (name, reads, writes, attributes) in enumerate(nodes)],
                       {name: tensor_type(TYPES[value.dtype], value.shape)
                        for name, value in inputs.items()}, {"y": tensor_type(output, None)},
                       dict(constants), opset=opset, ir_version=10)
