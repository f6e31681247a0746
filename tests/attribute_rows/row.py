"""Uses of ops in every version: for each attribute and each optional input, values that change the
result. Inputs have the names of the newest version; an older version in which an input was an
attribute gets it as that. conformance/attributes_test.py compares all values on all backends, and
fuzz/random_models.py draws combinations of them."""

import dataclasses

import numpy as np
import onnx
from onnx import helper

SOURCE = np.random.default_rng(36)
NAMES_BEFORE = {"constant_value": "value", "K": "k", "input_mean": "mean", "input_var": "var"}


def floats(*shape):
    return np.round(SOURCE.standard_normal(shape) * 2, 2).astype(np.float32)


def ints(*numbers, dtype=np.int64):
    return np.array(numbers, dtype)


@dataclasses.dataclass
class Row:
    op: str
    inputs: dict  # by name, in the schema's order; a list for a variadic input
    # For each attribute or optional input the values to try. A dict sets others beside it.
    vary: dict
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    # Values that must not change the result, as the standard says.
    same: dict = dataclasses.field(default_factory=dict)
    versions: range = range(1, 1000)


class Inexpressible(Exception):
    """A version has no such attribute or input."""


def attribute(schema, name, value):
    kind = schema.attributes[name].type.name
    if kind == "TENSOR":
        return helper.make_attribute(name, onnx.numpy_helper.from_array(value))
    if isinstance(value, np.ndarray):
        value = value.tolist() if kind in ("INTS", "FLOATS") else value.item()
    elif isinstance(value, np.generic):
        value = value.item()
    if kind == "FLOAT":
        value = float(value)
    return helper.make_attribute(name, value, attr_type=int(schema.attributes[name].type))


def node_of(row, schema, settings):
    """The node "target" with `settings` beside or in place of the row's own values, and the arrays
    of its inputs, None for those that are left out."""
    given = {**row.inputs, **row.attributes, **settings}
    names = [parameter.name for parameter in schema.inputs]
    arrays, attributes = {}, []
    for index, (name, value) in enumerate(given.items()):
        before = NAMES_BEFORE.get(name)
        if name in names:
            arrays[name] = value
        elif name in schema.attributes:
            attributes.append(attribute(schema, name, value))
        elif before in names:
            arrays[before] = value
        elif before in schema.attributes:
            attributes.append(attribute(schema, before, value))
        elif name in row.inputs and index < len(names) and names[index] not in given:
            arrays[names[index]] = value  # the same input under an older name
        elif name not in row.inputs or np.size(value) != 0:
            raise Inexpressible(name)
    ordered = []
    for name in names:
        value = arrays.get(name)
        ordered += value if isinstance(value, list) else [value]
    while ordered and ordered[-1] is None:
        ordered.pop()
    ordered = [None if value is None else np.asarray(value) for value in ordered]
    inputs = ["" if value is None else f"i{index}" for index, value in enumerate(ordered)]
    outputs = [f"o{index}" for index in range(min(row.outputs, schema.max_output))]
    node = helper.make_node(row.op, inputs, outputs, name="target")
    node.attribute.extend(attributes)
    return node, ordered


def settings_of(subject, value):
    return value if isinstance(value, dict) else {subject: value}


X = floats(2, 3, 4, 5)
TIES = np.round(floats(3, 4, 5))
IMAGE = floats(1, 3, 9, 8)
LINE = floats(2, 3, 11)
CUBE = floats(1, 2, 5, 6, 7)


def combined(name, value, **others):
    return {name: value, **others}
