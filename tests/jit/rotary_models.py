"""Rotary embeddings as exporters write them: `FORMS` has a function for each, which makes a model
with the inputs x, and angles where the cosines are not constant, and the output y."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from networks.graph_writer import GraphWriter, rotate_half  # noqa: E402

BATCH, HEADS, POSITIONS, WIDTH = 2, 3, 5, 16


def angles(width=WIDTH, positions=POSITIONS):
    """For each position and each half of the width."""
    steps = 1 / 10_000 ** (np.arange(0, width, 2) / width)
    return np.outer(np.arange(positions), steps)


def both_halves(function, width=WIDTH, shape=(1, 1, POSITIONS, -1)):
    half = function(angles(width))
    return np.concatenate([half, half], -1).reshape(shape)


def by_split(writer, x, width=WIDTH):
    first, second = writer.op("Split", x, [width // 2, width // 2], outputs=2, axis=-1)
    return writer.op("Concat", writer.op("Neg", second), first, axis=-1)


def rotate_pairs(writer, x, shape):
    """-x1, x0, -x3, x2, ... of x0, x1, x2, x3, ..."""
    even = writer.slice(x, 0, 2 ** 63 - 1, step=2)
    odd = writer.slice(x, 1, 2 ** 63 - 1, step=2)
    pairs = [writer.op("Unsqueeze", each, [-1]) for each in (writer.op("Neg", odd), even)]
    return writer.op("Reshape", writer.op("Concat", *pairs, axis=-1), shape)


def halves(writer, x):
    return rotate_half(writer, x, WIDTH)


def embed(writer, x, cosines, sines, rotate):
    return writer.op("Add", writer.op("Mul", x, cosines),
                     writer.op("Mul", rotate(writer, x), sines))


def heads_first(writer):
    """x as it comes out of a product: of [batch, positions, heads * width]."""
    heads = writer.op("Reshape", "x", [BATCH, POSITIONS, HEADS, WIDTH])
    return writer.op("Transpose", heads, perm=[0, 2, 1, 3])


PRODUCT = {"x": [BATCH, POSITIONS, HEADS * WIDTH]}
WHOLE = {"x": [BATCH, HEADS, POSITIONS, WIDTH]}


def constant_tables(element=np.float32):
    writer = GraphWriter(element)
    return writer.model(PRODUCT, embed(writer, heads_first(writer), both_halves(np.cos),
                                       both_halves(np.sin), halves))


def half_precision():
    return constant_tables(np.float16)


def double_precision():
    return constant_tables(np.float64)


def flat_tables():
    writer = GraphWriter()
    return writer.model(WHOLE, embed(writer, "x", both_halves(np.cos, shape=(POSITIONS, -1)),
                                     both_halves(np.sin, shape=(POSITIONS, -1)), halves))


def split():
    writer = GraphWriter()
    return writer.model(WHOLE, embed(writer, "x", both_halves(np.cos), both_halves(np.sin),
                                     by_split))


def computed_tables():
    """As Hugging Face's Llama: cosines and sines of angles that are joined with themselves, and
    unsqueezed for the heads."""
    writer = GraphWriter()
    both = writer.op("Concat", "angles", "angles", axis=-1)
    cosines, sines = (writer.op("Unsqueeze", writer.op(op, both), [1]) for op in ("Cos", "Sin"))
    return writer.model({**PRODUCT, "angles": [BATCH, POSITIONS, WIDTH // 2]},
                        embed(writer, heads_first(writer), cosines, sines, halves))


def scaled_before():
    """x is computed by the group itself."""
    writer = GraphWriter()
    scaled = writer.op("Mul", "x", 0.25)
    return writer.model(WHOLE, embed(writer, scaled, both_halves(np.cos), both_halves(np.sin),
                                     halves))


def partial(rotated=4):
    """As GPT-NeoX: only the first elements of each head are rotated."""
    writer = GraphWriter()
    x = heads_first(writer)
    first, rest = writer.slice(x, 0, rotated), writer.slice(x, rotated, 2 ** 63 - 1)
    embedded = embed(writer, first, both_halves(np.cos, rotated), both_halves(np.sin, rotated),
                     lambda writer, x: rotate_half(writer, x, rotated))
    return writer.model(PRODUCT, writer.op("Concat", embedded, rest, axis=-1))


def three_quarters():
    """The parts have different sizes."""
    return partial(12)


def interleaved():
    """As GPT-J and RoFormer: pairs of neighbours are rotated."""
    writer = GraphWriter()
    shape = [BATCH, POSITIONS, HEADS, WIDTH]
    cosines, sines = (np.repeat(function(angles()), 2, -1).reshape(1, POSITIONS, 1, WIDTH)
                      for function in (np.cos, np.sin))
    return writer.model({"x": shape}, embed(writer, "x", cosines, sines,
                                            lambda writer, x: rotate_pairs(writer, x, shape)))


def interleaved_after_scaling():
    writer = GraphWriter()
    scaled = writer.op("Mul", "x", 0.25)
    cosines, sines = (np.repeat(function(angles()), 2, -1) for function in (np.cos, np.sin))
    return writer.model(WHOLE, embed(writer, scaled, cosines, sines, lambda writer, x: rotate_pairs(
        writer, x, [BATCH, HEADS, POSITIONS, WIDTH])))


def complex_pairs():
    """As Meta's Llama: pairs of neighbours are complex numbers; both products are written out."""
    writer = GraphWriter()
    pairs = writer.op("Reshape", "x", [BATCH, HEADS, POSITIONS, WIDTH // 2, 2])
    real, imaginary = (writer.op("Squeeze", part, [-1]) for part in writer.op(
        "Split", pairs, [1, 1], outputs=2, axis=-1))
    cosines, sines = np.cos(angles()), np.sin(angles())
    turned = (writer.op("Sub", writer.op("Mul", real, cosines), writer.op("Mul", imaginary, sines)),
              writer.op("Add", writer.op("Mul", real, sines), writer.op("Mul", imaginary, cosines)))
    joined = writer.op("Concat", *(writer.op("Unsqueeze", each, [-1]) for each in turned), axis=-1)
    return writer.model(WHOLE, writer.op("Reshape", joined, [BATCH, HEADS, POSITIONS, WIDTH]))


def products_of_halves():
    """Each half is computed on its own, without rotate_half."""
    writer = GraphWriter()
    first, second = writer.op("Split", "x", [WIDTH // 2, WIDTH // 2], outputs=2, axis=-1)
    cosines, sines = np.cos(angles()), np.sin(angles())
    turned = (
        writer.op("Sub", writer.op("Mul", first, cosines), writer.op("Mul", second, sines)),
        writer.op("Add", writer.op("Mul", second, cosines), writer.op("Mul", first, sines)))
    return writer.model(WHOLE, writer.op("Concat", *turned, axis=-1))


# How many groups a form needs: tables that do not depend on the heads are computed once for them.
FORMS = {
    "constant tables": (constant_tables, 1),
    "constant tables in float16": (half_precision, 1),
    "constant tables in float64": (double_precision, 1),
    "tables of two dimensions": (flat_tables, 1),
    "by Split": (split, 1),
    "computed tables": (computed_tables, 2),
    "scaled before": (scaled_before, 1),
    "partial": (partial, 1),
    "three quarters": (three_quarters, 1),
    "interleaved": (interleaved, 1),
    "interleaved, scaled before": (interleaved_after_scaling, 1),
    "complex pairs": (complex_pairs, 1),
    "products of halves": (products_of_halves, 1),
}
