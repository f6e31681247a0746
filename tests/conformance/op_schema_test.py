"""Compares the table of ops with the schemas in the onnx package, and those of com.microsoft with the
schemas of ONNX Runtime."""

import itertools

import onnx
import onnx.defs
import onnx.helper
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime
from programs import json_of

# The versions of each domain that models may import.
OPSETS = {"": range(1, 29), "ai.onnx.ml": range(1, 6), "ai.onnx.preview.training": range(1, 2)}

# (op, version, what) of deliberate deviations, with the reason.
ALLOWED = {
    ("GroupNormalization", None, "versions"): "18 was retired by 21, but models of 18 exist",
    ("SimplifiedLayerNormalization", None, "versions"): "ONNX Runtime has it in ONNX's own domain",
    ("Resize", 11, "input roi"): "files of version 11 leave it out, as later ones do",
    ("LayerNormalization", None, "versions"):
        "ONNX Runtime has it in ONNX's domain from version 1 on, and its optimiser writes it",
    ("Resize", 11, "input scales"): "files of version 11 leave it out, as later ones do",
}

KINDS = {
    "INT": "int",
    "FLOAT": "float",
    "STRING": "string",
    "INTS": "ints",
    "FLOATS": "floats",
    "STRINGS": "strings",
    "TENSOR": "tensor",
    "TENSORS": "tensors",
    "TYPE_PROTO": "type",
}
ARITIES = {"Single": "required", "Optional": "optional", "Variadic": "variadic"}


def history(name, domain):
    """All versions of an op's schema, oldest first."""
    schemas = onnx.defs.get_all_schemas_with_history()
    found = [schema for schema in schemas if schema.name == name and schema.domain == domain]
    return sorted(found, key=lambda schema: schema.since_version)


def schema_in(schemas, opset):
    found = [schema for schema in schemas if schema.since_version <= opset]
    return found[-1] if found and not found[-1].deprecated else None


def default_of(attribute):
    # Schemas of ONNX Runtime have the serialised message only.
    given = (attribute.default_value if hasattr(attribute, "default_value")
             else onnx.AttributeProto.FromString(attribute._default_value))
    if not given.name:
        return None
    value = onnx.helper.get_attribute_value(given)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, list):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return None


def expected_attributes(schema):
    result = {}
    for name, attribute in schema.attributes.items():
        kind = KINDS.get(attribute.type.name)
        # Nested graphs are not attributes in Tessera. A sparse tensor is imported as a tensor, so
        # that the op can refuse it by name.
        if attribute.type.name == "SPARSE_TENSOR":
            kind = "tensor"
        if kind is not None:
            result[name] = (kind, attribute.required, default_of(attribute))
    return result


def differences(definition, schema):
    for side in ("inputs", "outputs"):
        ours = [(entry["name"], entry["arity"]) for entry in definition[side]]
        theirs = [(entry.name, ARITIES[entry.option.name]) for entry in getattr(schema, side)]
        for index in range(max(len(ours), len(theirs))):
            mine = ours[index] if index < len(ours) else None
            right = theirs[index] if index < len(theirs) else None
            if mine != right:
                yield f"{side[:-1]} {(right or mine)[0]}", f"has {mine}, expected {right}"
    ours = {
        entry["name"]: (entry["kind"], entry["required"], entry["default"])
        for entry in definition["attributes"]
    }
    theirs = expected_attributes(schema)
    for name in sorted(ours.keys() | theirs.keys()):
        if not is_same(ours.get(name), theirs.get(name)):
            yield f"attribute {name}", f"has {ours.get(name)}, expected {theirs.get(name)}"


SMALL_TYPES = {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
               "float4e2m1", "int4", "uint4", "int2", "uint2"}


def small_type_differences(definition, schema):
    """Larger types are those of the newest version, which does no harm."""
    types = {entry.type_param_str: entry.allowed_type_strs for entry in schema.type_constraints}
    for side in ("inputs", "outputs"):
        for mine, right in zip(definition[side], getattr(schema, side), strict=False):
            allowed = types.get(right.type_str, [right.type_str])
            expected = {name[len("tensor("):-1] for name in allowed} & SMALL_TYPES
            if mine["small_types"] is not None and set(mine["small_types"]) != expected:
                yield (f"{side[:-1]} {mine['name']}",
                       f"takes {sorted(mine['small_types'])}, expected {sorted(expected)}")


def is_same(ours, theirs):
    if ours is None or theirs is None or ours[:2] != theirs[:2]:
        return ours == theirs
    if isinstance(ours[2], float) or isinstance(theirs[2], float):
        return ours[2] == pytest.approx(theirs[2])
    return ours[2] == theirs[2]


def op_differences(op):
    schemas = history(op["name"], op["domain"])
    definitions = {entry["version"]: entry for entry in op["definitions"]}
    expected = {}
    for opset in OPSETS[op["domain"]]:
        schema = schema_in(schemas, opset)
        if schema is not None:
            expected[schema.since_version] = schema
    is_version_allowed = (op["name"], None, "versions") in ALLOWED
    if sorted(expected) != sorted(definitions) and not is_version_allowed:
        yield f"{op['name']}: has versions {sorted(definitions)}, expected {sorted(expected)}"
    for version in sorted(expected.keys() & definitions.keys()):
        found = itertools.chain(differences(definitions[version], expected[version]),
                                small_type_differences(definitions[version], expected[version]))
        for what, message in found:
            if (op["name"], version, what) not in ALLOWED:
                yield f"{op['name']}-{version}: {what} {message}"


@pytest.mark.parametrize("domain", OPSETS)
def test_ops_are_those_of_onnx(bin_dir, domain):
    table = [op for op in json_of(bin_dir / "print_op_table")
             if op["domain"] == domain]
    assert table
    found = [line for op in table for line in op_differences(op)]
    assert not found, "\n" + "\n".join(found)


def without_unstated_defaults(definition, schema):
    """The definition without defaults that ONNX Runtime's kernels have and its schemas do not
    state."""
    stated = {name for name, (_, _, default) in expected_attributes(schema).items()
              if default is not None}
    attributes = [entry if entry["name"] in stated else {**entry, "default": None}
                  for entry in definition["attributes"]]
    return {**definition, "attributes": attributes}


def test_ops_of_com_microsoft_are_those_of_onnxruntime(bin_dir):
    """Of their only version: names, arities, and kinds and defaults of attributes."""
    schemas = {(schema.domain, schema.name): schema
               for schema in onnxruntime.get_all_operator_schema()}
    table = [op for op in json_of(bin_dir / "print_op_table")
             if op["domain"] == "com.microsoft" or op["name"] == "SimplifiedLayerNormalization"]
    assert table
    found = []
    for op in table:
        schema = schemas.get((op["domain"], op["name"]))
        if schema is None or op["versions"] != [1]:
            found.append(f"{op['name']}: expected version 1 of an op of ONNX Runtime")
        else:
            definition = without_unstated_defaults(op["definitions"][0], schema)
            found += [f"{op['name']}: {what} {message}"
                      for what, message in differences(definition, schema)]
    assert not found, "\n" + "\n".join(found)
