"""Transformers of any batch and length: encoders, decoders with and without a cache."""

import numpy as np
from onnx import TensorProto

from open_layers import (
    attend,
    attention,
    feed_forward,
    finish,
    ints,
    list_of,
    normalized,
    number,
    places_of,
    shape_part,
    size_of,
    split_heads,
)
from self_made_models import Network


def hidden_where_zero(net, mask):
    """What is added to scores: 0 where the mask of (batch, length) has 1, and -1e4 where it has
    0."""
    allowed = net.node("Cast", net.node("Unsqueeze", mask, ints(net, 1, 2)), to=TensorProto.FLOAT)
    return net.node("Mul", net.node("Sub", number(net, 1), allowed), number(net, -1e4))


def encoder():
    net = Network("encoder", 20)
    tokens = net.input("tokens", ["batch", "length"], TensorProto.INT64)
    positions = net.node("Slice", net.normal(64, 16), ints(net, 0), shape_part(net, tokens, 1),
                         ints(net, 0))
    x = net.node("Add", net.node("Gather", net.normal(50, 16), tokens), positions)
    for _ in range(2):
        x = normalized(net, net.node("Add", x, attention(net, x, 16, 2)), 16)
        x = normalized(net, net.node("Add", x, feed_forward(net, x, 16)), 16)
    net.output(x)
    return finish(net), {"batch": (1, 5), "length": (1, 60)}


def encoder_of_one():
    """A batch of one, and a mask that the caller passes."""
    net = Network("encoder_of_one", 20)
    tokens = net.input("tokens", [1, "length"], TensorProto.INT64)
    mask = net.input("mask", [1, "length"], TensorProto.INT64)
    x = net.node("Gather", net.normal(50, 16), tokens)
    x = normalized(
        net, net.node("Add", x, attention(net, x, 16, 4, hidden_where_zero(net, mask))), 16)
    net.output(net.node("Tanh", net.linear(net.node("ReduceMean", x, ints(net, 1), keepdims=0),
                                           16, 8)))
    return finish(net), {"length": (2, 128)}


def local_encoder():
    """Tokens see their neighbours up to the end of their row: the mask comes from Range, from the
    lengths of rows, and from Expand to the whole shape. The mean leaves padding out."""
    net = Network("local_encoder", 20)
    tokens = net.input("tokens", ["batch", "length"], TensorProto.INT64)
    mask = net.input("mask", ["batch", "length"], TensorProto.INT64)
    batch, length = shape_part(net, tokens, 0), shape_part(net, tokens, 1)
    lengths = net.node("ReduceSum", mask, ints(net, 1), keepdims=1)
    places = places_of(net, tokens, 1)
    is_inside = net.node("Less", net.node("Unsqueeze", places, ints(net, 0)), lengths)
    distance = net.node("Sub", net.node("Unsqueeze", places, ints(net, 0)),
                        net.node("Unsqueeze", places, ints(net, 1)))
    is_near = net.node("LessOrEqual", net.node("Abs", distance), net.constant(np.int64(3)))
    is_seen = net.node("And", net.node("Unsqueeze", is_inside, ints(net, 1, 2)), is_near)
    is_seen = net.node("Expand", is_seen, list_of(net, batch, 2, length, length))
    hidden = net.node("Where", is_seen, number(net, 0), number(net, -1e4))
    x = net.node("Gather", net.normal(50, 16), tokens)
    x = normalized(net, net.node("Add", x, attention(net, x, 16, 2, hidden)), 16)
    inside = net.node("Unsqueeze", is_inside, ints(net, 2))
    total = net.node("ReduceSum", net.node("Where", inside, x, number(net, 0)), ints(net, 1),
                     keepdims=0)
    net.output(net.node("Div", total, net.node("Cast", lengths, to=TensorProto.FLOAT)))
    return finish(net), {"batch": (1, 4), "length": (1, 50)}


def causal_decoder():
    """The mask is made from the length: Range, Less, Where."""
    net = Network("causal_decoder", 20)
    tokens = net.input("tokens", ["batch", "length"], TensorProto.INT64)
    x = net.node("Gather", net.normal(50, 16), tokens)
    places = places_of(net, tokens, 1)
    later = net.node("Less", net.node("Unsqueeze", places, ints(net, 1)),
                     net.node("Unsqueeze", places, ints(net, 0)))
    mask = net.node("Where", later, number(net, -1e9), number(net, 0))
    x = normalized(net, net.node("Add", x, attention(net, x, 16, 2, mask)), 16)
    net.output(net.node("MatMul", x, net.normal(16, 50)))
    return finish(net), {"batch": (2, 4), "length": (3, 40)}


def cached_decoder():
    """One new token, beside keys and values of any length."""
    net = Network("cached_decoder", 20)
    x = net.input("x", [1, 2, 1, 8])
    keys = net.input("keys", [1, 2, "past", 8])
    values = net.input("values", [1, 2, "past", 8])
    all_keys = net.node("Concat", keys, x, axis=2)
    all_values = net.node("Concat", values, x, axis=2)
    scores = net.node("MatMul", x, net.node("Transpose", all_keys, perm=[0, 1, 3, 2]))
    net.output(net.node("MatMul", net.node("Softmax", scores), all_values))
    net.output(all_keys)
    net.output(all_values)
    return finish(net), {"past": (0, 90)}


