"""Models of a few nodes, of which tests of digits look at the output y."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(name): number for name, number in (
    ("float32", TensorProto.FLOAT), ("float64", TensorProto.DOUBLE), ("float16", TensorProto.FLOAT16),
    ("int32", TensorProto.INT32), ("int64", TensorProto.INT64), ("uint32", TensorProto.UINT32),
    ("uint64", TensorProto.UINT64))}


def op(name, inputs=("x",), output="y", **attributes):
    return name, list(inputs), output, attributes


def make_model(nodes, inputs, constants=(), output=TensorProto.FLOAT, opset=24):
    graph = helper.make_graph(
        [helper.make_node(name, reads, [writes], f"node{index}", **attributes)
         for index, (name, reads, writes, attributes) in enumerate(nodes)],
        "digits",
        [helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape)
         for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=10).SerializeToString()
