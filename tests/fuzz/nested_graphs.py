"""Draws models with nested graphs: If, Loop, Scan, SequenceMap, and lists, optionals and strings that
go through them. nested_ops.py has the small ops of the bodies, nested_values.py what is known of their
values."""

import dataclasses

import numpy as np
from onnx import helper

from nested_lists import LIST_OPS, element_like, inserted
from nested_ops import SMALL_OPS, combine, concatenated, fits_beside, limited, scalar, sliced
from nested_trips import body_condition, condition, draw_trips
from nested_values import BOOL, FLOAT, INT64, MAX_NODES, Draft, Scope, Value, type_of
from nested_words import STRING, WORD_OPS, are_words, constant_words, drawn_words, next_words

MAX_DEPTH = 3


def draw(seed):
    """The model of this number, which is always the same, and three feeds of different sizes: a plan
    for the first, a plan for a family of shapes, and other sizes in that."""
    draft = Draft(seed)
    random, root = draft.random, draft.root
    least = 0 if draft.chance(0.05) else 1
    for name in ("n", "m"):
        draft.symbol(0, least, 5, name)
    for element in [FLOAT] * random.randint(1, 3) + [INT64, BOOL][:random.randint(0, 2)]:
        dims = [random.choice(("n", "n", "m", 1, 2, 3)) for _ in range(random.randint(0, 3))]
        draft.input(element, tuple(dims),
                    lambda shape, element=element: draft.array(element, shape))
    if draft.chance(0.1):
        draft.input(FLOAT, (random.choice((None, "n", 2)),),
                    lambda shape: draft.array(FLOAT, shape), "sequence",
                    length=random.randint(0, 1), longest=3)
    if draft.chance(0.1) and draft.opset >= 15:
        draft.input(FLOAT, (random.choice(("n", 2)),), lambda shape: draft.array(FLOAT, shape),
                    "optional")
    if draft.chance(0.2):
        draft.input(STRING, random.choice(((), ("n",), (2, "m"))),
                    lambda shape: drawn_words(draft, shape), "words")
    draft.has_words = draft.chance(0.3)
    nested = random.choice((add_if, add_loop, add_scan))
    grow(root, random.randint(1, 4))
    nested(root)
    grow(root, random.randint(1, 5))
    model = finished(draft)
    feeds = []
    for _ in range(3):
        sizes = {name: random.randint(draft.symbols[name].least, 5) for name in ("n", "m")}
        feeds.append({each.value.name: each.draw(sizes) for each in draft.inputs})
    return model, feeds


def finished(draft):
    root, random = draft.root, draft.random
    made = {name for node in root.nodes for name in node.output}
    # The format wants the rank of the model's outputs.
    values = [value for value in root.values if value.name in made and value.dims is not None]
    chosen = set(random.sample(range(len(values)), min(len(values), random.randint(1, 3))))
    outputs = [value for at, value in enumerate(values) if at in chosen or value in values[-3:]]
    inputs = []
    for each in draft.inputs:
        dims = each.value.dims
        if draft.chance(0.1):
            dims = [None if isinstance(dim, str) else dim for dim in dims]
        inputs.append(helper.make_value_info(each.value.name, type_of(each.value, dims)))
    graph = helper.make_graph(root.nodes, "g", inputs,
                              [root.declared(value) for value in outputs], root.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", draft.opset)],
                             ir_version=10)


def grow(scope, steps):
    """Adds small ops, and nested graphs unless the depth is reached."""
    draft = scope.draft
    nested = (0.35, 0.22, 0.12, 0)[scope.level]
    for _ in range(steps):
        if draft.nodes > MAX_NODES:
            return
        if draft.chance(nested):
            add = draft.random.choice((add_if, add_loop, add_loop, add_scan, add_map))
        elif draft.has_words and draft.chance(0.3):
            add = draft.random.choice(WORD_OPS)
        elif draft.chance(0.2):
            add = draft.random.choice(LIST_OPS)
        else:
            ops, weights = zip(*SMALL_OPS, strict=True)
            add = draft.random.choices(ops, weights)[0]
        add(scope)


def body_of(scope, inputs=(), most_steps=3):
    body = Scope(scope.draft, scope)
    body.values.extend(inputs)
    return body, scope.draft.random.randint(0, most_steps)


# --- Values of a wanted type ---------------------------------------------------------------------


