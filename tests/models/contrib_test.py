"""Ops of com.microsoft on random inputs, beside ONNX Runtime; those of which its CPU has no kernel
beside their formulas in NumPy. Losses and optimizers beside onnx.reference."""

import math
import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

ROUNDS = 6
MICROSOFT = "com.microsoft"
TRAINING = "ai.onnx.preview.training"


class Draw:
    """Random sizes and arrays. The same seed gives the same cases."""

    def __init__(self, seed):
        self.choose = random.Random(str(seed))
        self.numbers = np.random.default_rng(list(str(seed).encode()))

    def size(self, least=1, most=5):
        return self.choose.randint(least, most)

    def sizes(self, count, least=1, most=5):
        return [self.size(least, most) for _ in range(count)]

    def floats(self, *shape, dtype=np.float32):
        return np.asarray(2 * self.numbers.standard_normal(shape)).astype(dtype)

    def ints(self, end, *shape, dtype=np.int64):
        return self.numbers.integers(0, end, shape).astype(dtype)

    def one_of(self, *choices):
        return self.choose.choice(choices)

    def maybe(self, value):
        return self.one_of(value, None)


# --- Cases beside ONNX Runtime: op, inputs, attributes, outputs -----------------------------------


def gelu(draw):
    op = draw.one_of("Gelu", "FastGelu", "QuickGelu", "BiasGelu")
    inputs = [draw.floats(draw.size(), draw.size())]
    if op in ("FastGelu", "BiasGelu"):
        inputs.append(draw.floats(inputs[0].shape[-1]))
    return op, inputs, {"alpha": draw.one_of(1.702, -0.5)} if op == "QuickGelu" else {}


def skip_normalization(draw):
    op = draw.one_of("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    shape = [*draw.sizes(2), draw.size(2, 40)]
    skip = draw.one_of(shape, [1, *shape[1:]], shape[1:])
    inputs = [draw.floats(*shape), draw.floats(*skip), draw.floats(shape[-1])]
    for _ in range(2 if op == "SkipLayerNormalization" else 1):
        inputs.append(draw.maybe(draw.floats(shape[-1])))
    return op, inputs, {"epsilon": draw.one_of(1e-5, 0.5)}, draw.one_of(1, 4)


def embed_normalization(draw):
    batch, length, hidden = draw.size(), draw.size(), draw.size(2, 9)
    has_segments = draw.one_of(True, False)
    inputs = [draw.ints(4, batch, length, dtype=np.int32),
              draw.ints(3, batch, length, dtype=np.int32) if has_segments else None,
              draw.floats(4, hidden), draw.floats(6, hidden),
              draw.floats(3, hidden) if has_segments else None,
              draw.floats(hidden), draw.floats(hidden),
              draw.maybe(draw.ints(2, batch, length, dtype=np.int32)),
              draw.maybe(draw.ints(6, draw.one_of(1, batch), length, dtype=np.int32))]
    return "EmbedLayerNormalization", inputs, {"epsilon": 1e-3}, 3


def fused_conv(draw):
    axes = draw.one_of(1, 2, 3)
    kernel, group = draw.sizes(axes, 1, 3), draw.one_of(1, 2)
    x = draw.floats(2, 2 * group, *draw.sizes(axes, 5, 8))
    attributes = {"group": group, "strides": draw.sizes(axes, 1, 2),
                  "pads": draw.sizes(2 * axes, 0, 1)}
    spatial = [(size + begin + end - taps) // stride + 1 for size, begin, end, taps, stride in zip(
        x.shape[2:], attributes["pads"], attributes["pads"][axes:], kernel, attributes["strides"])]
    name, numbers = draw.one_of(("Relu", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]),
                                ("HardSigmoid", [0.3, 0.4]), ("Tanh", []))
    attributes |= {"activation": name} | ({"activation_params": numbers} if numbers else {})
    inputs = [x, draw.floats(2 * group, 2, *kernel), draw.maybe(draw.floats(2 * group)),
              draw.maybe(draw.floats(2, 2 * group, *spatial))]
    return "FusedConv", inputs, attributes


