"""Small ops of the bodies that nested_graphs.py draws. Each function adds nodes to a scope and
returns the value, or None if no visible value is fit for it."""

import dataclasses

import numpy as np

from nested_values import BOOL, FLOAT, INT64, MAX_ELEMENTS, ODD_NUMBERS

# By op: the largest result for a bound, and whether it rounds.
UNARY = {"Relu": (lambda bound: bound, False), "Neg": (lambda bound: bound, False),
         "Abs": (lambda bound: bound, False), "Identity": (lambda bound: bound, False),
         "Tanh": (lambda bound: 1.0, True), "Sigmoid": (lambda bound: 1.0, True)}


def settled(scope, value):
    """The value, or a smaller one of the same shape if it has become large."""
    if value.element == FLOAT and value.bound > (32 if value.bits is None else 2000):
        return limited(scope, value, 1)
    return limited(scope, value, 6) if value.element == INT64 and value.bound > 10000 else value


def limited(scope, value, bound):
    """The value if it is within the bound, which is at least 1; else a smaller one."""
    if value.element == BOOL or value.bound <= bound:
        return value
    if value.element == FLOAT:
        return scope.result("Tanh", [value], FLOAT, value.dims, 1.0)
    divisor = scope.constant(np.array(min(7, int(bound) + 1), np.int64))
    return scope.result("Mod", [value, divisor], INT64, value.dims, min(6, int(bound)))


def broadcast(*all_dims):
    """The dimensions of an elementwise result; None if they do not fit, or might not."""
    result = []
    for axis in range(1, max(map(len, all_dims)) + 1):
        here = {dims[-axis] for dims in all_dims if axis <= len(dims)} - {1}
        if len(here) > 1:
            return None
        result.insert(0, here.pop() if here else 1)
    return tuple(result)


def are_few(scope, dims):
    return scope.draft.most_elements(dims) <= MAX_ELEMENTS


def unary(scope):
    value = scope.pick(lambda value: value.is_tensor(FLOAT))
    if value is None:
        return None
    op = scope.draft.random.choice([*UNARY])
    largest, rounds = UNARY[op]
    return scope.result(op, [value], FLOAT, value.dims, largest(value.bound),
                        None if rounds else value.bits)


def small_constant(scope, value):
    """A constant that can be added to the value without a change of its shape."""
    dims = value.dims[scope.draft.random.randint(0, len(value.dims)):]
    shape = [1 if isinstance(dim, str) or scope.draft.chance(0.2) else dim for dim in dims]
    return scope.constant(scope.draft.array(value.element, shape))


def binary(scope):
    one = scope.pick(lambda value: value.has_dims(FLOAT, INT64))
    if one is None:
        return None
    other = scope.pick(lambda value: value.has_dims(one.element) and (
        dims := broadcast(one.dims, value.dims)) is not None and are_few(scope, dims))
    if other is None or scope.draft.chance(0.25):
        other = small_constant(scope, one)
    if scope.draft.chance(0.3):
        one, other = other, one
    return settled(scope, combine(scope, scope.draft.random.choice(("Add", "Add", "Sub", "Mul",
                                                                    "Max", "Min")), one, other))


def combine(scope, op, one, other):
    """An elementwise result of two numbers that broadcast; one may be of unknown rank if the other
    is a scalar."""
    dims = None if one.dims is None or other.dims is None else broadcast(one.dims, other.dims)
    exact = one.is_exact() and other.is_exact()
    bits = (one.bits or 0, other.bits or 0)
    bounds = {"Add": one.bound + other.bound, "Sub": one.bound + other.bound,
              "Mul": one.bound * other.bound}
    return scope.result(op, [one, other], one.element, dims,
                        bounds.get(op, max(one.bound, other.bound)),
                        (sum(bits) if op == "Mul" else max(bits)) if exact else None)


def mat_mul(scope):
    one = scope.pick(lambda value: value.has_dims(FLOAT) and len(value.dims) > 0
                     and not isinstance(value.dims[-1], str))
    if one is None:
        return None
    terms = one.dims[-1]
    other = scope.pick(lambda value: value.has_dims(FLOAT) and len(value.dims) == 2
                       and value.dims[0] == terms)
    if other is None or scope.draft.chance(0.4):
        shape = (terms, scope.draft.random.choice((terms, 1, 2, 3)))
        other = scope.constant(scope.draft.array(FLOAT, shape))
    dims = (*one.dims[:-1], other.dims[1])
    if not are_few(scope, dims):
        return None
    exact = one.is_exact() and other.is_exact()
    return settled(scope, scope.result(
        "MatMul", [one, other], FLOAT, dims, max(terms, 1) * one.bound * other.bound,
        one.bits + other.bits if exact else None))


