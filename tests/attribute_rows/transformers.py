"""Attention and its neighbours in transformers."""

import numpy as np
from attribute_rows.row import Row, combined, ints

# Of its own, so that the rows of other modules keep their values.
SOURCE = np.random.default_rng(23)


def numbers(*shape):
    return np.round(SOURCE.standard_normal(shape), 2).astype(np.float32)


def attention_rows():
    query, key, value = numbers(2, 4, 3, 2), numbers(2, 2, 5, 2), numbers(2, 2, 5, 3)
    bias = numbers(4, 3, 5)
    mask = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [0, 0, 0, 1, 0]], bool)
    past_key, past_value = numbers(2, 2, 2, 2), numbers(2, 2, 2, 3)
    yield Row("Attention", {"Q": query, "K": key, "V": value}, {
        "attn_mask": [bias, mask, numbers(2, 1, 3, 5)],
        "past_key": [combined("past_key", past_key, past_value=past_value)],
        "past_value": [combined("past_value", past_value, past_key=past_key)],
        "nonpad_kv_seqlen": [ints(2, 4), combined("nonpad_kv_seqlen", ints(3, 5), is_causal=1)],
        "is_causal": [1],
        "scale": [0.3],
        "softcap": [0.5],
        "left_window_size": [0, 1, combined("left_window_size", 1, is_causal=1)],
        "right_window_size": [0, 1],
    }, same={"is_causal": [0], "softcap": [0.0], "left_window_size": [-1],
             "right_window_size": [-1]})
    yield Row("Attention", {"Q": query, "K": key, "V": value}, {
        "qk_matmul_output_mode": [combined("qk_matmul_output_mode", 1, softcap=0.5),
                                  combined("qk_matmul_output_mode", 2, attn_mask=bias),
                                  combined("qk_matmul_output_mode", 3, attn_mask=mask)]},
        outputs=4)
    yield Row("Attention", {"Q": numbers(2, 3, 8), "K": numbers(2, 4, 8), "V": numbers(2, 4, 8)}, {
        name: [combined(name, 2, **{other: 2}), combined(name, 4, **{other: 4})]
        for name, other in (("q_num_heads", "kv_num_heads"), ("kv_num_heads", "q_num_heads"))})


def rotation_rows():
    yield Row("RotaryEmbedding", {"X": numbers(2, 3, 2, 4), "cos_cache": numbers(2, 2, 2),
                                  "sin_cache": numbers(2, 2, 2)},
              {"interleaved": [1]}, same={"interleaved": [0], "rotary_embedding_dim": [0, 4]})
    yield Row("RotaryEmbedding", {"X": numbers(2, 2, 8), "cos_cache": numbers(6, 2),
                                  "sin_cache": numbers(6, 2)},
              {"position_ids": [ints([0, 1], [5, 3]), ints([2, 2], [0, 4])],
               "num_heads": [combined("num_heads", 1, rotary_embedding_dim=4),
                             combined("num_heads", 2, rotary_embedding_dim=4)],
               "rotary_embedding_dim": [combined("rotary_embedding_dim", 4, num_heads=1)]},
              {"num_heads": 2, "position_ids": ints([0, 1], [5, 3])})


def state_rows():
    cache = numbers(2, 2, 4, 4)
    yield Row("TensorScatter", {"past_cache": cache, "update": numbers(2, 2, 2, 4)},
              {"write_indices": [ints(1, 2), ints(2, 0)],
               "mode": [combined("mode", "circular", write_indices=ints(3, 5)),
                        combined("mode", "circular", write_indices=ints(2, 7))]},
              same={"mode": ["linear"], "axis": [-2, 2]})
    yield Row("TensorScatter", {"past_cache": cache, "update": numbers(2, 2, 4, 2)},
              {"axis": [3, combined("axis", -1, write_indices=ints(1, 2))]})
    weight = numbers(3, 1, 3)
    yield Row("CausalConvWithState", {"input": numbers(2, 3, 4), "weight": weight},
              {"activation": ["silu", "swish"], "bias": [numbers(3)],
               "past_state": [numbers(2, 3, 2)]}, outputs=2, same={"activation": ["none"]})


def linear_attention_rows():
    decay, beta = -np.abs(numbers(2, 3, 2)), np.abs(numbers(2, 3, 2))
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    yield Row("LinearAttention", {"query": numbers(2, 3, 8), "key": numbers(2, 3, 8) / 2,
                                  "value": numbers(2, 3, 8)}, {
        "update_rule": ["linear", combined("update_rule", "gated", decay=decay),
                        combined("update_rule", "delta", beta=beta),
                        combined("update_rule", "gated_delta", decay=decay, beta=beta)],
        "decay": [combined("decay", decay, update_rule="gated"),
                  combined("decay", -np.abs(numbers(2, 3, 8)), update_rule="gated")],
        "beta": [combined("beta", beta, update_rule="delta"),
                 combined("beta", np.abs(numbers(2, 3, 1)), update_rule="delta")],
        "past_state": [numbers(2, 2, 4, 4)],
        "scale": [0.3],
        "q_num_heads": [2, combined("q_num_heads", 4, kv_num_heads=4)],
        "kv_num_heads": [2, combined("kv_num_heads", 4, q_num_heads=4)]},
        {"update_rule": "linear", **heads}, outputs=2,
        same={"chunk_size": [1, 64], "scale": [0.0]})


def gate_rows():
    yield Row("SwiGLU", {"A": numbers(3, 4), "B": numbers(3, 4)}, {"alpha": [0.5, 1.7]},
              same={"alpha": [1.0]})
    x = numbers(2, 3, 4)
    yield Row("RMSNormalization", {"X": x, "scale": numbers(4)},
              {"axis": [1, -3], "epsilon": [0.5]},
              same={"axis": [2, -1], "epsilon": [1e-5], "stash_type": [1]})
    yield Row("RMSNormalization", {"X": x, "scale": numbers(3, 4)}, {"axis": [0, 1]})


FAMILIES = (attention_rows, rotation_rows, state_rows, linear_attention_rows, gate_rows)