def fused_gemm(draw):
    rows, depth, columns = draw.sizes(3)
    left, right = draw.one_of(0, 1), draw.one_of(0, 1)
    name = draw.one_of("Relu", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "ThresholdedRelu")
    addend = draw.one_of(None, draw.floats(columns), draw.floats(rows, 1))
    return "FusedGemm", [draw.floats(*([depth, rows] if left else [rows, depth])),
                         draw.floats(*([columns, depth] if right else [depth, columns])), addend], {
        "transA": left, "transB": right, "alpha": 0.7, "beta": -0.4, "activation": name,
        "activation_alpha": 0.3, "activation_beta": 0.4, "activation_gamma": 0.6}


def fused_matmul(draw):
    batch, (rows, depth, columns) = draw.sizes(draw.one_of(1, 2), 1, 3), draw.sizes(3)
    attributes, operands = {"alpha": draw.one_of(1.0, 0.3)}, []
    for side, shape in (("A", [rows, depth]), ("B", [depth, columns])):
        swaps, moves = draw.one_of(0, 1), draw.one_of(0, 1)
        attributes |= {f"trans{side}": swaps, f"transBatch{side}": moves}
        full = batch + (shape[::-1] if swaps else shape)
        operands.append(draw.floats(*([full[-2], *full[:-2], full[-1]] if moves else full)))
    return "FusedMatMul", operands, attributes


def nhwc_max_pool(draw):
    axes = draw.one_of(1, 2, 3)
    x = draw.ints(250, 2, *draw.sizes(axes, 5, 8), draw.size(), dtype=np.uint8)
    x = x.view(draw.one_of(np.uint8, np.int8))
    kernel = draw.sizes(axes, 2, 3)
    return "NhwcMaxPool", [x], {"kernel_shape": kernel, "strides": draw.sizes(axes, 1, 2),
                                "pads": [1] * 2 * axes, "ceil_mode": draw.one_of(0, 1)}


def masked_pool(draw):
    sizes = draw.sizes(2, 4, 7)
    mask = (draw.numbers.random([1, 1, *sizes]) < 0.7).astype(np.int32)
    return "MaxpoolWithMask", [draw.floats(2, 3, *sizes), mask], {"kernel_shape": [2, 3]}


def transposed_conv(draw):
    group, axes = draw.one_of(1, 2), draw.one_of(1, 2)
    channels = 2 * group
    return "ConvTransposeWithDynamicPads", [
        draw.floats(2, channels, *draw.sizes(axes, 3, 6)),
        draw.floats(channels, 3, *draw.sizes(axes, 1, 3)), draw.ints(2, 2 * axes),
        draw.maybe(draw.floats(3 * group))], {"group": group, "strides": draw.sizes(axes, 1, 3)}


def experts(draw):
    tokens, hidden, count, inner = draw.sizes(4)
    name = draw.one_of("relu", "gelu", "silu", "identity", "swiglu")
    width = 2 * inner if name == "swiglu" else inner
    attributes = {"k": draw.size(1, count), "activation_type": name,
                  "normalize_routing_weights": draw.one_of(0, 1)}
    if name == "swiglu":
        attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
                       "swiglu_limit": 1.5}
    return "MoE", [draw.floats(tokens, hidden), draw.floats(tokens, count),
                   draw.floats(count, width, hidden), draw.maybe(draw.floats(count, width)),
                   draw.floats(count, hidden, inner),
                   draw.maybe(draw.floats(count, hidden))], attributes


def views(draw):
    x = draw.floats(*draw.sizes(2, 2, 6))
    axis = draw.choose.randint(-2, 1)
    return draw.one_of(
        ("ExpandDims", [x, np.array(axis, np.int32)], {}),
        ("UnfoldTensor", [x], {"dim": axis, "size": draw.size(1, x.shape[axis]),
                               "step": draw.size(1, 3)}),
        ("GatherND", [x, draw.ints(2, 3, draw.size(1, 2), dtype=np.int32)], {}),
        ("Pad", [x, draw.ints(2, 1, 4)], {"mode": draw.one_of("constant", "edge", "reflect")}),
        ("Range", [np.array(axis, np.float32), np.array(7, np.float32)], {}))


