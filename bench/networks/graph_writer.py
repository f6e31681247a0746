"""Writes ONNX graphs node by node, for models that benchmarks and tests make themselves."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def value_info(name, shape, element=np.float32):
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(element)), shape)


def model_of(nodes, inputs, outputs, constants=None, opset=17):
    """The model of these nodes. `inputs` and `outputs`: name -> shape, of float32; an output's may
    be None. `constants`: name -> array."""
    graph = helper.make_graph(
        nodes, "model", [value_info(*pair) for pair in inputs.items()],
        [value_info(*pair) for pair in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name)
         for name, array in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


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
        elements = {**dict.fromkeys(inputs, self.element), **(input_elements or {})}
        self.nodes.append(helper.make_node("Identity", [output], ["y"], name="y"))
        graph = helper.make_graph(
            self.nodes, "model",
            [value_info(name, shape, elements[name]) for name, shape in inputs.items()],
            [value_info("y", None, self.element)], self.constants)
        return onnx.shape_inference.infer_shapes(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9))


def rotate_half(writer, x, width):
    """The second half of the last dimension, negated, before the first half."""
    first = writer.slice(x, 0, width // 2)
    second = writer.slice(x, width // 2, 2 ** 63 - 1)
    return writer.op("Concat", writer.op("Neg", second), first, axis=-1)
