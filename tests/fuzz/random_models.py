"""Draws models: a valid use of an op (seeds.py), one with several attributes and optional inputs set
at once (tests/attribute_rows), or a use derived only from its schema, corrupted in some steps, each
input supplied in one of six ways, with other ops before and after it.

A model is a seed number and a list of steps, so that minimised() can remove steps."""

import dataclasses
import random
import re

import numpy as np
import onnx
from onnx import helper

import matrix
from attribute_rows import Inexpressible, node_of, rows_by_op, settings_of
from fuzz_case import BFLOAT16
from seeds import SUPPLIES, Seed, can_supply, case_of, input_names

ATTRIBUTE = onnx.defs.OpSchema.AttrType
HOSTILE_INTS = (0, 1, 2, 3, -1, -2, -3, 7, 100, 1 << 31, 1 << 33, (1 << 63) - 1, -(1 << 63))
HOSTILE_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, -1e30, float("nan"), float("inf"), 1e-30)
TEXTS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "nearest", "cubic", "constant",
         "reflect", "edge", "wrap", "add", "mul", "max", "none", "forward", "reverse",
         "bidirectional", "Tanh", "asymmetric", "floor", "DCR", "CRD", "tanh")
# In these ops, the order of the terms decides whether a sum of the largest values overflows.
SUMMING = re.compile("Conv|MatMul|Gemm|Reduce|Normalization|Softmax|LSTM|GRU|RNN|CumSum|Average|LRN|"
                     "Mean|Sum|Resize|Upsample|Gelu|Mish|Einsum|Celu|Selu|Elu|Swish|Pow|RoiAlign|"
                     "GridSample|AffineGrid|Col2Im")
# The standard does not define the conversion of NaN to an integer or an index.
NO_SPECIAL = re.compile("Cast|Quantize|OneHot|Range|Resize|Upsample|TopK|ArgM|BitShift|Roi|"
                        "GridSample|DeformConv|NonMaxSuppression")
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
         "tensor(bfloat16)": BFLOAT16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
         "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
         "tensor(bool)": np.bool_}


@dataclasses.dataclass
class Draft:
    seed: Seed
    supplies: list
    before: list = dataclasses.field(default_factory=list)  # (op, input)
    behind: list = dataclasses.field(default_factory=list)  # ops
    other_arrays: list = None  # of a second run
    resized_arrays: list = dataclasses.field(default_factory=list)  # of further runs
    keeps_denormals: bool = False


@dataclasses.dataclass
class RandomModel:
    base: Seed
    steps: list  # (what, function that changes a Draft)

    def name(self):
        return f"{self.base.label} {self.base.name}: " + ", ".join(what for what, _ in self.steps)

    def draft(self):
        node = onnx.NodeProto()
        node.CopyFrom(self.base.node)
        seed = dataclasses.replace(self.base, node=node, arrays=list(self.base.arrays))
        draft = Draft(seed, [None if a is None else "fed" for a in seed.arrays])
        for _, change in self.steps:
            change(draft)
        return draft

    def case(self):
        """The fuzz_case.Case; may throw if a step does not fit to those before it."""
        draft = self.draft()
        supplies = [None if array is None else supply if can_supply(draft.seed, array, supply)
                    else "fed" for array, supply in zip(draft.seed.arrays, draft.supplies)]
        runs = [draft.seed.arrays]
        if draft.other_arrays is not None:
            runs = [draft.other_arrays, draft.seed.arrays, draft.other_arrays]
        runs += draft.resized_arrays
        case = case_of(draft.seed, runs, supplies)
        add_neighbours(case.model, draft)
        case.keeps_denormals = draft.keeps_denormals
        return case


def add_neighbours(model, draft):
    """Adds unary ops on inputs of the target and after its first output, which libraries fuse."""
    graph = model.graph
    [target] = [node for node in graph.node if node.name == "target"]
    for number, (op, index) in enumerate(draft.before):
        if index < len(target.input) and target.input[index]:
            at = list(graph.node).index(target)
            graph.node.insert(at, helper.make_node(op, [target.input[index]], [f"b{number}"],
                                                   name=f"before{number}"))
            [target] = [node for node in graph.node if node.name == "target"]
            target.input[index] = f"b{number}"
    if not draft.behind or not graph.output:
        return
    value = graph.output[0].name
    for number, op in enumerate(draft.behind):
        inputs = [value, value] if op in ("Add", "Mul", "Max") else [value]
        graph.node.append(helper.make_node(op, inputs, [f"c{number}"], name=f"behind{number}"))
        value = f"c{number}"
    graph.output[0].name = value


