"""Random nodes of operator sets 1 to 9 in versions that ONNX has replaced or removed, and what they
give: by NumPy, or by ONNX Runtime on a node of a newer version."""

from dataclasses import dataclass, field

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from small_models import model_of, tensor_type

onnxruntime.set_default_logger_severity(4)

F32 = np.float32


@dataclass
class Case:
    op: str
    opset: int
    attributes: dict
    arrays: list  # None for one that is left out
    expected: list  # arrays
    constants: tuple = ()  # indices of arrays that the model contains

    def model(self):
        names = [f"i{index}" if array is not None else ""
                 for index, array in enumerate(self.arrays)]
        outputs = [f"o{index}" for index in range(len(self.expected))]
        fed = {names[index]: type_of(array) for index, array in enumerate(self.arrays)
               if array is not None and index not in self.constants}
        weights = {names[index]: self.arrays[index] for index in self.constants}
        node = helper.make_node(self.op, names, outputs, "n", **self.attributes)
        given = {name: type_of(array) for name, array in zip(outputs, self.expected)}
        return model_of([node], fed, given, weights, opset=self.opset, ir_version=3)

    def fed(self):
        return [array for index, array in enumerate(self.arrays)
                if array is not None and index not in self.constants]


@dataclass
class Draw:
    """Random choices for one case."""

    rng: np.random.Generator
    opset: int
    attributes: dict = field(default_factory=dict)

    def one_of(self, *values):
        return values[self.rng.integers(len(values))]

    def array(self, *shape, kind=F32):
        return (self.rng.normal(size=shape) * 2).astype(kind)

    def shape(self, least=1, most=4):
        return tuple(int(size) for size in
                     self.rng.integers(1, 5, size=self.rng.integers(least, most + 1)))

    def given(self, name, value, default=None):
        """The value of an attribute that the node may leave out."""
        if self.rng.integers(2):
            return default
        self.attributes[name] = value
        return value

    def consume(self, count=1):
        if self.opset < 6:
            self.given("consumed_inputs", [0] * count)


def type_of(array):
    return tensor_type(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def by_onnxruntime(node, arrays, opset, outputs=1):
    """The outputs of a node in an operator set that ONNX Runtime has."""
    names = [f"i{index}" for index in range(len(arrays))]
    made = [f"o{index}" for index in range(outputs)]
    model = model_of([helper.make_node(node[0], names, made, **node[1])],
                     {name: type_of(array) for name, array in zip(names, arrays)}, made,
                     opset=opset)
    for output in model.graph.output:
        output.ClearField("type")
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays)))


# --- First versions ------------------------------------------------------------------------------

UNARY = {"Abs": np.abs, "Ceil": np.ceil, "Exp": np.exp, "Floor": np.floor, "Log": np.log,
         "Neg": np.negative, "Reciprocal": np.reciprocal, "Relu": lambda x: np.maximum(x, 0),
         "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Sqrt": np.sqrt, "Tanh": np.tanh}
LISTS = {"Max": np.max, "Mean": np.mean, "Min": np.min, "Sum": np.sum}
ARITHMETIC = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract,
              "Pow": np.power, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
              "Equal": np.equal, "Greater": np.greater, "Less": np.less}


def unary(draw):
    op = draw.one_of(*UNARY)
    x = draw.array(*draw.shape())
    if op in ("Log", "Sqrt"):
        x = np.abs(x)
    draw.consume()
    return op, [x], [UNARY[op](x)]


def activation(draw):
    x = draw.array(*draw.shape())
    op = draw.one_of("Elu", "LeakyRelu", "HardSigmoid", "Selu")
    draw.consume()
    defaults = {"Elu": (1, 0), "LeakyRelu": (0.01, 0), "HardSigmoid": (0.2, 0.5),
                "Selu": (1.6732, 1.0507)}[op]
    alpha = draw.given("alpha", 0.75, defaults[0])
    if op == "HardSigmoid":
        beta = draw.given("beta", 0.25, defaults[1])
        return op, [x], [np.clip(F32(alpha) * x + F32(beta), 0, 1)]
    if op == "LeakyRelu":
        return op, [x], [np.where(x < 0, F32(alpha) * x, x)]
    gamma = draw.given("gamma", 2.0, defaults[1]) if op == "Selu" else 1
    return op, [x], [F32(gamma) * np.where(x < 0, F32(alpha) * np.expm1(x), x)]