def measures(draw):
    x = draw.floats(draw.size(), 4)
    return draw.one_of(
        ("CDist", [x, draw.floats(3, 4)], {"metric": draw.one_of("euclidean", "sqeuclidean")}),
        ("MurmurHash3", [x], {"seed": draw.size(0, 2**32 - 1), "positive": draw.one_of(0, 1)}),
        ("DynamicTimeWarping", [x.round()], {}),
        ("NGramRepeatBlock", [draw.ints(3, 2, 7), draw.floats(2, 3)], {"ngram_size": draw.size()}))


def texts(draw):
    words = ["".join(draw.one_of(*"ab .é") for _ in range(draw.size(0, 8))) for _ in range(3)]
    rule = draw.one_of({"separators": [" ", "\\."]}, {"separators": ["a", "ab"]},
                       {"separators": [""]}, {"tokenexp": "a|ab"}, {"tokenexp": "[^ ]+"})
    return "Tokenizer", [np.array(words, object)], {
        "mark": draw.one_of(0, 1), "mincharnum": 1, "pad_value": "#", **rule}


def word_embedding(draw):
    words = draw.ints(6, 4, 5, dtype=np.int32) + 1
    for row in words:
        row[draw.size(1, 5):] = 0
    width, size = draw.size(1, 3), draw.size()
    return "WordConvEmbedding", [words, draw.floats(3, 1, width, size), draw.floats(3),
                                 draw.floats(7, size)], {}


CASES = (gelu, skip_normalization, embed_normalization, fused_conv, fused_gemm, fused_matmul,
         nhwc_max_pool, masked_pool, transposed_conv, experts, views, measures, texts,
         word_embedding)


