"""Values and graphs under construction, for nested_graphs.py: what a value can be used for is known
while a model is drawn, so that the model is valid for all sizes of its inputs.

Numbers stay small, and what decides (conditions, indices, conversions to integers) is computed from
numbers that no rounding has changed, or compared with numbers that no sum comes close to.
"""

import dataclasses
import math
import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DTYPES = {FLOAT: np.float32, INT64: np.int64, BOOL: np.bool_}
MAX_ELEMENTS = 1500  # of a tensor
MAX_NODES = 160  # of a model
ODD_NUMBERS = (0.3137, -0.4719, 1.1813, -1.7321, 2.2371, 0.0713)


@dataclasses.dataclass(frozen=True)
class Value:
    """`dims` are numbers or names of symbols, None if the rank is unknown. Of a sequence, they are
    those of all elements, with None where elements differ."""

    name: str
    element: int
    dims: tuple | None
    bound: float = 4.0  # no element is larger
    bits: int | None = None  # a multiple of 2**-bits that no rounding has changed; None: rounded
    # Or "words", a tensor of strings; "sequence"; "optional", which contains a tensor.
    kind: str = "tensor"
    length: int = 0  # of a sequence: the least one
    longest: int = 0

    def is_exact(self):
        return self.element != FLOAT or self.bits is not None

    def is_tensor(self, *elements):
        return self.kind == "tensor" and (not elements or self.element in elements)

    def has_dims(self, *elements):
        return self.is_tensor(*elements) and self.dims is not None


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A size that is the same in one run of the graph of this depth; 0 is the model's graph."""

    level: int
    least: int
    most: int


@dataclasses.dataclass
class Input:
    value: Value
    draw: object  # a function of the sizes by symbol that returns what is fed