def mixed(scope, base):
    """A value of the type of `base` that depends on it and on another visible value."""
    draft = scope.draft
    other = scope.pick(lambda value: value.is_tensor() and value.name != base.name)
    other = base if other is None else other
    number = scalar(scope, other, base.element)
    if base.element == BOOL:
        op = draft.random.choice(("And", "Or", "Xor"))
        return scope.result(op, [base, number], BOOL, base.dims)
    return combine(scope, draft.random.choice(("Add", "Sub", "Mul", "Max")), base, number)


def alike(scope, base):
    """A value of the type of `base`: often one that was computed here anyway."""
    made = [value for value in scope.values if value.is_tensor(base.element) and value != base
            and value.dims is not None and value.dims == base.dims]
    if made and scope.draft.chance(0.6):
        return scope.draft.random.choice(made)
    return mixed(scope, base)


def given_out(scope, value, taken, inputs=()):
    """The value, or its copy, as an output of this body. ONNX Runtime refuses outer values that are
    outputs, and what it collects of `inputs` of a body is often wrong."""
    draft = scope.draft
    if value in inputs and value.is_tensor():
        return computed_copy(scope, value)
    if draft.chance(0.015) or value in scope.values and (
            value.name not in taken or draft.chance(0.1)):
        return value
    least_opset = {"sequence": 14, "optional": 16}.get(value.kind, 0)
    if draft.opset >= least_opset:
        return scope.result("Identity", [value], value.element, value.dims, value.bound, value.bits,
                            kind=value.kind, length=value.length, longest=value.longest)
    return value


def computed_copy(scope, value):
    """A copy for which ONNX Runtime does not take the memory of the value."""
    if value.element == BOOL:
        return scope.result("And", [value, value], BOOL, value.dims)
    return scope.result("Max", [value, value], value.element, value.dims, value.bound, value.bits)


# --- If ------------------------------------------------------------------------------------------


def add_if(scope):
    draft = scope.draft
    if scope.level >= MAX_DEPTH:
        return None
    decides = condition(scope, may_have_axis=True)
    branches = []
    for _ in range(2):
        branch, steps = body_of(scope)
        grow(branch, steps)
        branches.append(branch)
    outputs, results = ([], []), []
    for _ in range(draft.random.randint(1, 3)):
        one, other = branch_outputs(branches)
        for branch, value, taken in zip(branches, (one, other), outputs, strict=True):
            taken.append(given_out(branch, value, {each.name for each in taken}))
        results.append(either(scope, outputs[0][-1], outputs[1][-1]))
    graphs = [branch.graph([], [*map(branch.declared, taken)])
              for branch, taken in zip(branches, outputs, strict=True)]
    scope.node("If", [decides], results, then_branch=graphs[0], else_branch=graphs[1])
    return results[0]


def branch_outputs(branches):
    """A value of each branch; both have the same type, and often the same shape."""
    then, otherwise = branches
    draft = then.draft
    kinds = ("tensor", "words") + (("sequence",) if draft.opset >= 14 else ())
    kinds += ("optional",) if draft.opset >= 16 else ()
    one = then.pick(lambda value: value.kind in kinds and (
        value.kind != "sequence" or value.length + value.longest > 0))
    if one.kind == "optional":
        return one, element_like(otherwise, one)
    if one.kind == "words":
        other = otherwise.pick(lambda value: are_words(value) and len(value.dims) == len(one.dims))
        return one, other or constant_words(
            otherwise, [2 if isinstance(dim, str) else dim for dim in one.dims])
    if one.kind == "sequence":
        other = otherwise.pick(lambda value: value.kind == "sequence"
                               and value.element == one.element)
        return one, other or inserted(otherwise, None, one.element)

    def fits(value):
        return value.is_tensor(one.element) and value.dims is not None and one.dims is not None

    other = otherwise.pick(lambda value: fits(value) and value.dims == one.dims)
    if other is None or draft.chance(0.3):
        is_wild = draft.chance(0.1)
        other = otherwise.pick(lambda value: fits(value) and (
            is_wild or len(value.dims) == len(one.dims))) or other
    if other is None:
        rank = 1 if one.dims is None else len(one.dims)
        shape = [2 if one.dims is None or isinstance(one.dims[at], str) else one.dims[at]
                 for at in range(rank)]
        other = otherwise.constant(draft.array(one.element, shape))
    return one, other


def either(scope, one, other):
    """The value of an If that gives one of both."""
    name = scope.draft.name("v")
    exact = one.is_exact() and other.is_exact()
    bits = max(one.bits or 0, other.bits or 0) if exact and one.element == FLOAT else None
    bound = max(one.bound, other.bound)
    if one.kind not in ("tensor", "words"):
        dims = list_dims(scope, one, other)
        return Value(name, one.element, dims, bound, bits, one.kind,
                     min(one.length, other.length), max(one.longest, other.longest))
    return Value(name, one.element, scope.joined(one.dims, other.dims), bound, bits, one.kind)