def reduce_sum(scope):
    value = scope.pick(lambda value: value.has_dims(FLOAT, INT64) and len(value.dims) > 0)
    return None if value is None else reduced(scope, "ReduceSum", value)


def reduce_max(scope):
    value = scope.pick(lambda value: value.has_dims(FLOAT, INT64) and len(value.dims) > 0
                       and all(scope.draft.least(dim) > 0 for dim in value.dims))
    return None if value is None else reduced(scope, "ReduceMax", value)


def reduced(scope, op, value):
    random = scope.draft.random
    rank = len(value.dims)
    axes = sorted(random.sample(range(rank), random.randint(1, rank)))
    keeps = scope.draft.chance(0.5)
    dims = tuple(1 if axis in axes else dim for axis, dim in enumerate(value.dims)
                 if keeps or axis not in axes)
    given = [axis - rank if scope.draft.chance(0.3) else axis for axis in axes]
    terms = scope.draft.most_elements([value.dims[axis] for axis in axes])
    bound = value.bound * (terms if op == "ReduceSum" else 1)
    attributes, inputs = {"keepdims": int(keeps)}, [value]
    if op == "ReduceSum" or scope.draft.opset >= 18:
        inputs.append(scope.integers(*given))
    else:
        attributes["axes"] = given
    return settled(scope, scope.result(op, inputs, value.element, dims, bound, value.bits,
                                       attributes=attributes))


def scalar(scope, value, element=None):
    """A scalar of an element type, computed from all elements of a tensor."""
    draft = scope.draft
    element = element or value.element
    if value.element == BOOL and (value.dims != () or element != BOOL):
        value = cast_to(scope, value, INT64)
    if value.dims != ():
        terms = 3000 if value.dims is None else draft.most_elements(value.dims)
        bits = value.bits if value.dims is not None else None
        value = settled(scope, scope.result("ReduceSum", [value], value.element, (),
                                            value.bound * max(terms, 1), bits,
                                            attributes={"keepdims": 0}))
    if element == BOOL and value.element != BOOL:
        return compared(scope, value)
    if value.element == FLOAT and element == INT64 and not value.is_exact():
        value = compared(scope, value)
    return value if value.element == element else cast_to(scope, value, element)


def cast_to(scope, value, element):
    bits = (value.bits if value.element == FLOAT else 0) if element == FLOAT else None
    bound = 1 if BOOL in (element, value.element) else value.bound
    return scope.result("Cast", [value], element, value.dims, bound, bits,
                        attributes={"to": element})


def compared(scope, value):
    """A comparison of numbers with a constant, which rounding does not change."""
    random = scope.draft.random
    number = random.choice(ODD_NUMBERS)
    if value.element == INT64:
        number = random.randint(-1, 3)
    elif value.is_exact() and scope.draft.chance(0.5):
        number = random.randint(-4, 4) / 4
    dtype = np.int64 if value.element == INT64 else np.float32
    constant = scope.constant(np.array(number, dtype), is_listed=False)
    return scope.result(random.choice(("Less", "Greater")), [value, constant], BOOL, value.dims)


def concat(scope):
    random = scope.draft.random
    one = scope.pick(lambda value: value.has_dims() and len(value.dims) > 0)
    if one is None:
        return None
    axis = random.randrange(len(one.dims))
    other = scope.pick(lambda value: fits_beside(one, value, axis))
    return concatenated(scope, [one, other] if scope.draft.chance(0.8) else [one, other, one], axis)


def fits_beside(one, other, axis):
    """Whether two values are the same but for an axis."""
    return (other.has_dims(one.element) and len(one.dims) == len(other.dims)
            and one.dims[:axis] == other.dims[:axis]
            and one.dims[axis + 1:] == other.dims[axis + 1:])


def concatenated(scope, values, axis):
    draft = scope.draft
    sizes = [value.dims[axis] for value in values]
    size = (scope.symbol(sum(map(draft.least, sizes)), sum(map(draft.most, sizes)))
            if any(isinstance(each, str) for each in sizes) else sum(sizes))
    first = values[0]
    dims = (*first.dims[:axis], size, *first.dims[axis + 1:])
    if not are_few(scope, dims):
        return None
    exact = all(value.is_exact() for value in values)
    given = axis - len(dims) if draft.chance(0.3) else axis
    return scope.result("Concat", values, first.element, dims, max(v.bound for v in values),
                        max(v.bits or 0 for v in values) if exact else None,
                        attributes={"axis": given})


