"""The layers of networks as models of one node each, for bench/kernels.py.

A layer is an op with its attributes and the shapes of its operands. Layers for which all of these
are equal are merged. Small constants keep their values, because they are shapes, axes or exponents;
large constants are weights, whose values do not affect speed and are random."""

import dataclasses
import math

import numpy as np
import onnx
from onnx import external_data_helper, helper, numpy_helper

# Ops without a family move no data (Reshape, Dropout) or have no single kernel.
FAMILIES = {
    "convolution": ("Conv", "ConvTranspose"),
    "product": ("Gemm", "MatMul"),
    "recurrence": ("GRU", "LSTM", "RNN"),
    "elementwise": ("Abs", "Cast", "Clip", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish",
                    "LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Sigmoid", "Softplus", "Sqrt",
                    "Tanh"),
    "binary": ("Add", "Div", "Equal", "Max", "Min", "Mul", "PRelu", "Pow", "Sub", "Sum", "Where"),
    "pooling": ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"),
    "normalisation": ("BatchNormalization", "GroupNormalization", "InstanceNormalization",
                      "LayerNormalization", "LRN"),
    "softmax": ("LogSoftmax", "Softmax"),
    "reduction": ("ArgMax", "ArgMin", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin",
                  "ReduceSum"),
    "copies": ("Concat", "Expand", "Gather", "GatherElements", "Pad", "Slice", "Split", "Tile",
               "Transpose"),
    "resize": ("Resize", "Upsample"),
}
FAMILY_OF = {op: family for family, ops in FAMILIES.items() for op in ops}
# These ops read no more than they write.
PARTIAL_READERS = ("Gather", "GatherElements", "Slice")
KEPT_ELEMENTS = 64
SEED = 20240229


@dataclasses.dataclass(frozen=True)
class Operand:
    """An operand of a layer."""

    dtype: str
    shape: tuple
    is_constant: bool
    values: tuple | None  # of a constant that keeps its values

    @property
    def bytes(self):
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclasses.dataclass(frozen=True)
class Layer:
    """One op with everything that affects its speed; equal layers compare equal."""

    op: str
    opset: int
    attributes: tuple  # (name, value), by name
    operands: tuple  # an Operand each; None if omitted
    outputs: tuple  # (dtype, shape) each; None if nobody reads it

    @property
    def family(self):
        return FAMILY_OF[self.op]

    @property
    def kind(self):
        """Layers of one kind differ only in their sizes."""
        shapes = [operand and (len(operand.shape), operand.is_constant)
                  for operand in self.operands]
        attributes = [pair for pair in self.attributes if pair[0] not in ("split", "perm")]
        return str((self.op, attributes, shapes))

    @property
    def output_bytes(self):
        return sum(math.prod(shape) * np.dtype(dtype).itemsize
                   for dtype, shape in filter(None, self.outputs))

    @property
    def bytes(self):
        """The number of bytes read and written."""
        read = sum(operand.bytes for operand in self.operands if operand)
        if self.op in PARTIAL_READERS:
            read = min(read, self.output_bytes)
        return read + self.output_bytes

    @property
    def text(self):
        """A text for users: "MaxPool 1x64x56x56 kernel_shape 3 strides 2"."""
        shapes = [_shape_text(operand.shape) for operand in self.operands
                  if operand and len(operand.shape) > 1 and operand.values is None]
        words = [self.op, ", ".join(shapes)]
        words += [f"{name} {_value_text(value)}" for name, value in self.attributes
                  if name not in _UNTOLD and (name, value) not in _USUAL
                  and (name, set(np.atleast_1d(value).tolist())) not in _USUAL_ITEMS]
        return " ".join(words)


# Attributes that do not affect speed, or follow from the shapes.
_UNTOLD = ("alpha", "auto_pad", "beta", "bias", "epsilon", "momentum", "split")
_USUAL = (("group", 1), ("ceil_mode", 0), ("count_include_pad", 0), ("keepdims", 1))
_USUAL_ITEMS = (("dilations", {1}), ("strides", {1}), ("pads", {0}))


def _shape_text(shape):
    return "x".join(map(str, shape))


def _value_text(value):
    """If all numbers are equal, only one of them."""
    values = value if isinstance(value, tuple) else (value,)
    return ",".join(map(str, dict.fromkeys(values) if len(set(values)) == 1 else values))


def _frozen(value):
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, list) else value


def _elements(tensor, dtype, folder):
    """The elements of a tensor. Unlike onnx, this also reads weights from a file that is a link."""
    if not external_data_helper.uses_external_data(tensor):
        return numpy_helper.to_array(tensor)
    place = external_data_helper.ExternalDataInfo(tensor)
    return np.fromfile(folder / place.location, dtype, math.prod(tensor.dims),
                       offset=place.offset or 0)