def make_model(op, inputs, attributes, outputs, domain, opset=17):
    names = [f"i{index}" if array is not None else "" for index, array in enumerate(inputs)]
    results = [f"o{index}" for index in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    fed = []
    for name, array in zip(names, inputs):
        if array is not None:
            kind = (TensorProto.STRING if array.dtype == object
                    else helper.np_dtype_to_tensor_dtype(array.dtype))
            fed.append(helper.make_tensor_value_info(name, kind, array.shape))
    made = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph([node], "g", fed, made)
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model, {name: array for name, array in zip(names, inputs) if array is not None}


def run_tessera(tessera, model, feed):
    return tessera.load(model.SerializeToString()).bind(optimize=False).run(feed)


def run_onnxruntime(model, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def check(found, expected, what):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape, what
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=3e-4, atol=3e-4, err_msg=str(what))
        else:
            assert (ours == theirs).all(), what


@pytest.mark.parametrize("make", CASES)
def test_results_are_those_of_onnxruntime(tessera, make):
    draw = Draw(make.__name__)
    for _ in range(ROUNDS):
        op, inputs, attributes, *outputs = make(draw)
        model, feed = make_model(op, inputs, attributes, *(outputs or [1]), MICROSOFT)
        found = run_tessera(tessera, model, feed)
        check(found, run_onnxruntime(model, feed), (op, attributes))


# --- Formulas of ops without a kernel on ONNX Runtime's CPU ---------------------------------------

ERF = np.vectorize(math.erf, otypes=[float])


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def group_norm(x, scale, shift, groups):
    """Of channels as the last axis, with SiLU."""
    parts = x.astype(float).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * scale + shift
    return y / (1 + np.exp(-y))


def conv(x, filters):
    """A convolution of channels as the last axis, by ONNX Runtime."""
    model, feed = make_model("Conv", [np.moveaxis(x, -1, 1), filters], {}, 1, "")
    return np.moveaxis(run_onnxruntime(model, feed)[0], 1, -1)


def as_complex(x):
    return x[..., 0] + 1j * x[..., 1]


def as_pairs(x):
    return np.stack([x.real, x.imag], -1)


def formulas(draw):
    """op, inputs, attributes and the expected first output."""
    x, skip, bias = draw.floats(2, 3, 8), draw.floats(2, 3, 8), draw.floats(8)
    yield "BiasAdd", [x, bias, skip], {}, x + bias + skip
    left, right = np.split(x + bias, 2, -1)
    yield "BiasSplitGelu", [x, bias], {}, left * right * (1 + ERF(right / math.sqrt(2))) / 2
    mask = draw.floats(2, 1, 8)
    yield "BiasSoftmax", [x, mask], {"axis": 2, "is_inner_broadcast": 1}, softmax(x + mask)
    shared = draw.floats(1, 3, 8)
    yield "BiasSoftmax", [x, shared], {"axis": -1, "is_inner_broadcast": 0}, softmax(x + shared)

    image, scale, shift = draw.floats(2, 3, 4, 8), draw.floats(8), draw.floats(8)
    of_groups = {"groups": 4, "activation": 1, "channels_last": 1}
    yield "GroupNorm", [image, scale, shift], of_groups, group_norm(image, scale, shift, 4)
    first = {**of_groups, "channels_last": 0}
    yield ("GroupNorm", [np.moveaxis(image, -1, 1).copy(), scale, shift], first,
           np.moveaxis(group_norm(image, scale, shift, 4), -1, 1))
    one = draw.floats(2, 8)
    yield ("SkipGroupNorm", [image, scale, shift, one, bias], of_groups,
           group_norm(image + one[:, None, None] + bias, scale, shift, 4))

    filters = draw.floats(5, 8, 2, 2)
    plain = conv(image, filters)
    addend = draw.floats(*plain.shape)
    yield "NhwcConv", [image, filters], {}, plain
    yield ("NhwcFusedConv", [image, filters, None, addend], {"activation": "Relu"},
           np.maximum(plain + addend, 0))
    matrix = draw.floats(8, 5)
    yield ("FusedMatMulActivation", [x, matrix], {"activation": "Tanh", "alpha": 0.1},
           np.tanh(0.1 * (x @ matrix)))
    a, b = draw.floats(2, 3, 2), draw.floats(3, 2)
    yield "ComplexMul", [a, b], {}, as_pairs(as_complex(a) * as_complex(b))
    yield "ComplexMulConj", [a, b], {}, as_pairs(as_complex(a) * as_complex(b).conj())
    rows = draw.ints(8, 2, 3)
    yield "TorchEmbedding", [matrix, rows], {}, matrix[rows]
    infinite = np.array([draw.one_of(1, np.inf)], np.float32)
    yield "IsAllFinite", [x, infinite], {"isnan_only": 1}, True


def test_results_are_those_of_the_formulas(tessera):
    draw = Draw(1)
    for _ in range(ROUNDS):
        for op, inputs, attributes, expected in formulas(draw):
            model, feed = make_model(op, inputs, attributes, 1, MICROSOFT)
            check(run_tessera(tessera, model, feed), [expected], (op, attributes))


@pytest.mark.parametrize("axis", (-1, 0, 1))
def test_simplified_layer_normalization_is_in_the_domain_of_onnx(tessera, axis):
    draw = Draw(axis)
    x = draw.floats(3, 4, 5)
    inputs = [x, draw.floats(*x.shape[axis:])]
    model, feed = make_model("SimplifiedLayerNormalization", inputs, {"axis": axis}, 2, "")
    check(run_tessera(tessera, model, feed), run_onnxruntime(model, feed), axis)


@pytest.mark.parametrize("opset", (1, 11, 14, 16, 17))
def test_layer_normalization_is_in_operator_sets_before_that_of_onnx(tessera, opset):
    """ONNX Runtime's optimiser writes it into models of all operator sets."""
    made = helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["y"], epsilon=0.5,
                                 axis=-1)
    inputs = [helper.make_tensor_value_info(name, 1, shape)
              for name, shape in (("x", [2, 2]), ("scale", [2]), ("shift", [2]))]
    model = helper.make_model(
        helper.make_graph([made], "g", inputs, [onnx.ValueInfoProto(name="y")]),
        opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    # The variances are 1 and 0; with epsilon, the divisors are the roots of 1.5 and 0.5.
    found, = executor.run({"x": np.array([[3, 5], [7, 7]], np.float32),
                           "scale": np.array([1, 2], np.float32),
                           "shift": np.array([0, 10], np.float32)})
    root = 1.5 ** 0.5
    np.testing.assert_allclose(found, [[-1 / root, 10 + 2 / root], [0, 10]], rtol=1e-6)


@pytest.mark.parametrize(("kind", "numbers"), ((TensorProto.INT4, [-8, 3, 7, 0]),
                                               (TensorProto.UINT4, [15, 3, 7, 0])))
def test_integers_of_4_bits_are_quantised_in_the_domain_of_onnxruntime(tessera, kind, numbers):
    """The quantiser of ONNX Runtime writes these nodes into models before operator set 21."""
    initializers = [helper.make_tensor("q", kind, [4], numbers),
                    helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5]),
                    helper.make_tensor("zero", kind, [], [1])]
    nodes = [helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"], domain=MICROSOFT),
             helper.make_node("Add", ["x", "w"], ["sum"]),
             helper.make_node("QuantizeLinear", ["sum", "scale", "zero"], ["r"], domain=MICROSOFT),
             helper.make_node("DequantizeLinear", ["r", "scale", "zero"], ["y"], domain=MICROSOFT)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [4])],
                              [helper.make_tensor_value_info("y", 1, [4])], initializers)
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    found, = executor.run({"x": np.array([0, 0.5, 100, 0.5], np.float32)})
    largest = {TensorProto.INT4: 7, TensorProto.UINT4: 15}[kind]
    expected = [0.5 * (numbers[0] - 1), 1.5, 0.5 * (largest - 1), 0]
    assert found.tolist() == expected