def list_dims(scope, *values):
    """The dimensions of all elements of lists, or of optionals."""
    all_dims = [value.dims for value in values if value.kind != "sequence" or value.longest]
    if not all_dims or None in all_dims or len(set(map(len, all_dims))) > 1:
        return None
    symbols = scope.draft.symbols
    return tuple(
        None if any(dim != dims[0] or isinstance(dim, str) and symbols[dim].level > scope.level
                    for dim in dims) else dims[0]
        for dims in zip(*all_dims, strict=True))


# --- Loop ----------------------------------------------------------------------------------------


def add_loop(scope):
    draft = scope.draft
    if scope.level >= MAX_DEPTH:
        return None
    trips = draw_trips(scope)
    body = Scope(draft, scope)
    iteration = Value(draft.name("i"), INT64, (), trips.most)
    goes_on = Value(draft.name("k"), BOOL, ())
    body.values.extend((iteration, goes_on))
    carried = [each for _ in range(draft.random.randint(0, 3))
               if (each := draw_carried(scope, body, trips.most))]
    if draft.chance(0.2) and carried and carried[0].mode == "keep":
        carried.append(twin_of(scope, body, carried[0]))
    body_inputs = [iteration, goes_on, *(each.inner for each in carried)]
    grow(body, draft.random.randint(1, 5))
    stays = body_condition(body, trips, iteration, goes_on)
    outputs = [given_out(body, stays, ())]
    for at, each in enumerate(carried):
        source = carried[0 if at else -1] if each.swaps else each
        value = next_value(body, each, source)
        outputs.append(given_out(body, value, {value.name for value in outputs}, [iteration]))
        each.last = outputs[-1]
    collected = collect(body, {value.name for value in outputs}, trips.least > 0,
                        draft.random.randint(0 if carried else 1, 2), body_inputs)
    results = [after_loop(scope, each) for each in carried]
    exact_trips = trips.least if trips.least == trips.most else None
    for value in collected:
        size = exact_trips if exact_trips is not None else scope.symbol(trips.least, trips.most)
        results.append(Value(draft.name("v"), value.element, (size, *value.dims), value.bound,
                             value.bits, value.kind))
    graph = body.graph([body.declared(value, "all" if at < 2 else "element")
                        for at, value in enumerate(body_inputs)],
                       declared_outputs(body, [*outputs, *collected]))
    scope.node("Loop", [trips.count, trips.condition, *(each.first for each in carried)], results,
               body=graph)
    return results[0]


def declared_outputs(body, outputs, is_scan=False):
    """Of a Loop or a Scan. Types are whole where possible, because those of no iterations follow
    from them."""
    return [body.declared(value, "all" if all(isinstance(dim, int) for dim in value.dims or "?")
                          else "rank" if is_scan else "element") for value in outputs]


@dataclasses.dataclass
class Carried:
    """A carried value: outside before the loop, inside, what the body gives, and how it changes."""

    first: Value
    inner: Value
    mode: str
    axis: int = 0
    piece: Value = None
    last: Value = None
    swaps: bool = False


def draw_carried(scope, body, most_trips):
    draft = scope.draft
    random = draft.random
    if draft.chance(0.15):
        return draw_carried_list(scope, body, most_trips)
    if draft.has_words and draft.chance(0.3):
        first = scope.pick(are_words) or constant_words(scope)
        inner = Value(draft.name("s"), STRING, first.dims, kind="words")
        body.values.append(inner)
        return Carried(first, inner, "words")
    first = scope.pick(lambda value: value.is_tensor())
    if first is None:
        return None
    bound = max(first.bound, 4)
    mode = "keep" if not first.dims else random.choice(("keep", "keep", "keep", "grow", "shrink",
                                                        "deeper"))
    if mode == "deeper" and draft.chance(0.7):
        mode = "grow"
    inner = Value(draft.name("s"), first.element, first.dims, bound)
    if mode in ("grow", "shrink"):
        axis = random.randrange(len(first.dims))
        others = (*first.dims[:axis], 0, *first.dims[axis + 1:])
        # The piece is chosen before, because what is in the body depends on the size.
        piece = scope.pick(lambda value: fits_beside(first, value, axis)
                           and draft.most(value.dims[axis]) <= 3)
        least, most = draft.least(first.dims[axis]), draft.most(first.dims[axis])
        if mode == "grow":
            most += most_trips * (1 if piece is None else draft.most(piece.dims[axis]))
        else:
            least, piece = 0, None
        size = draft.symbol(body.level, least, most)
        dims = (*others[:axis], size, *others[axis + 1:])
        if draft.most_elements(dims) > 600:
            return None
        if piece is not None:
            bound = max(bound, piece.bound)
        inner = Value(inner.name, first.element, dims, bound)
        each = Carried(first, inner, mode, axis, piece)
    else:
        if mode == "deeper":
            inner = Value(inner.name, first.element, None, bound)
        each = Carried(first, inner, mode)
    body.values.append(inner)
    return each


