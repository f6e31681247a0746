#!/usr/bin/env python3
"""Writes a small decoder as exporters write Llama: RMS normalization, causal attention with rotary
embeddings of queries and keys, and a gated SiLU layer. The weights are random, and the same for the
same options. The inputs are `ids` and `positions`, both int64 [batch, positions]; the output y has
one logit for each word."""

import dataclasses
import math

from harness.arguments import Parser
from networks.graph_writer import GraphWriter, rotate_half

import numpy as np
import onnx


@dataclasses.dataclass
class Decoder:
    layers: int = 2
    width: int = 256
    heads: int = 4
    key_heads: int = 2
    hidden: int = 512
    words: int = 500
    batch: int = 1
    positions: int = 32
    seed: int = 0
    element: type = np.float32

    @property
    def head(self):
        return self.width // self.heads


class DecoderWriter(GraphWriter):
    """The layers, in the order in which they are called."""

    def __init__(self, decoder):
        super().__init__(decoder.element)
        self.decoder = decoder
        self.random = np.random.default_rng(decoder.seed)

    def weight(self, *shape):
        return (self.random.standard_normal(shape) / math.sqrt(shape[0])).astype(self.element)

    def linear(self, x, rows, columns):
        return self.op("MatMul", x, self.weight(rows, columns))

    def to(self, x, element):
        """Exporters compute normalizations of float16 in float32."""
        if self.element == np.float32:
            return x
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(element))
        return self.op("Cast", x, to=kind)

    def normalize(self, x):
        wide = self.to(x, np.float32)
        square = self.op("Pow", wide, np.int64(2))
        mean = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        epsilon = self.exact(np.float32(1e-6))
        root = self.op("Sqrt", self.op("Add", mean, epsilon))
        inverse = self.op("Reciprocal", root)
        return self.op("Mul", 1 + 0.1 * self.weight(self.decoder.width),
                       self.to(self.op("Mul", wide, inverse), self.element))

    def angles(self):
        """Cosines and sines of [batch, 1, positions, head]."""
        head = self.decoder.head
        frequencies = self.exact((1 / 10_000 ** (np.arange(0, head, 2) / head)).astype(
            np.float32).reshape(1, -1, 1))
        positions = self.op("Cast", self.op("Unsqueeze", "positions", [1]),
                            to=onnx.TensorProto.FLOAT)
        angles = self.op("Transpose", self.op("MatMul", frequencies, positions), perm=[0, 2, 1])
        both = self.op("Concat", angles, angles, axis=-1)
        return [self.op("Unsqueeze", self.to(self.op(op, both), self.element), [1])
                for op in ("Cos", "Sin")]

    def split_heads(self, x, heads):
        decoder = self.decoder
        parts = self.op("Reshape", x, [decoder.batch, decoder.positions, heads, decoder.head])
        return self.op("Transpose", parts, perm=[0, 2, 1, 3])

    def embed(self, x, angles):
        cosines, sines = angles
        turned = rotate_half(self, x, self.decoder.head)
        return self.op("Add", self.op("Mul", x, cosines), self.op("Mul", turned, sines))

    def repeat(self, x):
        """Each key serves several queries."""
        decoder = self.decoder
        times = decoder.heads // decoder.key_heads
        if times == 1:
            return x
        one = self.op("Unsqueeze", x, [2])
        many = self.op("Expand", one, [decoder.batch, decoder.key_heads, times, decoder.positions,
                                       decoder.head])
        return self.op("Reshape", many,
                       [decoder.batch, decoder.heads, decoder.positions, decoder.head])

    def attend(self, x, angles):
        decoder = self.decoder
        keys_width = decoder.key_heads * decoder.head
        queries = self.split_heads(self.linear(x, decoder.width, decoder.width), decoder.heads)
        keys = self.split_heads(self.linear(x, decoder.width, keys_width), decoder.key_heads)
        values = self.split_heads(self.linear(x, decoder.width, keys_width), decoder.key_heads)
        queries = self.embed(queries, angles)
        keys = self.repeat(self.embed(keys, angles))
        scores = self.op("MatMul", queries, self.op("Transpose", keys, perm=[0, 1, 3, 2]))
        scaled = self.op("Mul", scores, 1 / math.sqrt(decoder.head))
        lowest = np.finfo(self.element).min
        mask = np.triu(np.full((decoder.positions, decoder.positions), lowest, self.element), 1)
        shares = self.op("Softmax", self.to(self.op("Add", scaled, mask), np.float32), axis=-1)
        mixed = self.op("MatMul", self.to(shares, self.element), self.repeat(values))
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                         [decoder.batch, decoder.positions, decoder.width])
        return self.linear(joined, decoder.width, decoder.width)

    def gate(self, x):
        decoder = self.decoder
        gate = self.linear(x, decoder.width, decoder.hidden)
        opened = self.op("Mul", gate, self.op("Sigmoid", gate))
        product = self.op("Mul", opened, self.linear(x, decoder.width, decoder.hidden))
        return self.linear(product, decoder.hidden, decoder.width)


def decoder_model(decoder):
    """The model as a ModelProto."""
    writer = DecoderWriter(decoder)
    x = writer.op("Gather", writer.weight(decoder.words, decoder.width), "ids", axis=0)
    angles = writer.angles()
    for _ in range(decoder.layers):
        x = writer.op("Add", x, writer.attend(writer.normalize(x), angles))
        x = writer.op("Add", x, writer.gate(writer.normalize(x)))
    logits = writer.linear(writer.normalize(x), decoder.width, decoder.words)
    shape = [decoder.batch, decoder.positions]
    return writer.model({"ids": shape, "positions": shape}, logits,
                        input_elements={"ids": np.int64, "positions": np.int64})


def main():
    parser = Parser(__doc__, "--layers 4 --width 512 /tmp/decoder.onnx")
    parser.add_argument("path", help="of the file to write")
    for field in dataclasses.fields(Decoder):
        if field.type is int:
            parser.option("--" + field.name.replace("_", "-"), field.default, type=int)
    parser.flag("--half", "float16 instead of float32")
    options = vars(parser.parse_args())
    path = options.pop("path")
    element = np.float16 if options.pop("half") else np.float32
    decoder = Decoder(element=element, **options)
    if decoder.width % (2 * decoder.heads) or decoder.heads % decoder.key_heads:
        parser.error("expected a width that twice the heads divide, and heads that the key heads "
                     f"divide, found {decoder.width}, {decoder.heads} and {decoder.key_heads}")
    onnx.save(decoder_model(decoder), path)


if __name__ == "__main__":
    main()
