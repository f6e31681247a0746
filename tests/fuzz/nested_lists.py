"""Ops on lists (ONNX's sequences) and optionals, for nested_graphs.py. As in nested_ops.py, each
function adds nodes to a scope and returns the value, or None if no visible value is fit for it."""

import dataclasses

import numpy as np
from onnx import TensorProto

from nested_ops import limited, scalar
from nested_values import FLOAT, INT64, Scope, Value, type_of

LONGEST = 8


def is_list(value):
    return value.kind == "sequence"


def dims_of_all(*all_dims):
    """Those of lists: None where they differ."""
    if None in all_dims or len(set(map(len, all_dims))) != 1:
        return None
    return tuple(dims[0] if len(set(dims)) == 1 else None for dims in zip(*all_dims, strict=True))


def list_of(scope):
    draft = scope.draft
    first = scope.pick(lambda value: value.is_tensor())
    if first is None:
        return None
    values = [first]
    while len(values) < 3 and draft.chance(0.6):
        values.append(scope.pick(lambda value: value.is_tensor(first.element)))
    return scope.result("SequenceConstruct", values, first.element,
                        dims_of_all(*(value.dims for value in values)),
                        max(value.bound for value in values), common_bits(values),
                        kind="sequence", length=len(values), longest=len(values))


def common_bits(values):
    if not all(value.is_exact() for value in values):
        return None
    return max(value.bits or 0 for value in values)


def empty_list(scope, element=FLOAT):
    attributes = {} if element == FLOAT and scope.draft.chance(0.5) else {"dtype": element}
    return scope.result("SequenceEmpty", [], element, None, 0.0, 2 if element == FLOAT else None,
                        kind="sequence", attributes=attributes)


def inserted(scope, values, element, is_empty=False, most_bound=None):
    """The list `values`, or a new one, with one more element; without it if it is_empty."""
    draft = scope.draft
    if values is None:
        values = empty_list(scope, element)
        if is_empty:
            return values
    added = scope.pick(lambda value: value.is_tensor(element))
    if added is None:
        added = scope.constant(draft.array(element, (2,)))
    if most_bound is not None:
        added = limited(scope, added, most_bound)
    inputs = [values, added]
    # The reference of ONNX fails at a position in an empty list.
    if draft.chance(0.4) and values.length > 0:
        number = draft.random.randint(-values.length, values.length)
        dtype = draft.random.choice((np.int64, np.int32))
        inputs.append(scope.constant(np.array(number, dtype), is_listed=False))
    dims = added.dims if values.longest == 0 else dims_of_all(values.dims, added.dims)
    return scope.result("SequenceInsert", inputs, element, dims, max(values.bound, added.bound),
                        common_bits([values, added]), kind="sequence", length=values.length + 1,
                        longest=values.longest + 1)


def insertion(scope):
    values = scope.pick(lambda value: is_list(value) and value.longest < LONGEST)
    return values and inserted(scope, values, values.element)


def erase(scope):
    values = scope.pick(lambda value: is_list(value) and value.length > 0)
    if values is None:
        return None
    inputs = [values]
    if scope.draft.chance(0.6):
        inputs.append(position(scope, values))
    return scope.result("SequenceErase", inputs, values.element, values.dims, values.bound,
                        values.bits, kind="sequence", length=values.length - 1,
                        longest=values.longest - 1)


def position(scope, values):
    """Of an element of a list, which may be a number that is computed."""
    draft = scope.draft
    number = scope.pick(lambda value: value.is_tensor(INT64) and value.dims == ())
    if number is not None and draft.chance(0.4):
        length = scope.constant(np.array(values.length, np.int64), is_listed=False)
        return scope.result("Mod", [number, length], INT64, (), values.length)
    at = draft.random.randint(-values.length, values.length - 1)
    return scope.constant(np.array(at, np.int64), is_listed=False)


def element_of(scope, values):
    dims = values.dims
    if dims is not None:
        dims = tuple(scope.symbol(0, 20) if dim is None else dim for dim in dims)
    return scope.result("SequenceAt", [values, position(scope, values)], values.element, dims,
                        values.bound, values.bits)


def element(scope):
    values = scope.pick(lambda value: is_list(value) and value.length > 0)
    return values and element_of(scope, values)


def length(scope):
    values = scope.pick(is_list)
    return values and scope.result("SequenceLength", [values], INT64, (), values.longest)


def guarded_element(scope):
    """An element if there is one, by an If over the length of the list."""
    draft = scope.draft
    values = scope.pick(is_list)
    if values is None or scope.level >= 3:
        return None
    count = scope.result("SequenceLength", [values], INT64, (), values.longest)
    zero = scope.constant(np.array(0, np.int64), is_listed=False)
    decides = scope.result("Greater", [count, zero], TensorProto.BOOL, ())
    then, otherwise = Scope(draft, scope), Scope(draft, scope)
    sure = dataclasses.replace(values, length=1, longest=1)
    one = scalar(then, element_of(then, sure))
    return two_ways(scope, decides, (then, otherwise), one)