def _constants(graph, folder):
    """Name -> (dtype, shape, values or None) of the constants in the file."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    found = {}
    for name, tensor in tensors.items():
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        values = None
        if math.prod(tensor.dims) <= KEPT_ELEMENTS:
            values = tuple(_elements(tensor, dtype, folder).ravel().tolist())
        found[name] = (dtype.name, tuple(tensor.dims), values)
    return found


def _value_types(graph):
    """Name -> (dtype, shape) of values with known sizes."""
    types = {}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        tensor = value.type.tensor_type
        dims = tensor.shape.dim
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name
            types[value.name] = (dtype, tuple(dim.dim_value for dim in dims))
    return types


def layers_of(path):
    """The layers of the model at `path`, each with its number of occurrences."""
    model = onnx.load(path, load_external_data=False)
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    types, constants = _value_types(graph), _constants(graph, path.parent)
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    counts = {}
    for node in graph.node:
        names = [name for name in node.input if name]
        if names and all(name in constants for name in names):
            # The node computes a weight, which is done once when the model is loaded.
            constants |= {name: (*types[name], None) for name in node.output if name in types}
            continue
        known = all(name in types or name in constants for name in names)
        given = [name for name in node.output if name in read]
        if node.op_type not in FAMILY_OF or not known or not all(name in types for name in given):
            continue
        operands = tuple(
            None if not name
            else Operand(*constants[name][:2], True, constants[name][2]) if name in constants
            else Operand(*types[name], False, None)
            for name in node.input
        )
        attributes = sorted((each.name, _frozen(helper.get_attribute_value(each)))
                            for each in node.attribute)
        layer = Layer(node.op_type, opset, tuple(attributes), operands,
                      tuple(types[name] if name in given else None for name in node.output))
        counts[layer] = counts.get(layer, 0) + 1
    return counts


def _drawn(operand, generator):
    """A random weight: between 0.1 and 1 if it may be a variance, otherwise as small as usual
    weights."""
    dtype = np.dtype(operand.dtype)
    if dtype.kind != "f":
        return np.zeros(operand.shape, dtype)
    count = math.prod(operand.shape)
    if len(operand.shape) < 2:
        block = generator.uniform(0.1, 1, min(count, 1 << 20))
    else:
        block = generator.standard_normal(min(count, 1 << 20)) * 0.05
    return np.resize(block.astype(dtype), operand.shape)


def one_node_model(layer):
    """The layer as a model; its operands are inputs x0, x1 ... and initializers."""
    generator = np.random.default_rng(SEED)
    names, inputs, initializers = [], [], []
    for index, operand in enumerate(layer.operands):
        names.append(f"x{index}" if operand else "")
        if operand is None:
            continue
        if operand.is_constant:
            array = _drawn(operand, generator) if operand.values is None else \
                np.array(operand.values, operand.dtype).reshape(operand.shape)
            initializers.append(numpy_helper.from_array(array, names[-1]))
        else:
            element = helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype))
            inputs.append(helper.make_tensor_value_info(names[-1], element, operand.shape))
    given = [f"y{index}" if output else "" for index, output in enumerate(layer.outputs)]
    while given and not given[-1]:
        given.pop()
    outputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(output[0])),
                                      output[1])
        for name, output in zip(given, layer.outputs, strict=False) if name
    ]
    node = helper.make_node(layer.op, names, given, name="layer", **dict(layer.attributes))
    graph = helper.make_graph([node], "layer", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", layer.opset)],
                             ir_version=8)


def choose(layers, most):
    """At most `most` of the layers of a family: the largest of each op, then of each kind, then one
    whose number of channels is not a multiple of a vector's width; the largest first."""
    by_size = sorted(layers, key=lambda layer: -_size(layer))
    chosen = []

    def take(candidates, key):
        seen = {key(layer) for layer in chosen}
        for layer in candidates:
            if len(chosen) < most and key(layer) not in seen and layer not in chosen:
                seen.add(key(layer))
                chosen.append(layer)

    take(by_size, lambda layer: layer.op)
    odd = [layer for layer in by_size if _is_odd(layer)]
    take(odd[:1], lambda layer: layer.text)
    take(by_size, lambda layer: layer.kind)
    take(by_size, lambda layer: layer.text)
    return sorted(chosen, key=lambda layer: (layer.op, -_size(layer)))


def _size(layer):
    """An estimate of time: bytes, and multiplications if the weights determine their number."""
    weights = [operand for operand in layer.operands if operand and len(operand.shape) > 1]
    if layer.family in ("convolution", "product") and len(weights) > 1:
        return layer.bytes + math.prod(weights[1].shape) * layer.output_bytes ** 0.5
    return layer.bytes


def _is_odd(layer):
    shape = next((operand.shape for operand in layer.operands if operand), ())
    return len(shape) > 1 and shape[1] % 8 != 0 and shape[-1] % 8 != 0 and layer.bytes > 1 << 16