def arithmetic(draw):
    op = draw.one_of(*ARITHMETIC)
    a = draw.array(*draw.shape(least=2))
    first = int(draw.rng.integers(a.ndim))
    b_shape = draw.one_of(a.shape, (), (1,), a.shape[first:],
                          a.shape[first:int(draw.rng.integers(first, a.ndim)) + 1])
    b = draw.array(*b_shape)
    aligned = b
    if b.shape != a.shape:
        draw.attributes["broadcast"] = 1
        is_suffix = a.shape[a.ndim - b.ndim:] == b.shape
        if b.shape not in ((), (1,)) and (not is_suffix or draw.rng.integers(2)):
            draw.attributes["axis"] = first
            aligned = b.reshape(b.shape + (1,) * (a.ndim - first - b.ndim))
    if op in ("Add", "Div", "Mul", "Sub"):
        draw.consume(2)
    if op == "Pow":
        a = np.abs(a)
    if op in ("And", "Or", "Xor"):
        a, b, aligned = a > 0, b > 0, aligned > 0
    if op == "Div":
        b = np.where(b == 0, F32(1), b)
        aligned = b.reshape(aligned.shape)
    return op, [a, b], [ARITHMETIC[op](a, aligned)]


def listed(draw):
    op = draw.one_of(*LISTS)
    shape = draw.shape()
    arrays = [draw.array(*shape) for _ in range(draw.rng.integers(1, 4))]
    draw.consume(len(arrays))
    return op, arrays, [LISTS[op](np.stack(arrays), axis=0).astype(F32)]


def clip(draw):
    x = draw.array(*draw.shape())
    x.flat[0] = draw.one_of(np.inf, -np.inf, 1)
    low = draw.given("min", -0.5, -np.inf)
    high = draw.given("max", 1.5, np.inf)
    draw.consume()
    return "Clip", [x], [np.clip(x, F32(low), F32(high))]


def concat(draw):
    shape = draw.shape(least=2)
    axis = draw.given("axis", int(draw.rng.integers(len(shape))), 1)
    arrays = [draw.array(*shape) for _ in range(draw.rng.integers(1, 4))]
    draw.opset = min(draw.opset, 3)
    return "Concat", arrays, [np.concatenate(arrays, axis)]


def cast(draw):
    name = draw.one_of("FLOAT", "DOUBLE", "FLOAT16", "INT32", "INT64", "BOOL", "UINT8", "INT8")
    x = np.abs(draw.array(*draw.shape())) * 10
    draw.attributes["to"] = name
    kind = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(name))
    return "Cast", [x.astype(F32)], [x.astype(F32).astype(kind)]


def pad(draw):
    shape = tuple(size + 3 for size in draw.shape())
    mode = draw.given("mode", draw.one_of("edge", "reflect", "constant"), "constant")
    before, after = draw.rng.integers(0, 3, size=(2, len(shape)))
    draw.attributes["paddings"] = [int(size) for size in (*before, *after)]
    more = {}
    if mode == "constant":
        more["constant_values"] = draw.given("value", 3.0, 0)
    draw.opset = 1
    x = draw.array(*shape)
    return "Pad", [x], [np.pad(x, list(zip(before, after)), mode, **more)]


