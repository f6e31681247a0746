"""Small models for the module tessera."""

import onnx
import pytest
from onnx import TensorProto, helper


@pytest.fixture
def save_model(tmp_path):
    """A function that writes a model with the given nodes and returns its path."""

    def save(nodes, inputs, outputs, initializers=(), name="model"):
        """`inputs` and `outputs`: (name, element type, shape) each."""
        graph = helper.make_graph(
            nodes,
            name,
            [helper.make_tensor_value_info(*value) for value in inputs],
            [helper.make_tensor_value_info(*value) for value in outputs],
            list(initializers),
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8
        )
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        return path

    return save


@pytest.fixture
def doubling_model(save_model):
    """y = x + x, float32, with an unknown first dimension."""
    return save_model(
        [helper.make_node("Add", ["x", "x"], ["y"], "doubling")],
        [("x", TensorProto.FLOAT, ["rows", 3])],
        [("y", TensorProto.FLOAT, ["rows", 3])],
    )