def two_ways(scope, decides, branches, one):
    """An If that gives the scalar `one`, or a constant."""
    draft = scope.draft
    then, otherwise = branches
    other = otherwise.constant(draft.array(one.element, ()))
    if other not in otherwise.values:
        other = otherwise.result("Identity", [other], other.element, (), other.bound, other.bits)
    result = Value(draft.name("v"), one.element, (), max(one.bound, other.bound))
    scope.node("If", [decides], [result], then_branch=then.graph([], [then.declared(one)]),
               else_branch=otherwise.graph([], [otherwise.declared(other)]))
    return result


def joined_list(scope):
    """ConcatFromSequence."""
    draft = scope.draft
    values = scope.pick(lambda value: is_list(value) and value.length > 0 and value.dims is not None
                        and value.dims.count(None) <= (1 if value.dims else 0))
    if values is None:
        return None
    low, high = values.length, values.longest
    if None in values.dims or draft.chance(0.5) and values.dims:
        at = values.dims.index(None) if None in values.dims else draft.random.randrange(
            len(values.dims))
        dim = values.dims[at]
        least, most = (0, 20) if dim is None else (draft.least(dim), draft.most(dim))
        size = scope.symbol(low * least, high * most)
        dims, adds = (*values.dims[:at], size, *values.dims[at + 1:]), 0
    else:
        at = draft.random.randint(0, len(values.dims))
        size = low if low == high else scope.symbol(low, high)
        dims, adds = (*values.dims[:at], size, *values.dims[at:]), 1
    axis = at - len(dims) if draft.chance(0.3) else at
    return scope.result("ConcatFromSequence", [values], values.element, dims, values.bound,
                        values.bits, attributes={"axis": axis, "new_axis": adds})


def split_list(scope):
    """SplitToSequence."""
    draft = scope.draft
    value = scope.pick(lambda value: value.has_dims() and any(
        draft.most(dim) <= LONGEST for dim in value.dims))
    if value is None:
        return None
    axis = draft.random.choice([at for at, dim in enumerate(value.dims)
                                if draft.most(dim) <= LONGEST])
    dim = value.dims[axis]
    attributes = {"axis": axis - len(value.dims) if draft.chance(0.3) else axis}
    inputs, size, low, high = [value], 1, draft.least(dim), draft.most(dim)
    form = draft.random.choice(("ones", "without axis", "scalar", "list"))
    if form == "without axis":
        attributes["keepdims"] = 0
    elif form == "scalar":
        each = draft.random.randint(1, 3)
        inputs.append(scope.constant(np.array(each, np.int64), is_listed=False))
        low, high, size = -(-low // each), -(-high // each), None
    elif form == "list" and not isinstance(dim, str) and dim > 1:
        first = draft.random.randint(1, dim - 1)
        inputs.append(scope.integers(first, dim - first))
        low, high, size = 2, 2, None
    middle = () if form == "without axis" else (size,)
    return scope.result("SplitToSequence", inputs, value.element,
                        (*value.dims[:axis], *middle, *value.dims[axis + 1:]), value.bound,
                        value.bits, attributes=attributes, kind="sequence", length=low,
                        longest=high)


# --- Optionals -----------------------------------------------------------------------------------


def optional(scope):
    value = scope.pick(lambda value: value.is_tensor(FLOAT, INT64))
    if value is None or scope.draft.opset < 15:
        return None
    if scope.draft.chance(0.2):
        return no_content(scope, value)
    return scope.result("Optional", [value], value.element, value.dims, value.bound, value.bits,
                        kind="optional")


def no_content(scope, value):
    kind = type_of(Value("", value.element, None), None)
    return scope.result("Optional", [], value.element, value.dims, value.bound, value.bits,
                        kind="optional", attributes={"type": kind})


def element_like(scope, one):
    """An optional with the type of `one`."""
    other = scope.pick(lambda value: value.kind == "optional" and value.element == one.element)
    return other if other and scope.draft.chance(0.5) else no_content(scope, one)


def has_content(scope):
    value = scope.pick(lambda value: value.kind == "optional")
    return value and scope.result("OptionalHasElement", [value], TensorProto.BOOL, ())


def guarded_content(scope):
    """The content if there is one."""
    value = scope.pick(lambda value: value.kind == "optional")
    if value is None or scope.level >= 3:
        return None
    decides = scope.result("OptionalHasElement", [value], TensorProto.BOOL, ())
    then, otherwise = Scope(scope.draft, scope), Scope(scope.draft, scope)
    content = then.result("OptionalGetElement", [value], value.element, None, value.bound)
    return two_ways(scope, decides, (then, otherwise), scalar(then, content))


LIST_OPS = (list_of, empty_list, insertion, insertion, erase, element, element, length,
            guarded_element, joined_list, joined_list, split_list, split_list, optional,
            has_content, guarded_content)