def reshape(draw):
    x = draw.array(*draw.one_of((2, 3, 4), (6, 4), (24,)))
    shape = draw.one_of((-1,), (0, -1), (4, 6), (2, -1, 2), (24, 1))
    real = [x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    draw.attributes["shape"] = list(shape)
    draw.opset = min(draw.opset, 4)
    draw.consume()
    return "Reshape", [x], [x.reshape(real)]


def split(draw):
    shape = tuple(size + 2 for size in draw.shape())
    axis = int(draw.rng.integers(len(shape)))
    draw.attributes["axis"] = axis
    x = draw.array(*shape)
    draw.opset = 1
    first = int(draw.rng.integers(1, shape[axis]))
    lengths = [first, shape[axis] - first]
    arrays = [x]
    way = draw.one_of("attribute", "input", "equal")
    if way == "attribute":
        draw.attributes["split"] = lengths
    elif way == "input":
        arrays.append(np.array(lengths, F32))
    else:
        lengths = [shape[axis] // 2] * 2 if shape[axis] % 2 == 0 else [shape[axis]]
    return "Split", arrays, np.split(x, np.cumsum(lengths)[:-1], axis), (1,)[:len(arrays) - 1]


def tile(draw):
    x = draw.array(*draw.shape())
    count, axis = int(draw.rng.integers(1, 5)), int(draw.rng.integers(x.ndim))
    repeats = [count if index == axis else 1 for index in range(x.ndim)]
    shape = draw.one_of((), (1,))
    return ("Tile", [x, np.full(shape, count, F32), np.full(shape, axis, F32)],
            [np.tile(x, repeats)], (1, 2))


def normalization(draw):
    x = draw.array(*draw.shape(least=3))
    channels = x.shape[1]
    scale, shift, mean = (draw.array(channels) for _ in range(3))
    along = (channels,) + (1,) * (x.ndim - 2)
    epsilon = draw.given("epsilon", 0.125, 1e-5)
    if draw.rng.integers(2):
        draw.consume(3)
        axes = tuple(range(2, x.ndim))
        center = x - x.mean(axes, keepdims=True, dtype=np.float64)
        spread = np.sqrt((center**2).mean(axes, keepdims=True) + epsilon)
        expected = center / spread * scale.reshape(along) + shift.reshape(along)
        return "InstanceNormalization", [x, scale, shift], [expected.astype(F32)]
    variance = np.abs(mean) + F32(0.5)
    draw.attributes["is_test"] = 1
    draw.given("momentum", 0.5)
    draw.given("spatial", 1)
    if draw.opset < 6:
        draw.attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    factor = scale / np.sqrt(variance + F32(epsilon))
    expected = (x - mean.reshape(along)) * factor.reshape(along) + shift.reshape(along)
    return "BatchNormalization", [x, scale, shift, mean, variance], [expected]


def prelu(draw):
    x = draw.array(*draw.shape(least=2))
    slope = draw.array(draw.one_of(1, x.shape[1]))
    draw.consume()
    aligned = slope.reshape((-1,) + (1,) * (x.ndim - 2)) if slope.size > 1 else slope
    return "PRelu", [x, slope], [np.where(x < 0, x * aligned, x)]


def dropout(draw):
    x = draw.array(*draw.shape())
    draw.attributes["is_test"] = 1
    draw.given("ratio", 0.25)
    draw.consume()
    return "Dropout", [x], [x]


def gemm(draw):
    a, b = draw.array(3, 4), draw.array(4, 5)
    c = draw.array(*draw.one_of((3, 5), (5,), (1,)))
    if c.shape != (3, 5):
        draw.attributes["broadcast"] = 1
    alpha, beta = draw.given("alpha", 0.5, 1), draw.given("beta", 2.0, 1)
    left = draw.given("transA", 1, 0)
    right = draw.given("transB", 1, 0)
    expected = F32(alpha) * (a @ b) + F32(beta) * c
    return "Gemm", [a.T.copy() if left else a, b.T.copy() if right else b, c], [expected]


def gru(draw):
    hidden, size = 3, 2
    arrays = [draw.array(4, 2, size), draw.array(1, 3 * hidden, size),
              draw.array(1, 3 * hidden, hidden)]
    draw.opset = min(draw.opset, 2)
    attributes = {"hidden_size": hidden}
    direction = draw.given("direction", draw.one_of("forward", "reverse"), "forward")
    draw.attributes.update(attributes, **draw.one_of({}, {"output_sequence": 1}))
    expected = by_onnxruntime(("GRU", {**attributes, "direction": direction}), arrays, 7, outputs=2)
    return "GRU", arrays, expected


def lp_pool(draw):
    x = draw.array(*draw.shape(least=1, most=2), 4, 5)
    while x.ndim < 4:
        x = x[None]
    draw.opset = 1
    p = draw.given("p", 3.0, 2.0)
    if draw.rng.integers(2):
        return "GlobalLpPool", [x], by_onnxruntime(("GlobalLpPool", {"p": int(p)}), [x], 2)
    attributes = {"kernel_shape": [2, 3], "pads": [0, 1, 1, 1]}
    draw.attributes.update(attributes)
    return "LpPool", [x], by_onnxruntime(("LpPool", {**attributes, "p": int(p)}), [x], 2)


def unchanged(draw):
    """Definitions of operator set 1 that ONNX Runtime has."""
    x = draw.array(*draw.shape(least=2))
    op, attributes, outputs = draw.one_of(
        ("Softmax", {"axis": 1}, 1), ("LogSoftmax", {}, 1), ("Flatten", {"axis": 0}, 1),
        ("ReduceMean", {"axes": [1]}, 1), ("ReduceSum", {"keepdims": 0}, 1),
        ("ArgMax", {"axis": 1}, 1), ("Slice", {"starts": [0], "ends": [-1], "axes": [1]}, 1),
        ("TopK", {"k": 1, "axis": 1}, 2), ("Transpose", {}, 1), ("Unsqueeze", {"axes": [1]}, 1),
        ("Squeeze", {}, 1), ("Softplus", {}, 1), ("Softsign", {}, 1), ("Identity", {}, 1))
    draw.attributes = attributes
    return op, [x], by_onnxruntime((op, attributes), [x], draw.opset, outputs)


# --- Experiments ---------------------------------------------------------------------------------


def experiment(draw):
    """Experiments that ONNX Runtime has kept."""
    x = draw.array(*draw.shape(least=1, most=2), 5, 6)
    while x.ndim < 4:
        x = x[None]
    op, attributes = draw.one_of(
        ("Affine", draw.one_of({}, {"alpha": 0.5}, {"beta": 1.5}, {"alpha": 2.0, "beta": 3.0})),
        ("ParametricSoftplus", {"alpha": 0.5, "beta": 1.5}),
        ("ScaledTanh", {"alpha": 0.5, "beta": 1.5}),
        ("Scale", draw.one_of({}, {"scale": 0.5})),
        ("ThresholdedRelu", draw.one_of({}, {"alpha": 0.5})),
        ("ImageScaler", {"bias": [float(index) for index in range(x.shape[1])],
                         **draw.one_of({}, {"scale": 0.5})}),
        ("Crop", {"border": [1, 0, 2, 3], **draw.one_of({}, {"scale": [2, 3]})}),
        ("MeanVarianceNormalization", draw.one_of(
            {}, {"across_channels": 1}, {"normalize_variance": 0},
            {"across_channels": 1, "normalize_variance": 0})))
    if op == "MeanVarianceNormalization":
        draw.opset = min(draw.opset, 8)
    draw.attributes = attributes
    return op, [x], by_onnxruntime((op, attributes), [x], draw.opset)


def dynamic_slice(draw):
    x = draw.array(4, 5)
    bounds = draw.one_of(([1], [3], [0]), ([0, 1], [-1, 4], [0, 1]), ([-2], [2**40], [1]))
    arrays = [x, *(np.array(values, np.int64) for values in bounds)]
    return "DynamicSlice", arrays, by_onnxruntime(("DynamicSlice", {}), arrays, draw.opset)


def constant_fill(draw):
    value = draw.given("value", 3.0, 0.0)
    number = draw.given("dtype", draw.one_of(TensorProto.FLOAT, TensorProto.INT64), 1)
    kind = helper.tensor_dtype_to_np_dtype(number)
    extra = draw.given("extra_shape", [2], [])
    way = draw.one_of("attribute", "input", "input as shape")
    if way == "attribute":
        draw.attributes.pop("extra_shape", None)
        draw.attributes["shape"] = [3, 2]
        return "ConstantFill", [], [np.full((3, 2), value, kind)]
    if way == "input":
        return "ConstantFill", [draw.array(2, 3)], [np.full((2, 3, *extra), value, kind)]
    draw.attributes["input_as_shape"] = 1
    return ("ConstantFill", [np.array([2, 3], np.int64)], [np.full((2, 3, *extra), value, kind)])


FIRST_VERSIONS = (unary, activation, arithmetic, listed, clip, concat, cast, pad, reshape, split,
                  tile, normalization, prelu, dropout, gemm, gru, lp_pool, unchanged)
EXPERIMENTS = (experiment, dynamic_slice, constant_fill)


def random_case(seed):
    rng = np.random.default_rng(seed)
    is_experiment = rng.integers(4) == 0
    rows = EXPERIMENTS if is_experiment else FIRST_VERSIONS
    draw = Draw(rng, int(rng.integers(1, 10 if is_experiment else 6)))
    with np.errstate(all="ignore"):
        op, arrays, expected, *constants = rows[rng.integers(len(rows))](draw)
    return Case(op, draw.opset, draw.attributes, arrays, expected, *constants)
