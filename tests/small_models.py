"""ONNX models that tests build node by node."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

tensor_type = helper.make_tensor_type_proto


def _words(names):
    return names.split() if isinstance(names, str) else list(names)


def node(op, inputs="x", outputs="y", name=None, **attributes):
    """A node. Several inputs or outputs are a list, or one text with spaces between the names."""
    return helper.make_node(op, _words(inputs), _words(outputs), name, **attributes)


def chain(*ops, values=("x", "y")):
    """Nodes that apply `ops` one after the other to values[0] and give values[1]."""
    first, last = values
    names = [first, *(f"v{index}" for index in range(1, len(ops))), last]
    return [node(op, [names[index]], [names[index + 1]], f"{op}{index}")
            for index, op in enumerate(ops)]


def _info(name, kind):
    if not isinstance(kind, onnx.TypeProto):
        kind = tensor_type(TensorProto.FLOAT, kind)
    return helper.make_value_info(name, kind)


def _infos(values):
    """Values by name, or the names of float32 tensors of unknown shape."""
    if not isinstance(values, dict):
        values = dict.fromkeys(_words(values))
    return [_info(name, kind) for name, kind in values.items()]


def model_of(nodes, inputs, outputs, weights=None, *, opset=17, domains=None, ir_version=8,
             functions=(), name="g", value_info=(), **of_graph):
    """A model. `inputs`, `outputs` and `value_info` give for each name the shape of a float32
    tensor, or a tensor_type(); names alone are float32 tensors of unknown shape. `weights` are
    arrays by name, `domains` the versions of operator sets other than ONNX's."""
    graph = helper.make_graph(
        nodes, name, _infos(inputs), _infos(outputs),
        [numpy_helper.from_array(np.asarray(array), key) for key, array in (weights or {}).items()],
        value_info=_infos(value_info), **of_graph)
    opsets = {"": opset, **(domains or {})}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*each) for each in opsets.items()],
        ir_version=ir_version, functions=list(functions))


def model_bytes(*arguments, **options):
    """model_of() in the form in which tessera.load() takes it."""
    return model_of(*arguments, **options).SerializeToString()


def save_model(path, *arguments, is_external=False, **options):
    """Writes model_of() to `path`, its weights to weights.bin if `is_external`; returns `path`."""
    external = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(model_of(*arguments, **options), path, **(external if is_external else {}))
    return path


def save_relu_and_sigmoid(folder):
    """relu -> (sigmoid) -> sum of both, with its input x.npy and output y.npy beside it. Relu and
    sum without sigmoid are not a convex group."""
    nodes = [node("Relu", "x", "positive", "relu"),
             node("Sigmoid", "positive", "squashed", "sigmoid"),
             node("Add", "positive squashed", "y", "sum")]
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    relu = np.maximum(x, 0)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", relu + 1 / (1 + np.exp(-relu)))
    return save_model(folder / "model.onnx", nodes, {"x": x.shape}, {"y": x.shape})


def save_products(path, count):
    """`count` matrix products of many sizes, each of which is measured, from v0."""
    random = np.random.default_rng(1)
    nodes, weights, rows = [], {}, 64
    for at in range(count):
        columns = 200 + 7 * at
        weights[f"w{at}"] = normal(random, rows, columns) / 16
        nodes.append(node("MatMul", f"v{at} w{at}", f"v{at + 1}"))
        rows = columns
    return save_model(path, nodes, {"v0": [192, 64]}, {f"v{count}": [192, rows]}, weights)


def normal(random, *shape):
    """Normally distributed float32 numbers from a generator of NumPy."""
    return random.standard_normal(shape).astype(np.float32)