def twin_of(scope, body, each):
    """Another value with the type of a carried one; the body swaps both."""
    first = mixed(scope, each.first)
    inner = dataclasses.replace(each.inner, name=scope.draft.name("s"),
                                bound=max(each.inner.bound, first.bound))
    bound = inner.bound
    body.values[body.values.index(each.inner)] = each.inner = dataclasses.replace(
        each.inner, bound=bound)
    body.values.append(inner)
    each.swaps = True
    return Carried(first, inner, "keep", swaps=True)


def draw_carried_list(scope, body, most_trips):
    draft = scope.draft
    first = scope.pick(lambda value: value.kind == "sequence" and value.longest <= 6)
    if first is None or draft.chance(0.5):
        first = inserted(scope, None, draft.random.choice((FLOAT, FLOAT, INT64)),
                         is_empty=draft.chance(0.7))
    inner = Value(draft.name("s"), first.element, None, max(first.bound, 4), None, "sequence", 0,
                  first.longest + most_trips)
    body.values.append(inner)
    return Carried(first, inner, "list")


def next_value(body, each, source):
    """What the body gives for the next iteration."""
    draft = body.draft
    inner = source.inner
    if each.mode == "words":
        return next_words(body, inner)
    if each.mode == "list":
        return inserted(body, inner, inner.element, most_bound=inner.bound)
    if each.mode == "keep":
        if each.swaps and draft.chance(0.7):
            value = inner
        else:
            value = alike(body, inner)
    elif each.mode == "shrink":
        value = inner if draft.chance(0.1) else sliced(
            body, inner, each.axis, draft.random.choice(("rest", "shorter", "every second")))
    elif each.mode == "deeper":
        value = body.result("Unsqueeze", [inner, body.integers(0)], inner.element, None,
                            inner.bound)
    else:
        piece = each.piece or sliced(body, inner, each.axis, "first")
        value = concatenated(body, [inner, piece] if draft.chance(0.7) else [piece, inner],
                             each.axis) or inner
    return limited(body, value, inner.bound)


def after_loop(scope, each):
    """The value of an output of a Loop or a Scan that is a carried value."""
    name = scope.draft.name("v")
    first, inner = each.first, each.inner
    if each.mode == "list":
        lists = [first, each.last]
        dims = None if each.last.dims is None else list_dims(scope, *lists)
        return Value(name, first.element, dims, inner.bound, None, "sequence", 0, inner.longest)
    dims = first.dims if each.mode in ("keep", "words") else scope.outside(inner.dims)
    return Value(name, first.element, dims, inner.bound, kind=inner.kind)


def collect(body, taken, runs, count, inputs=(), kinds=("tensor",)):
    """Values of which an output has one for each iteration. If the body might not run, all of their
    sizes are numbers. ONNX Runtime loses strings that a Loop collects
    (findings/onnxruntime_loop_collects_strings.sh)."""
    draft = body.draft
    collected = []
    for _ in range(count):
        value = body.pick(lambda value: value.kind in kinds
                          and body.is_invariant(value)
                          and draft.most_elements(value.dims) < 300
                          and (runs or all(isinstance(dim, int) for dim in value.dims)))
        if value is None:
            value = scalar(body, body.pick(lambda value: value.is_tensor()))
        names = taken | {each.name for each in collected}
        collected.append(given_out(body, value, names, inputs))
    return collected


# --- Scan ----------------------------------------------------------------------------------------