def slice_some(scope):
    value = scope.pick(lambda value: value.has_dims() and len(value.dims) > 0)
    if value is None:
        return None
    return sliced(scope, value, scope.draft.random.randrange(len(value.dims)))


def sliced(scope, value, axis, form=None):
    """A part of the value along an axis; the whole axis in reverse order if form is "reverse"."""
    draft = scope.draft
    size = value.dims[axis]
    least, most = draft.least(size), draft.most(size)
    form = form or draft.random.choice(("first", "rest", "shorter", "reverse", "every second"))
    largest = (1 << 63) - 1
    start, end, step, part = {
        "first": (0, 1, 1, lambda size: min(size, 1)),
        "rest": (1, largest, 1, lambda size: max(size - 1, 0)),
        "shorter": (0, -1, 1, lambda size: max(size - 1, 0)),
        "reverse": (-1, -largest, -1, lambda size: size),
        "every second": (0, largest, 2, lambda size: (size + 1) // 2)}[form]
    if form == "reverse":
        dim = size
    else:
        low, high = part(least), part(most)
        dim = low if low == high else scope.symbol(low, high)
    inputs = [value, *(scope.integers(number) for number in (start, end, axis))]
    if step != 1:
        inputs.append(scope.integers(step))
    return scope.result("Slice", inputs, value.element,
                        (*value.dims[:axis], dim, *value.dims[axis + 1:]), value.bound, value.bits)


def gather(scope):
    """Elements at constant indices, or at one that is computed."""
    draft = scope.draft
    value = scope.pick(lambda value: value.has_dims() and any(
        draft.least(dim) > 0 for dim in value.dims))
    if value is None:
        return None
    axis = draft.random.choice([at for at, dim in enumerate(value.dims) if draft.least(dim) > 0])
    least = draft.least(value.dims[axis])
    number = scope.pick(lambda value: value.is_tensor(INT64) and value.dims == ())
    if number is not None and draft.chance(0.5):
        size = scope.constant(np.array(least, np.int64), is_listed=False)
        index, shape = scope.result("Mod", [number, size], INT64, (), least), ()
    else:
        shape = draft.random.choice(((), (1,), (2,), (3,)))
        index = scope.constant(np.array([draft.random.randint(-least, least - 1) for _ in range(
            int(np.prod(shape)))], np.int64).reshape(shape), is_listed=False)
    dims = (*value.dims[:axis], *shape, *value.dims[axis + 1:])
    if not are_few(scope, dims):
        return None
    return scope.result("Gather", [value, index], value.element, dims, value.bound, value.bits,
                        attributes={"axis": axis})


def transpose(scope):
    value = scope.pick(lambda value: value.has_dims() and len(value.dims) > 1)
    if value is None:
        return None
    order = scope.draft.random.sample(range(len(value.dims)), len(value.dims))
    return scope.result("Transpose", [value], value.element, tuple(value.dims[at] for at in order),
                        value.bound, value.bits, attributes={"perm": order})


def reshape(scope):
    value = scope.pick(lambda value: value.is_tensor())
    draft = scope.draft
    if value.dims is None:
        size, shape = scope.symbol(0, MAX_ELEMENTS), [-1]
        dims = (size,)
    elif len(value.dims) > 1 and draft.chance(0.4):
        merged = value.dims[1:]
        shape = [0, -1]
        if any(draft.least(dim) == 0 for dim in value.dims):
            return None
        dims = (value.dims[0], product(scope, merged))
    elif len(value.dims) and draft.chance(0.3):
        shape = None
        dims = value.dims
    else:
        shape = [-1]
        dims = (product(scope, value.dims),)
    wanted = scope.integers(*shape) if shape else scope.result(
        "Shape", [value], INT64, (len(dims),), 20)
    return scope.result("Reshape", [value, wanted], value.element, dims, value.bound, value.bits)


def product(scope, dims):
    draft = scope.draft
    if not any(isinstance(dim, str) for dim in dims):
        return int(np.prod(dims, dtype=int))
    low = int(np.prod([draft.least(dim) for dim in dims]))
    return scope.symbol(low, draft.most_elements(dims))


def shape(scope):
    value = scope.pick(lambda value: value.has_dims() and len(value.dims) > 0)
    if value is None:
        return None
    return scope.result("Shape", [value], INT64, (len(value.dims),), scope.draft.most_elements(
        [max(scope.draft.most(dim) for dim in value.dims)]))


def cast(scope):
    value = scope.pick(lambda value: value.is_tensor() and value.is_exact())
    if value is None:
        return None
    kinds = [element for element in (FLOAT, INT64, BOOL) if element != value.element]
    return settled(scope, cast_to(scope, value, scope.draft.random.choice(kinds)))


def where(scope):
    one = scope.pick(lambda value: value.has_dims(FLOAT, INT64))
    if one is None:
        return None
    condition = scope.pick(lambda value: value.has_dims(BOOL)
                           and broadcast(value.dims, one.dims) == one.dims)
    other = scope.pick(lambda value: value.has_dims(one.element)
                       and broadcast(value.dims, one.dims) == one.dims)
    if condition is None:
        return None
    exact = one.is_exact() and other.is_exact()
    return scope.result("Where", [condition, one, other], one.element, one.dims,
                        max(one.bound, other.bound),
                        max(one.bits or 0, other.bits or 0) if exact else None)


def compare(scope):
    one = scope.pick(lambda value: value.has_dims(FLOAT, INT64))
    if one is None:
        return None
    other = scope.pick(lambda value: value.has_dims(one.element) and value.is_exact()
                       and broadcast(one.dims, value.dims) == one.dims)
    if other is None or not one.is_exact() or scope.draft.chance(0.5):
        return compared(scope, one)
    op = scope.draft.random.choice(("Less", "Greater", "Equal", "LessOrEqual"))
    return scope.result(op, [one, other], BOOL, one.dims)


def logic(scope):
    one = scope.pick(lambda value: value.has_dims(BOOL))
    if one is None:
        return None
    if scope.draft.chance(0.3):
        return scope.result("Not", [one], BOOL, one.dims)
    other = scope.pick(lambda value: value.has_dims(BOOL)
                       and broadcast(one.dims, value.dims) == one.dims)
    op = scope.draft.random.choice(("And", "Or", "Xor"))
    return scope.result(op, [one, other], BOOL, one.dims)


def non_zero(scope):
    value = scope.pick(lambda value: value.has_dims() and len(value.dims) > 0 and value.is_exact())
    if value is None:
        return None
    count = scope.symbol(0, scope.draft.most_elements(value.dims))
    return scope.result("NonZero", [value], INT64, (len(value.dims), count), 50)


def unsqueeze(scope):
    value = scope.pick(lambda value: value.has_dims() and len(value.dims) < 4)
    if value is None:
        return None
    axis = scope.draft.random.randint(0, len(value.dims))
    return scope.result("Unsqueeze", [value, scope.integers(axis)], value.element,
                        (*value.dims[:axis], 1, *value.dims[axis:]), value.bound, value.bits)


def squeeze(scope):
    value = scope.pick(lambda value: value.has_dims() and 1 in value.dims)
    if value is None:
        return None
    axis = scope.draft.random.choice([at for at, dim in enumerate(value.dims) if dim == 1])
    return scope.result("Squeeze", [value, scope.integers(axis)], value.element,
                        (*value.dims[:axis], *value.dims[axis + 1:]), value.bound, value.bits)


def split(scope):
    """Two outputs, one of which nobody may read."""
    value = scope.pick(lambda value: value.has_dims() and any(
        not isinstance(dim, str) and dim > 1 for dim in value.dims))
    if value is None:
        return None
    axis = next(at for at, dim in enumerate(value.dims) if not isinstance(dim, str) and dim > 1)
    first = scope.draft.random.randint(1, value.dims[axis] - 1)
    sizes = (first, value.dims[axis] - first)
    parts = [dataclasses.replace(value, name=scope.draft.name("v"),
                                 dims=(*value.dims[:axis], size, *value.dims[axis + 1:]))
             for size in sizes]
    scope.node("Split", [value, scope.integers(*sizes)], parts, axis=axis)
    return parts[0]


def constant(scope):
    draft = scope.draft
    shape = [draft.random.randint(1, 3) for _ in range(draft.random.randint(0, 3))]
    return scope.constant(draft.array(draft.random.choice((FLOAT, FLOAT, INT64, BOOL)), shape))


# With weights.
SMALL_OPS = ((unary, 3), (binary, 6), (mat_mul, 2), (reduce_sum, 2), (reduce_max, 1), (concat, 2),
             (slice_some, 2), (gather, 2), (transpose, 1), (reshape, 1), (shape, 1), (cast, 1),
             (where, 1), (compare, 1), (logic, 1), (non_zero, 0.5), (unsqueeze, 1), (squeeze, 0.5),
             (split, 0.5), (constant, 1))
