"""Random uses of the attention ops of com.microsoft give ONNX Runtime's results, and FlexAttention
with nested graphs gives those of onnx.reference. tests/attribute_rows/transformers.py has the ops
of ONNX's own domain."""

import numpy as np
import onnx.printer
import pytest
from onnx import TensorProto, helper

CASES = 12  # a seed
MICROSOFT = "com.microsoft"


class Draw:
    """Sizes and arrays of one case."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def number(self, low, high):
        return int(self.random.integers(low, high))

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def happens(self, share):
        return self.random.random() < share

    def one_of(self, *choices):
        return choices[self.number(0, len(choices))]


def model_with(op, inputs, outputs, domain, **attributes):
    """The model of one node, and what to feed. None is an input that the node leaves out."""
    names = ["" if value is None else f"i{index}" for index, value in enumerate(inputs)]
    while names[-1] == "":
        names.pop()
    fed = {name: value for name, value in zip(names, inputs) if name}
    made = helper.make_node(op, names, [f"o{index}" for index in range(outputs)], domain=domain,
                            **attributes)
    graph = helper.make_graph(
        [made], "transformers",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype),
                                       value.shape) for name, value in fed.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in made.output])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports), fed


def padding_mask(draw, batch, queries, keys, shapes):
    shape = draw.one_of(*shapes)
    if shape is None:
        return None
    if shape == "ends":
        return draw.random.integers(0, keys + 1, batch).astype(np.int32)
    if shape == "ends and starts":
        return draw.random.integers(0, keys + 1, 2 * batch).astype(np.int32)
    dims = (batch, keys) if shape == "keys" else (batch, queries, keys)
    return draw.random.integers(0, 2, dims).astype(np.int32)


def multi_head(draw):
    batch, heads, size, queries = draw.number(1, 4), draw.number(1, 4), 4, draw.number(1, 6)
    is_causal = draw.happens(0.4)
    added = queries if is_causal else draw.number(1, 7)
    past = draw.one_of(0, 0, 3)
    keys, width = past + added, heads * size
    mask = padding_mask(draw, batch, queries, keys, (None, "ends", "keys", "all"))
    cache = [draw.floats(batch, heads, past, size) if past else None for _ in range(2)]
    bias = draw.floats(3 * width) if draw.happens(0.4) else None
    scores = draw.floats(1, heads, queries, keys) if draw.happens(0.4) else None
    inputs = [draw.floats(batch, queries, width), draw.floats(batch, added, width),
              draw.floats(batch, added, width), bias, mask, scores, *cache]
    return model_with("MultiHeadAttention", inputs, 4, MICROSOFT, num_heads=heads,
                      unidirectional=int(is_causal), mask_filter_value=-10.0)


def projected(draw):
    batch, heads, size, queries = draw.number(1, 4), draw.number(1, 4), 4, draw.number(1, 6)
    past = draw.one_of(0, 3)
    keys, width, depth = past + queries, 3 * heads * size, draw.number(1, 6)
    mask = padding_mask(draw, batch, queries, keys,
                        (None, "ends", "ends and starts", "keys", "all"))
    cache = draw.floats(2, batch, heads, past, size) if past else None
    inputs = [draw.floats(batch, queries, depth), draw.floats(depth, width), draw.floats(width),
              mask, cache]
    return model_with("Attention", inputs, 2, MICROSOFT, num_heads=heads, mask_filter_value=-10.0,
                      unidirectional=draw.number(0, 2))


def group_query(draw):
    batch, key_heads, size = draw.number(1, 4), draw.number(1, 3), 16
    heads = key_heads * draw.number(1, 4)
    is_prompt = draw.happens(0.5)
    queries = draw.number(1, 6) if is_prompt else 1
    past = 0 if is_prompt else draw.number(2, 6)
    total = queries if is_prompt else draw.one_of(past, past + 1)
    lengths = np.full(batch, total, np.int32)
    if total == past:
        lengths = draw.random.integers(1, total + 1, batch).astype(np.int32)
    cache = [draw.floats(batch, key_heads, past, size) if past else None for _ in range(2)]
    # ONNX Runtime clears what is behind the last position, unless both caches share memory.
    for row, length in enumerate(lengths) if past else ():
        for part in cache:
            part[row, :, length:] = 0
    parts = [draw.floats(batch, queries, count * size) for count in (heads, key_heads, key_heads)]
    if draw.happens(0.3):
        parts = [np.concatenate(parts, axis=2), None, None]
    attributes = {}
    angles = [None, None]
    if draw.happens(0.5):
        angles = [draw.floats(total + 2, size // 2) for _ in range(2)]
        attributes = {"do_rotary": 1, "rotary_interleaved": draw.number(0, 2)}
    if draw.happens(0.3):
        attributes["softcap"] = 2.0
    if draw.happens(0.3):
        attributes["local_window_size"] = draw.number(1, 4)
    scores = draw.floats(1, heads, queries, total) if draw.happens(0.3) else None
    sink = draw.floats(heads) if draw.happens(0.3) else None
    inputs = [*parts, *cache, lengths - 1, np.array([total], np.int32), *angles, None, scores, sink]
    return model_with("GroupQueryAttention", inputs, 3, MICROSOFT, num_heads=heads,
                      kv_num_heads=key_heads, **attributes)


def rotary(draw):
    batch, heads, positions, size = draw.number(1, 4), draw.number(1, 4), draw.number(1, 5), 8
    rows = positions + 3
    ids = draw.random.integers(0, rows, (batch, positions))
    if draw.happens(0.5):
        ids = np.array([draw.number(0, 4)])
    inputs = [draw.floats(batch, positions, heads * size), ids.astype(np.int64),
              draw.floats(rows, size // 2), draw.floats(rows, size // 2)]
    return model_with("RotaryEmbedding", inputs, 1, MICROSOFT, interleaved=draw.number(0, 2))


def results_of(tessera, model, fed):
    executor = tessera.load(model.SerializeToString()).bind(backends=["reference"], threads=1)
    return executor.run(fed)


@pytest.mark.parametrize("case", [multi_head, projected, group_query, rotary],
                         ids=lambda case: case.__name__)
@pytest.mark.parametrize("seed", range(2))
def test_ops_of_microsoft_are_those_of_onnxruntime(tessera, case, seed):
    onnxruntime = pytest.importorskip("onnxruntime")
    for number in range(CASES):
        model, fed = case(Draw([seed, number]))
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        for found, expected in zip(results_of(tessera, model, fed), session.run(None, fed)):
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5,
                                       err_msg=onnx.printer.to_text(model))


def modifier(draw, name):
    """A nested graph that changes scores or weights."""
    factor = helper.make_tensor("factor", TensorProto.FLOAT, [], [draw.one_of(0.5, -1.0, 2.0)])
    made = helper.make_node(draw.one_of("Mul", "Add", "Max"), ["x", "factor"], ["y"])
    values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None) for value in "xy"]
    return helper.make_graph([made], name, values[:1], values[1:], [factor])


@pytest.mark.parametrize("seed", range(CASES))
def test_nested_graphs_change_scores_and_weights(tessera, seed):
    from onnx.reference import ReferenceEvaluator

    draw = Draw(seed)
    key_heads, queries, keys = draw.number(1, 3), draw.number(1, 4), draw.number(1, 5)
    graphs = {name: modifier(draw, name) for name in ("score_mod", "prob_mod") if draw.happens(0.7)}
    inputs = [draw.floats(2, 2 * key_heads, queries, 3), draw.floats(2, key_heads, keys, 3),
              draw.floats(2, key_heads, keys, 2)]
    model, fed = model_with("FlexAttention", inputs, 1, "ai.onnx.preview", **graphs)
    (expected,) = ReferenceEvaluator(model).run(None, fed)
    (found,) = results_of(tessera, model, fed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_modifier_must_keep_the_shape(tessera):
    value = helper.make_tensor_value_info
    shorter = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["y"], keepdims=1)], "score_mod",
        [value("x", TensorProto.FLOAT, None)], [value("y", TensorProto.FLOAT, None)])
    model, _ = model_with("FlexAttention", [np.zeros((1, 1, 2, 3), np.float32)] * 3, 1,
                          "ai.onnx.preview", score_mod=shorter)
    with pytest.raises(tessera.InvalidModel, match="score_mod.*type of its input"):
        tessera.load(model.SerializeToString()).bind()