def add_scan(scope):
    draft = scope.draft
    random = draft.random
    first = None if scope.level >= MAX_DEPTH else scope.pick(
        lambda value: is_scannable(draft, value) and any(draft.most(dim) < 7 for dim in value.dims))
    if first is None:
        return None
    size = random.choice([dim for dim in first.dims if draft.most(dim) < 7])
    scanned = [first]
    while len(scanned) < 3 and draft.chance(0.4):
        scanned.append(scope.pick(
            lambda value: is_scannable(draft, value) and size in value.dims))
    body = Scope(draft, scope)
    states = []
    for _ in range(random.randint(0, 2)):
        state = scope.pick(lambda value: value.has_dims() and draft.most_elements(value.dims) < 300)
        inner = Value(draft.name("s"), state.element, state.dims, max(state.bound, 4))
        states.append(Carried(state, inner, "keep"))
    axes = [random.choice([at for at, dim in enumerate(value.dims) if dim == size])
            for value in scanned]
    elements = [dataclasses.replace(value, name=draft.name("e"),
                                    dims=(*value.dims[:axis], *value.dims[axis + 1:]))
                for value, axis in zip(scanned, axes, strict=True)]
    body_inputs = [*(each.inner for each in states), *elements]
    body.values.extend(body_inputs)
    grow(body, random.randint(1, 4))
    outputs = []
    for each in states:
        value = limited(body, alike(body, each.inner), each.inner.bound)
        outputs.append(given_out(body, value, {value.name for value in outputs}, body_inputs))
        each.last = outputs[-1]
    collected = collect(body, {value.name for value in outputs}, True,
                        random.randint(0 if states else 1, 3), body_inputs, ("tensor", "words"))
    results = [after_loop(scope, each) for each in states]
    # ONNX Runtime crashes at other axes of empty outputs.
    output_axes = [random.randint(0, len(value.dims))
                   if draft.chance(0.3) and all(map(draft.least, value.dims)) else 0
                   for value in collected]
    for value, axis in zip(collected, output_axes, strict=True):
        dims = (*value.dims[:axis], size, *value.dims[axis:])
        results.append(Value(draft.name("v"), value.element, dims, value.bound, value.bits,
                             value.kind))
    attributes = {
        "scan_input_axes": signed(draft, axes, [len(value.dims) for value in scanned]),
        "scan_input_directions": [int(draft.chance(0.3)) for _ in scanned],
        "scan_output_axes": signed(draft, output_axes, [len(v.dims) + 1 for v in collected]),
        "scan_output_directions": [int(draft.chance(0.3)) for _ in collected]}
    attributes = {name: numbers for name, numbers in attributes.items()
                  if any(numbers) or numbers and draft.chance(0.3)}
    graph = body.graph([*map(body.declared, body_inputs)],
                       declared_outputs(body, [*outputs, *collected], is_scan=True))
    scope.node("Scan", [*(each.first for each in states), *scanned], results, body=graph,
               num_scan_inputs=len(scanned), **attributes)
    return results[0]


def is_scannable(draft, value):
    """ONNX Runtime crashes at some Scans of empty tensors."""
    return value.has_dims() and value.dims and all(draft.least(dim) > 0 for dim in value.dims)


def signed(draft, axes, ranks):
    return [axis - rank if draft.chance(0.2) else axis
            for axis, rank in zip(axes, ranks, strict=True)]


# --- SequenceMap ---------------------------------------------------------------------------------


def add_map(scope):
    draft = scope.draft
    values = scope.pick(lambda value: value.kind == "sequence" and value.dims is not None)
    if draft.opset < 17 or scope.level >= MAX_DEPTH or values is None:
        return None
    body = Scope(draft, scope)
    inputs, inner = [values], []
    if draft.chance(0.3):
        inputs.append(values)
    if draft.chance(0.5):
        inputs.append(scope.pick(lambda value: value.is_tensor()))
    for value in inputs:
        dims = value.dims
        if value.kind == "sequence":
            dims = tuple(body.symbol(0, 20) if dim is None else dim for dim in dims)
        inner.append(Value(draft.name("e"), value.element, dims, value.bound, value.bits))
    body.values.extend(inner)
    grow(body, draft.random.randint(0, 3))
    outputs, results = [], []
    for _ in range(draft.random.randint(1, 2)):
        value = body.pick(lambda value: value.is_tensor())
        if value not in body.values:
            value = mixed(body, inner[0])
        outputs.append(given_out(body, value, {value.name for value in outputs}))
        dims = list_dims(scope, outputs[-1])
        results.append(Value(draft.name("v"), value.element, dims, value.bound, value.bits,
                             "sequence", values.length, values.longest))
    graph = body.graph([*map(body.declared, inner)], [*map(body.declared, outputs)])
    scope.node("SequenceMap", inputs, results, body=graph)
    # ONNX Runtime derives names of values from those of the nodes.
    scope.nodes[-1].name = draft.name("map")
    return results[0]