class Draft:
    """A model under construction."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.opset = self.random.randint(13, 21)
        self.symbols = {}
        self.inputs = []
        self.count = 0
        self.nodes = 0
        self.has_words = False  # whether ops on strings are drawn
        self.root = Scope(self, None)

    def chance(self, share):
        return self.random.random() < share

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def symbol(self, level, least, most, name=None):
        name = name or self.name("?")
        self.symbols[name] = Symbol(level, least, most)
        return name

    def least(self, dim):
        return self.symbols[dim].least if isinstance(dim, str) else dim

    def most(self, dim):
        return self.symbols[dim].most if isinstance(dim, str) else dim

    def most_elements(self, dims):
        return math.prod(self.most(dim) for dim in dims)

    def input(self, element, dims, draw_elements, kind="tensor", **of_value):
        """A new input of the model; `draw_elements` returns an array for a shape."""
        bits = 2 if element == FLOAT else None
        value = Value(self.name("in"), element, dims, bits=bits, kind=kind, **of_value)

        def draw(sizes):
            shape = [sizes.get(dim, dim) for dim in dims]
            if kind == "optional" and self.chance(0.4):
                return None
            if kind != "sequence":
                return draw_elements(shape)
            return [draw_elements([self.random.randint(1, 3) if size is None else size
                                   for size in shape])
                    for _ in range(self.random.randint(value.length, value.longest))]

        self.inputs.append(Input(value, draw))
        self.root.values.append(value)
        return value

    def array(self, element, shape):
        """Random numbers; floats are multiples of 1/4."""
        count = math.prod(shape)
        if element == FLOAT:
            drawn = [self.random.randint(-8, 8) / 4 for _ in range(count)]
        elif element == INT64:
            drawn = [self.random.randint(-3, 4) for _ in range(count)]
        else:
            drawn = [self.chance(0.5) for _ in range(count)]
        return np.array(drawn, DTYPES[element]).reshape(shape)


class Scope:
    """A graph under construction: the model's, or a body in the scope of its parent."""

    def __init__(self, draft, parent):
        self.draft, self.parent = draft, parent
        self.level = 0 if parent is None else parent.level + 1
        self.nodes, self.initializers, self.values = [], [], []

    def chain(self):
        scope = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def pick(self, accepts):
        """A visible value for which accepts() is true, of any enclosing graph; None if there is
        none."""
        found = [values for scope in self.chain()
                 if (values := [value for value in scope.values if accepts(value)])]
        if not found:
            return None
        random = self.draft.random
        values = found[0] if self.draft.chance(0.5) else random.choice(found)
        return values[max(random.randrange(len(values)), random.randrange(len(values)))]

    def sees(self, value):
        return any(value in scope.values for scope in self.chain())

    def symbol(self, least, most):
        return self.draft.symbol(self.level, least, most)

    def outside(self, dims):
        """Dimensions of a value of a body in this scope, as they are known here."""
        if dims is None:
            return None
        draft = self.draft
        return tuple(
            self.symbol(draft.least(dim), draft.most(dim))
            if isinstance(dim, str) and draft.symbols[dim].level > self.level else dim
            for dim in dims)

    def joined(self, one, other):
        """Dimensions of a value that has the dimensions of either."""
        if one is None or other is None or len(one) != len(other):
            return None
        draft = self.draft
        return tuple(
            left if left == right else
            self.symbol(min(draft.least(left), draft.least(right)),
                        max(draft.most(left), draft.most(right)))
            for left, right in zip(self.outside(one), self.outside(other), strict=True))

    def is_invariant(self, value):
        """Whether the dimensions are the same in all runs of this body."""
        return value.dims is not None and all(
            not isinstance(dim, str) or self.draft.symbols[dim].level < self.level
            for dim in value.dims)

    def node(self, op, inputs, outputs, **attributes):
        """Adds a node. Names of nodes are unique in one graph only."""
        random = self.draft.random
        number = len(self.nodes)
        name = random.choice((f"node{number}", f"{op}{number}", ""))
        self.nodes.append(helper.make_node(
            op, [each if isinstance(each, str) else each.name for each in inputs],
            [value.name for value in outputs], name, **attributes))
        self.draft.nodes += 1
        self.values.extend(outputs)

    def result(self, op, inputs, element, dims, bound=4.0, bits=None, *, attributes=None,
               **of_value):
        """Adds a node with one output; its value."""
        if element == FLOAT and bits is not None and (bits > 12 or bound * 2**bits > 2**22):
            bits = None
        value = Value(self.draft.name("v"), element, dims, bound, bits, **of_value)
        self.node(op, inputs, [value], **(attributes or {}))
        return value

    def constant(self, array, is_listed=True):
        """A constant of this graph, or of an enclosing one. Other nodes may use it if it is
        listed."""
        array = np.asarray(array)
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        bound = float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0
        bits = 2 if element == FLOAT else None
        if bits is not None and (array * 4 % 1).any():
            bits = None
        value = Value(self.draft.name("c"), element, array.shape, bound, bits)
        if self.draft.chance(0.4):
            self._constant_node(value, array)
            scope = self
        else:
            scope = self if self.draft.chance(0.6) else self.draft.random.choice([*self.chain()])
            scope.initializers.append(numpy_helper.from_array(array, value.name))
        if is_listed:
            scope.values.append(value)
        return value

    def _constant_node(self, value, array):
        if array.dtype == np.int64 and array.ndim == 1 and array.size and self.draft.chance(0.5):
            attributes = {"value_ints": array.tolist()}
        elif array.dtype == np.float32 and array.ndim == 0 and self.draft.chance(0.5):
            attributes = {"value_float": float(array)}
        else:
            attributes = {"value": numpy_helper.from_array(array)}
        self.nodes.append(helper.make_node("Constant", [], [value.name], **attributes))

    def integers(self, *numbers):
        """A parameter such as axes."""
        return self.constant(np.array(numbers, np.int64), is_listed=False)

    def graph(self, inputs, outputs):
        """The body with these declared inputs and outputs, whose types say all or less of what is
        known."""
        return helper.make_graph(self.nodes, self.draft.name("body"), inputs, outputs,
                                 self.initializers)

    def declared(self, value, least_style="element"):
        """ONNX Runtime requires the ranks of some values, and ONNX those of the model's."""
        styles = ("all", "all", "all", "rank", "element", "element")[
            :{"all": 3, "rank": 4, "element": 6 if self.level else 4}[least_style]]
        style = self.draft.random.choice(styles)
        dims = value.dims
        if dims is None or style == "element":
            shape = None
        else:
            known = {name for name, symbol in self.draft.symbols.items() if name.isalpha()}
            shape = [dim if style == "all" and (dim in known or not isinstance(dim, str)) else None
                     for dim in dims]
        return helper.make_value_info(value.name, type_of(value, shape))


def type_of(value, shape):
    kind = helper.make_tensor_type_proto(value.element, shape)
    if value.kind == "sequence":
        return helper.make_sequence_type_proto(kind)
    return helper.make_optional_type_proto(kind) if value.kind == "optional" else kind