# --- Steps: each draws its parameters and returns its name and a function
# --------------------------


def draw_supplies(source, base):
    drawn = [source.choice(SUPPLIES) for _ in base.arrays]
    if drawn and source.random() < 0.2:  # all elements equal
        drawn = [drawn[0]] * len(drawn)

    def change(draft):
        draft.supplies = drawn

    return "supplied " + "/".join(drawn), change


def draw_attribute(source, base):
    schema = onnx.defs.get_schema(base.op, max(base.version, 1), base.domain)
    names = sorted(name for name, attribute in schema.attributes.items()
                   if attribute.type in (ATTRIBUTE.INT, ATTRIBUTE.INTS, ATTRIBUTE.FLOAT,
                                         ATTRIBUTE.FLOATS, ATTRIBUTE.STRING))
    if not names:
        return None
    name = source.choice(names)
    kind = schema.attributes[name].type
    present = {a.name: helper.get_attribute_value(a) for a in base.node.attribute}
    value = hostile_attribute(source, name, kind, present.get(name))

    def change(draft):
        kept = [a for a in draft.seed.node.attribute if a.name != name]
        del draft.seed.node.attribute[:]
        draft.seed.node.attribute.extend(kept)
        if value is not None:
            draft.seed.node.attribute.append(
                helper.make_attribute(name, value, attr_type=int(kind)))

    return f"{name} = {str(value)[:60]}", change


def hostile_attribute(source, name, kind, present):
    """None: omit the attribute."""
    if source.random() < 0.1:
        return None
    if name == "keepdims":  # the standard does not define other numbers
        return source.choice((0, 1))
    if kind == ATTRIBUTE.STRING:
        return source.choice(TEXTS)
    numbers = HOSTILE_INTS if kind in (ATTRIBUTE.INT, ATTRIBUTE.INTS) else HOSTILE_FLOATS
    if kind in (ATTRIBUTE.INT, ATTRIBUTE.FLOAT):
        return source.choice(numbers)
    values = list(present or [source.choice((0, 1, 2)) for _ in range(source.randrange(5))])
    how = source.randrange(4)
    if how == 0 and values:
        values[source.randrange(len(values))] = source.choice(numbers)
    elif how == 1:
        values = values[:-1]
    elif how == 2:
        values.append(source.choice(numbers))
    else:
        values = [source.choice((0, 1, 2, 3, -1)) for _ in values]
    cast = int if kind == ATTRIBUTE.INTS else float
    return [cast(value) for value in values]


def draw_spoilt_input(source, base):
    present = [index for index, array in enumerate(base.arrays) if array is not None]
    if not present:
        return None
    index = source.choice(present)
    ways = list(matrix.spoilt(base.arrays[index]))
    if not ways:
        return None
    what, changed = source.choice(ways)

    def change(draft):
        draft.seed.arrays[index] = changed

    return f"input {index} {what}", change


def draw_axis_of_all(source, base):
    """Sets one axis to another size, usually 0, in all inputs that have this axis."""
    axis, size = source.randrange(4), source.choice((0, 0, 1, 2, 17))

    def change(draft):
        for index, array in enumerate(draft.seed.arrays):
            if array is not None and array.ndim > axis and array.shape[axis] and not (
                    matrix.is_list_like(array)):
                draft.seed.arrays[index] = np.take(
                    array, np.arange(size) % array.shape[axis], axis)

    return f"axis {axis} of all = {size}", change


def draw_special(source, base):
    largest = not SUMMING.search(base.op)
    kinds = ["nan", "inf", "-inf", "denormal"] + ["largest"] * largest
    drawn = [source.choice(kinds) for _ in range(source.randrange(1, 4))]
    places = [source.random() for _ in drawn]
    if NO_SPECIAL.search(base.op):
        return None

    def change(draft):
        for index, array in enumerate(draft.seed.arrays):
            if array is None or array.dtype.kind not in "f" and array.dtype != BFLOAT16 or (
                    not array.size or matrix.is_list_like(array) and array.size < 2):
                continue
            changed = array.reshape(-1).copy()
            limits = np.finfo(np.float32) if array.dtype == BFLOAT16 else np.finfo(array.dtype)
            numbers = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf,
                       "denormal": float(limits.smallest_normal) / 4, "largest": limits.max}
            for kind, place in zip(drawn, places):
                with np.errstate(over="ignore"):
                    changed[int(place * changed.size)] = numbers[kind]
            draft.seed.arrays[index] = changed.reshape(array.shape)
        draft.keeps_denormals |= "denormal" in drawn

    return "with " + " ".join(drawn), change


