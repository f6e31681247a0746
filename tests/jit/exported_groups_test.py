"""Activations, normalizations and gates as exporters write them: each is one group of jit, equal to
ONNX Runtime. rotary_test.py has rotary embeddings."""

import pathlib
import sys

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from networks.graph_writer import GraphWriter  # noqa: E402
from small_models import normal

TOKENS = [2, 8, 32]
IMAGE = [2, 16, 5, 7]
ONES, ZEROS = np.linspace(0.5, 1.5, 32), np.linspace(-1, 1, 32)
CAUSAL = np.triu(np.full((8, 32), -1e9), 1)


def mish(w):
    return w.op("Mul", "x", w.op("Tanh", w.op("Softplus", "x")))


def mish_written_out(w):
    softplus = w.op("Log", w.op("Add", w.op("Exp", "x"), 1.0))
    return w.op("Mul", "x", w.op("Tanh", softplus))


def hard_swish(w):
    return w.op("Div", w.op("Mul", "x", w.op("Clip", w.op("Add", "x", 3.0), 0.0, 6.0)), 6.0)


def gelu_by_tanh(w):
    inner = w.op("Add", "x", w.op("Mul", w.op("Pow", "x", 3.0), 0.044715))
    tanh = w.op("Tanh", w.op("Mul", inner, 0.7978845608))
    return w.op("Mul", w.op("Mul", "x", 0.5), w.op("Add", tanh, 1.0))


def gelu_by_erf(w):
    return w.op("Mul", w.op("Mul", "x", w.op("Add", w.op("Erf", w.op("Div", "x", 2 ** 0.5)), 1.0)),
                0.5)


def layer_norm_after_residual(w):
    return w.op("LayerNormalization", w.op("Add", "x", "other"), ONES, ZEROS)


def layer_norm_written_out(w):
    centred = w.op("Sub", "x", w.op("ReduceMean", "x", axes=[-1]))
    variance = w.op("ReduceMean", w.op("Pow", centred, 2.0), axes=[-1])
    normal = w.op("Div", centred, w.op("Sqrt", w.op("Add", variance, 1e-5)))
    return w.op("Add", w.op("Mul", normal, ONES), ZEROS)


def rms_norm(w, invert):
    mean = w.op("ReduceMean", w.op("Pow", "x", 2.0), axes=[-1])
    root = w.op("Sqrt", w.op("Add", mean, 1e-5))
    return w.op("Mul", ONES, w.op("Mul", "x", invert(root)))


def rms_norm_by_reciprocal(w):
    return rms_norm(w, lambda root: w.op("Reciprocal", root))


def rms_norm_by_division(w):
    return rms_norm(w, lambda root: w.op("Div", 1.0, root))


def rms_norm_in_float32(w):
    x = w.op("Cast", "x", to=TensorProto.FLOAT)
    two, one, epsilon = (w.exact(np.float32(number)) for number in (2, 1, 1e-5))
    mean = w.op("ReduceMean", w.op("Pow", x, two), axes=[-1])
    inverse = w.op("Div", one, w.op("Sqrt", w.op("Add", mean, epsilon)))
    return w.op("Mul", ONES, w.op("Cast", w.op("Mul", x, inverse), to=TensorProto.FLOAT16))


def unit_vectors(w):
    """As torch.nn.functional.normalize is exported."""
    length = w.op("Clip", w.op("ReduceL2", "x", axes=[-1], keepdims=1), 1e-12)
    return w.op("Div", "x", w.op("Expand", length, TOKENS))


def log_softmax(w):
    return w.op("LogSoftmax", w.op("Mul", "x", 2.0), axis=-1)


def softmax_with_mask(w):
    return w.op("Softmax", w.op("Add", w.op("Mul", "x", 0.125), CAUSAL), axis=-1)


def softmax_without_nan(w):
    shares = w.op("Softmax", w.op("Add", "x", CAUSAL), axis=-1)
    return w.op("Where", w.op("IsNaN", shares), 0.0, shares)


def softmax_written_out(w):
    power = w.op("Exp", w.op("Sub", "x", w.op("ReduceMax", "x", axes=[-1])))
    return w.op("Div", power, w.op("ReduceSum", power, [-1], keepdims=1))