# --- Training -------------------------------------------------------------------------------------


def loss(draw):
    op = draw.one_of("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    shape = [draw.size(), draw.size(2, 5), *draw.sizes(draw.one_of(0, 1, 2), 1, 4)]
    inputs = [draw.floats(*shape), draw.ints(shape[1], shape[0], *shape[2:])]
    if draw.one_of(True, False):
        inputs.append(np.abs(draw.floats(shape[1])) + np.float32(0.1))
    attributes = {"reduction": draw.one_of("none", "sum", "mean")}
    if draw.one_of(True, False):
        attributes["ignore_index"] = draw.one_of(0, 1, -100)
    return op, inputs, attributes


@pytest.mark.parametrize("opset", (12, 13, 22))
def test_losses_are_those_of_onnx(tessera, opset):
    draw = Draw(opset)
    for _ in range(4 * ROUNDS):
        op, inputs, attributes = loss(draw)
        outputs = 2 if op.startswith("Softmax") else 1
        model, feed = make_model(op, inputs, attributes, outputs, "", opset)
        with np.errstate(all="ignore"):
            expected = ReferenceEvaluator(model).run(None, feed)
        check(run_tessera(tessera, model, feed), expected, (op, attributes))


@pytest.mark.parametrize("op", ("Adagrad", "Adam", "Momentum"))
def test_optimizers_are_those_of_onnx(tessera, op):
    draw = Draw(op)
    for _ in range(ROUNDS):
        states, count = (2 if op == "Adam" else 1), draw.size(1, 3)
        shapes = [draw.sizes(draw.size(0, 2)) for _ in range(count)]
        parts = [[draw.floats(*shape) for shape in shapes] for _ in range(2)]
        parts += [[np.abs(draw.floats(*shape)) for shape in shapes] for _ in range(states)]
        inputs = [np.float32(0.1), np.int64(draw.size(0, 3))]
        inputs += [one for part in parts for one in part]
        attributes = {"norm_coefficient": draw.one_of(0.0, 0.2)}
        if op == "Momentum":
            attributes |= {"alpha": 0.9, "beta": 0.5, "mode": draw.one_of("standard", "nesterov")}
        inputs = [np.asarray(one) for one in inputs]
        model, feed = make_model(op, inputs, attributes, count * (1 + states), TRAINING)
        expected = ReferenceEvaluator(model).run(None, feed)
        check(run_tessera(tessera, model, feed), expected, (op, attributes))