def draw_type(source, base):
    floats = [np.dtype(np.float16), BFLOAT16, np.dtype(np.float64), np.dtype(np.float32)]
    wanted = source.choice(floats)

    def change(draft):
        for index, array in enumerate(draft.seed.arrays):
            if array is not None and (array.dtype == BFLOAT16 or array.dtype.kind == "f"):
                with np.errstate(all="ignore"):
                    draft.seed.arrays[index] = array.astype(wanted)

    return f"as {wanted}", change


def draw_neighbours(source, base):
    before = [("Identity" if source.random() < 0.3 else "Relu", source.randrange(3))
              for _ in range(source.randrange(2))]
    behind = [source.choice(("Relu", "Add", "Mul", "Max", "Sigmoid", "Neg", "Shape", "Size",
                             "NonZero", "Identity"))
              for _ in range(source.randrange(1, 3))]

    def change(draft):
        draft.before, draft.behind = before, behind

    return "beside " + "/".join([op for op, _ in before] + behind), change


def draw_second_run(source, base):
    """Runs the uncorrupted inputs before and after the corrupted ones."""

    def change(draft):
        draft.other_arrays = list(base.arrays)

    return "between right runs", change


def resized(array, old, new):
    """The array with `new` elements along all axes of `old`; the elements repeat."""
    for axis, size in enumerate(array.shape):
        if size == old:
            array = np.take(array, np.arange(new) % old, axis)
    return array


def draw_sizes(source, base):
    """Runs at other sizes of one dimension, which all inputs that are no constants share. One plan
    serves them all, if it can."""
    pick = source.randrange(100)
    sizes = source.sample((2, 3, 4, 5, 7, 8, 16, 17, 33), 3)

    def change(draft):
        fed = [array is not None and supply != "constant"
               for array, supply in zip(draft.seed.arrays, draft.supplies)]
        found = sorted({size for array, is_fed in zip(draft.seed.arrays, fed) if is_fed
                        for size in array.shape if size > 1})
        if not found:
            return
        old = found[pick % len(found)]
        draft.resized_arrays = [
            [resized(array, old, new) if is_fed else array
             for array, is_fed in zip(draft.seed.arrays, fed)] for new in sizes]

    return "at sizes " + "/".join(map(str, sizes)), change


def draw_from_schema(source, op, domain, version):
    """A use derived only from the schema: types, numbers of inputs, and kinds of attributes."""
    schema = onnx.defs.get_schema(op, version, domain)
    types = {constraint.type_param_str: source.choice(
        [t for t in constraint.allowed_type_strs if t in TYPES] or ["tensor(float)"])
        for constraint in schema.type_constraints}
    count = source.randint(schema.min_input, max(schema.min_input, min(schema.max_input, 5)))
    rank = source.randrange(5)
    dims = [source.choice((0, 1, 2, 2, 3, 3, 4, 5)) for _ in range(rank)]
    arrays = []
    for index in range(count):
        parameter = schema.inputs[min(index, len(schema.inputs) - 1)]
        name = types.get(parameter.type_str, parameter.type_str)
        own = dims if source.random() < 0.7 else [
            source.choice((0, 1, 2, 3)) for _ in range(source.randrange(4))]
        numbers = np.array([source.choice((-2, -1, 0, 1, 2, 3)) for _ in range(int(np.prod(own)))])
        with np.errstate(all="ignore"):
            arrays.append(numbers.reshape(own).astype(TYPES.get(name, np.float32)))
    attributes = {name: hostile_attribute(source, name, attribute.type, None)
                  for name, attribute in sorted(schema.attributes.items())
                  if attribute.type in (ATTRIBUTE.INT, ATTRIBUTE.INTS, ATTRIBUTE.STRING,
                                        ATTRIBUTE.FLOAT, ATTRIBUTE.FLOATS)
                  and (attribute.required or source.random() < 0.3)}
    node = onnx.NodeProto(op_type=op, domain=domain, name="target")
    node.input.extend(f"i{index}" for index in range(count))
    outputs = max(schema.min_output, 1)
    node.output.extend(f"o{index}" for index in range(outputs))
    for name, value in attributes.items():
        if value is not None:
            node.attribute.append(helper.make_attribute(
                name, value, attr_type=int(schema.attributes[name].type)))
    return Seed(op, domain, schema.since_version, "by schema", node, arrays,
                input_names(schema, count))


