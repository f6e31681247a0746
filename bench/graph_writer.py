"""Writes ONNX graphs node by node, for models that benchmarks and tests make themselves."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


class GraphWriter:
    """Collects nodes. A number or an array among the inputs of a node becomes a constant."""

    def __init__(self, element=np.float32):
        self.element = element
        self.nodes, self.constants = [], []

    def op(self, name, *inputs, outputs=1, **attributes):
        made = [f"{name}_{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(name, [self.value(each) for each in inputs], made,
                                           name=made[0], **attributes))
        return made[0] if outputs == 1 else made

    def value(self, given):
        if isinstance(given, str):
            return given
        array = np.asarray(given)
        return self.exact(array.astype(self.element) if array.dtype.kind == "f" else array)

    def exact(self, array):
        """A constant with the type of its own."""
        self.constants.append(numpy_helper.from_array(np.asarray(array),
                                                      f"c{len(self.constants)}"))
        return self.constants[-1].name

    def slice(self, x, start, end, axis=-1, step=1):
        return self.op("Slice", x, [start], [end], [axis], [step])

    def model(self, inputs, output, opset=17, input_elements=None):
        """The model with one output, y. `input_elements` has the types of inputs that differ from
        the writer's."""
        kinds = {name: helper.np_dtype_to_tensor_dtype(
            np.dtype((input_elements or {}).get(name, self.element))) for name in inputs}
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.element))
        self.nodes.append(helper.make_node("Identity", [output], ["y"], name="y"))
        graph = helper.make_graph(
            self.nodes, "model",
            [helper.make_tensor_value_info(name, kinds[name], shape)
             for name, shape in inputs.items()],
            [helper.make_tensor_value_info("y", kind, None)], self.constants)
        return onnx.shape_inference.infer_shapes(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9))


def rotate_half(writer, x, width):
    """The second half of the last dimension, negated, before the first half."""
    first = writer.slice(x, 0, width // 2)
    second = writer.slice(x, width // 2, 2 ** 63 - 1)
    return writer.op("Concat", writer.op("Neg", second), first, axis=-1)