def continued_decoder():
    """Some new tokens beside a cache that may be empty, in a batch: rotated positions that begin
    behind the cache, and keys that several heads share."""
    width, heads, shared, head = 32, 4, 2, 8
    net = Network("continued_decoder", 20)
    tokens = net.input("tokens", ["batch", "new"], TensorProto.INT64)
    keys = net.input("keys", ["batch", shared, "past", head])
    values = net.input("values", ["batch", shared, "past", head])
    batch, new = shape_part(net, tokens, 0), shape_part(net, tokens, 1)
    past = size_of(net, keys, 2)
    total = net.node("Add", past, size_of(net, tokens, 1))
    one = net.constant(np.int64(1))
    places = net.node("Unsqueeze", net.node("Range", past, total, one), ints(net, 1))
    every = net.node("Unsqueeze", net.node("Range", net.constant(np.int64(0)), total, one),
                     ints(net, 0))
    mask = net.node("Where", net.node("LessOrEqual", every, places), number(net, 0),
                    number(net, -1e9))
    angles = net.node("Mul", net.node("Cast", places, to=TensorProto.FLOAT), net.constant(
        (100.0 ** (-np.arange(0, head, 2) / head)).astype(np.float32).reshape(1, -1)))
    angles = net.node("Concat", angles, angles, axis=1)
    cosine, sine = net.node("Cos", angles), net.node("Sin", angles)

    def rotate(x):
        left, right = net.node("Split", x, outputs=2, axis=3, num_outputs=2)
        turned = net.node("Concat", net.node("Neg", right), left, axis=3)
        return net.node("Add", net.node("Mul", x, cosine), net.node("Mul", turned, sine))

    def for_heads(x):
        many = net.node("Expand", net.node("Unsqueeze", x, ints(net, 2)),
                        ints(net, 1, 1, heads // shared, 1, 1))
        return net.node("Reshape", many, list_of(net, batch, heads, -1, head))

    x = net.node("Gather", net.normal(50, width), tokens)
    inner = normalized(net, x, width)
    queries, new_keys, new_values = (
        split_heads(net, net.linear(inner, width, count * head), count * head, count, [0, 2, 1, 3])
        for count in (heads, shared, shared))
    all_keys = net.node("Concat", keys, rotate(new_keys), axis=2)
    all_values = net.node("Concat", values, new_values, axis=2)
    scores = net.node("MatMul", rotate(queries),
                      net.node("Transpose", for_heads(all_keys), perm=[0, 1, 3, 2]))
    scores = net.node("Add", net.node("Mul", scores, number(net, head**-0.5)), mask)
    mixed = net.node("MatMul", net.node("Softmax", scores), for_heads(all_values))
    mixed = net.node("Reshape", net.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                     list_of(net, batch, new, width))
    x = net.node("Add", x, net.linear(mixed, width, width))
    last = net.node("Slice", x, ints(net, -1), ints(net, 2**62), ints(net, 1))
    net.output(net.linear(last, width, 50))
    net.output(all_keys)
    net.output(all_values)
    return finish(net), {"batch": (1, 3), "new": (1, 20), "past": (0, 50)}


def translator():
    """Encoder and decoder of different lengths, which meet in the decoder's second attention."""
    net = Network("translator", 20)
    source = net.input("source", ["batch", "source length"], TensorProto.INT64)
    mask = net.input("mask", ["batch", "source length"], TensorProto.INT64)
    target = net.input("target", ["batch", "target length"], TensorProto.INT64)
    hidden = hidden_where_zero(net, mask)
    words = net.normal(50, 16)
    encoded = net.node("Gather", words, source)
    encoded = normalized(net, net.node("Add", encoded, attention(net, encoded, 16, 2, hidden)), 16)
    encoded = normalized(net, net.node("Add", encoded, feed_forward(net, encoded, 16)), 16)
    length = shape_part(net, target, 1)
    later = net.node("Trilu", net.node("Expand", number(net, -1e9),
                                       list_of(net, length, length)),
                     net.constant(np.int64(1)), upper=1)
    x = net.node("Gather", words, target)
    x = normalized(net, net.node("Add", x, attention(net, x, 16, 2, later)), 16)
    x = normalized(net, net.node("Add", x, attend(net, x, encoded, 16, 2, hidden)), 16)
    net.output(net.node("LogSoftmax", net.linear(x, 16, 50)))
    return finish(net), {"batch": (1, 3), "source length": (1, 40), "target length": (1, 40)}


def einsum_attention():
    """Attention written as Einsum, with two open lengths."""
    net = Network("einsum_attention", 20)
    queries = net.input("queries", ["batch", "queries", 3, 8])
    keys = net.input("keys", ["batch", "keys", 3, 8])
    scores = net.node("Einsum", queries, keys, equation="bqhd,bkhd->bhqk")
    mixed = net.node("Einsum", net.node("Softmax", scores), keys, equation="bhqk,bkhd->bqhd")
    net.output(net.node("Einsum", mixed, net.normal(3, 8, 10, deviation=0.2),
                        equation="bqhd,hde->bqe"))
    net.output(net.node("Einsum", scores, equation="bhqk->bkq"))
    return finish(net), {"batch": (1, 4), "queries": (1, 30), "keys": (1, 30)}


def retrieval():
    """Similarities of every query with every document."""
    net = Network("retrieval", 18)
    queries = net.input("queries", ["queries", 12])
    documents = net.input("documents", ["documents", 12])

    def unit(x):
        x = net.linear(x, 12, 24)
        return net.node("Div", x, net.node("ReduceL2", x, ints(net, 1), keepdims=1))

    similar = net.node("MatMul", unit(queries), net.node("Transpose", unit(documents), perm=[1, 0]))
    net.output(net.node("Softmax", similar, axis=1))
    net.output(net.node("Softmax", similar, axis=0))
    net.output(net.node("ReduceMax", similar, ints(net, 1), keepdims=0))
    return finish(net), {"queries": (0, 40), "documents": (1, 70)}


TOKEN_MODELS = (encoder, encoder_of_one, local_encoder, causal_decoder, cached_decoder,
                continued_decoder, translator, einsum_attention, retrieval)