def clip_by_computed_bound(w):
    low = w.op("Mul", w.op("ReduceMin", "x", keepdims=0), 0.5)
    return w.op("Neg", w.op("Clip", w.op("Mul", "x", 2.0), low))


def group_norm_as_instance_norm(w):
    """Its first Reshape is a view of the input."""
    stacks = w.op("Reshape", "x", [2, 4, -1])
    normal = w.op("InstanceNormalization", stacks, ONES[:4], ZEROS[:4])
    image = w.op("Reshape", normal, IMAGE)
    scaled = w.op("Mul", image, ONES[:16].reshape(16, 1, 1))
    return w.op("Relu", w.op("Add", scaled, ZEROS[:16].reshape(16, 1, 1)))


def group_norm_of_groups(w):
    return w.op("Relu", w.op("GroupNormalization", "x", ONES[:16], ZEROS[:16], num_groups=4))


def excite_by_mean(w):
    return w.op("Mul", "x", w.op("Sigmoid", w.op("GlobalAveragePool", "x")))


def excite_by_gate(w):
    """The nodes between convolutions, one of which computes the gate."""
    gate = w.op("HardSigmoid", w.op("Add", "gate", ONES[:16].reshape(1, 16, 1, 1)))
    return w.op("Mul", w.op("Relu", "x"), gate)


def gated_halves(w):
    first, second = w.op("Split", "x", outputs=2, axis=-1)
    return w.op("Mul", w.op("Mul", first, w.op("Sigmoid", first)), second)


def joined_branches(w):
    return w.op("Concat", w.op("Relu", "x"), w.op("Neg", "x"), axis=1)


def integers(w):
    more = w.op("Add", "x", w.exact(np.int64(3)))
    return w.op("Mul", w.op("Mod", more, w.exact(np.int64(7))), w.op("Abs", more))


def bools(w):
    return w.op("Xor", w.op("Or", w.op("And", "x", "other"), w.op("Not", "x")), "other")


def numbers(*functions, element=np.float32, **inputs):
    return [(function, inputs or {"x": TOKENS}, element) for function in functions]


FORMS = [
    *numbers(mish, mish_written_out, hard_swish, gelu_by_tanh, gelu_by_erf, layer_norm_written_out,
             rms_norm_by_reciprocal, rms_norm_by_division, unit_vectors, log_softmax,
             softmax_with_mask, softmax_without_nan, softmax_written_out, clip_by_computed_bound,
             gated_halves, joined_branches),
    *numbers(layer_norm_after_residual, x=TOKENS, other=TOKENS),
    *numbers(group_norm_as_instance_norm, group_norm_of_groups, excite_by_mean, x=IMAGE),
    *numbers(excite_by_gate, x=IMAGE, gate=[2, 16, 1, 1]),
    *numbers(rms_norm_in_float32, element=np.float16),
    *numbers(layer_norm_written_out, softmax_with_mask, gelu_by_tanh, element=np.float64),
    *numbers(integers, element=np.int64),
    *numbers(bools, element=np.bool_, x=TOKENS, other=TOKENS),
]


def feeds_of(inputs, element):
    random = np.random.default_rng(1)
    feeds = {}
    for name, shape in inputs.items():
        drawn = random.standard_normal(shape) * 2
        feeds[name] = drawn > -1 if element == np.bool_ else \
            (drawn * 5 if element == np.int64 else drawn).astype(element)
    return feeds


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0].__name__}-{form[2].__name__}")
def test_a_form_is_one_group_with_equal_results(tessera, needs_jit, form):
    make, inputs, element = form
    writer = GraphWriter(element)
    # GroupNormalization has parameters for channels since version 21; the others have axes as
    # attributes.
    opset = 21 if make is group_norm_of_groups else 17
    model = writer.model(inputs, make(writer), opset=opset).SerializeToString()
    feeds = feeds_of(inputs, element)
    executor = tessera.load(model).bind(backends=["jit", "reference"], optimize=False)
    found, = executor.run(feeds)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected, = session.run(None, feeds)
    tolerance = {np.float16: 2e-3, np.float64: 1e-12}.get(element, 2e-6)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    steps = [node.split("_")[0] for step in executor.plan().steps if step.backend != "jit"
             for node in step.nodes]
    assert set(steps) <= {"Reshape"} and len(executor.plan().steps) <= 2, steps