def draw_settings(source, op, domain, version):
    """A use with up to four attributes and optional inputs of one row set at once, which need not
    fit together; None if there is no row."""
    rows = [row for row in ROWS.get(op, ()) if version in row.versions and not domain]
    if not rows:
        return None
    row = source.choice(rows)
    values = [(subject, value) for table in (row.vary, row.same)
              for subject, found in table.items() for value in found]
    settings = {}
    for subject, value in source.sample(values, min(len(values), source.randrange(5))):
        settings.update(settings_of(subject, value))
    if settings.get("auto_pad", "NOTSET") != "NOTSET":
        settings.pop("pads", None)  # the standard forbids both
    schema = onnx.defs.get_schema(op, max(version, 6), domain)
    try:
        node, arrays = node_of(row, schema, settings)
    except Inexpressible:
        return None
    name = "by row " + " ".join(f"{key}={value}"[:40] for key, value in settings.items()
                                if not isinstance(value, np.ndarray))
    return Seed(op, domain, version, name, node, arrays, input_names(schema, len(arrays)))


def draw_size(source, base):
    """Sets an axis of the first input to an odd size, at which kernels end their vectors."""
    axis, size = source.choice((-1, -1, -2, 0)), source.choice((1, 2, 3, 7, 15, 16, 17, 33, 65))

    def change(draft):
        array = draft.seed.arrays[0] if draft.seed.arrays else None
        if array is not None and array.ndim > 1 and array.size:
            draft.seed.arrays[0] = np.take(array, np.arange(size) % array.shape[axis], axis)

    return f"axis {axis} of input 0 = {size}", change


def draw_constants(source, base):
    """All inputs but the first are constants, as plug-ins want it of parameters."""
    first = source.choice(("fed", "fed", "fed", "rows", "dims"))

    def change(draft):
        draft.supplies = [first] + ["constant"] * (len(draft.seed.arrays) - 1)

    return f"supplied {first}/constant", change


ROWS = rows_by_op()
STEPS = ((draw_spoilt_input, 0.55), (draw_spoilt_input, 0.15), (draw_attribute, 0.3),
         (draw_attribute, 0.1), (draw_axis_of_all, 0.12), (draw_type, 0.15), (draw_special, 0.3),
         (draw_neighbours, 0.3), (draw_second_run, 0.2), (draw_sizes, 0.2))
# For several settings at once, most of which are valid.
STEPS_OF_SETTINGS = ((draw_constants, 0.8), (draw_size, 0.5), (draw_type, 0.3), (draw_special, 0.1),
                     (draw_axis_of_all, 0.05), (draw_attribute, 0.05), (draw_neighbours, 0.3),
                     (draw_second_run, 0.1), (draw_sizes, 0.3))


def draw_model(number, seeds):
    """The model of this number, which is always the same. `seeds`: the result of collect_seeds().
    """
    source = random.Random(number)
    domain, op, version = source.choice(list(seeds))
    base = source.choice(seeds[(domain, op, version)])
    steps = STEPS
    if source.random() < 0.2:
        base = draw_from_schema(source, op, domain, version)
    elif source.random() < 0.5:
        several = draw_settings(source, op, domain, version)
        base, steps = (several, STEPS_OF_SETTINGS) if several else (base, STEPS)
    drawn = [step(source, base) for step, share in steps if source.random() < share]
    return RandomModel(base, [draw_supplies(source, base), *filter(None, drawn)])


def minimised(model, is_still_wrong):
    """The model with as few steps as possible for which is_still_wrong(case) is true."""
    for at in reversed(range(len(model.steps))):
        fewer = RandomModel(model.base, model.steps[:at] + model.steps[at + 1:])
        try:
            if is_still_wrong(fewer.case()):
                model = fewer
        except Exception:  # the remaining steps do not fit together
            continue
    return model
