#!/usr/bin/env python3
"""Writes a small decoder as exporters write Llama: RMS normalization, causal attention with rotary
embeddings of queries and keys, and a gated SiLU layer. The weights are random, and the same for the
same options. The inputs are `ids` and `positions`, both int64 [batch, positions]; the output y has
one logit for each word."""

import dataclasses
import math

from harness.arguments import Parser
from networks.graph_writer import rotate_half
from networks.network_writer import NetworkWriter

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


class DecoderWriter(NetworkWriter):
    """The layers, in the order in which they are called."""

    def __init__(self, decoder):
        super().__init__(decoder.seed, decoder.element)
        self.decoder = decoder

    def weight(self, *shape):
        return (self.random.standard_normal(shape) / math.sqrt(shape[0])).astype(self.element)

    def product(self, x, rows, columns):
        return self.op("MatMul", x, self.weight(rows, columns))

    def to(self, x, element):
        """Exporters compute normalizations of float16 in float32."""
        if self.element == np.float32:
            return x
        return self.op("Cast", x, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(element)))

    def normalize(self, x):
        wide = self.to(x, np.float32)
        mean = self.mean_of_last(self.op("Pow", wide, np.int64(2)))
        root = self.op("Sqrt", self.add(mean, self.exact(np.float32(1e-6))))
        inverse = self.op("Reciprocal", root)
        return self.mul(1 + 0.1 * self.weight(self.decoder.width),
                        self.to(self.mul(wide, inverse), self.element))

    def angles(self):
        """Cosines and sines of [batch, 1, positions, head]."""
        head = self.decoder.head
        frequencies = self.exact((1 / 10_000 ** (np.arange(0, head, 2) / head)).astype(
            np.float32).reshape(1, -1, 1))
        positions = self.op("Cast", self.op("Unsqueeze", "positions", [1]),
                            to=onnx.TensorProto.FLOAT)
        angles = self.permute(self.op("MatMul", frequencies, positions), 0, 2, 1)
        both = self.op("Concat", angles, angles, axis=-1)
        return [self.op("Unsqueeze", self.to(self.op(op, both), self.element), [1])
                for op in ("Cos", "Sin")]

    def heads_of(self, x, heads):
        decoder = self.decoder
        parts = self.product(x, decoder.width, heads * decoder.head)
        parts = self.reshape(parts, decoder.batch, decoder.positions, heads, decoder.head)
        return self.permute(parts, 0, 2, 1, 3)

    def embed(self, x, angles):
        cosines, sines = angles
        halves = rotate_half(self, x, self.decoder.head)
        return self.add(self.mul(x, cosines), self.mul(halves, sines))

    def repeat(self, x):
        """Each key serves several queries."""
        decoder = self.decoder
        times = decoder.heads // decoder.key_heads
        if times == 1:
            return x
        rows = [decoder.positions, decoder.head]
        many = self.op("Expand", self.op("Unsqueeze", x, [2]),
                       [decoder.batch, decoder.key_heads, times, *rows])
        return self.reshape(many, decoder.batch, decoder.heads, *rows)

    def attend(self, x, angles):
        decoder = self.decoder
        queries = self.heads_of(x, decoder.heads)
        keys, values = (self.heads_of(x, decoder.key_heads) for _ in range(2))
        queries = self.embed(queries, angles)
        keys = self.repeat(self.embed(keys, angles))
        scores = self.op("MatMul", queries, self.permute(keys, 0, 1, 3, 2))
        scaled = self.mul(scores, 1 / math.sqrt(decoder.head))
        lowest = np.finfo(self.element).min
        mask = np.triu(np.full((decoder.positions, decoder.positions), lowest, self.element), 1)
        shares = self.op("Softmax", self.to(self.add(scaled, mask), np.float32), axis=-1)
        mixed = self.op("MatMul", self.to(shares, self.element), self.repeat(values))
        joined = self.join_heads(mixed, decoder.positions, decoder.width, decoder.batch)
        return self.product(joined, decoder.width, decoder.width)

    def gate(self, x):
        decoder = self.decoder
        opened = self.silu(self.product(x, decoder.width, decoder.hidden))
        product = self.mul(opened, self.product(x, decoder.width, decoder.hidden))
        return self.product(product, decoder.hidden, decoder.width)


def decoder_model(decoder):
    """The model as a ModelProto."""
    writer = DecoderWriter(decoder)
    x = writer.op("Gather", writer.weight(decoder.words, decoder.width), "ids", axis=0)
    angles = writer.angles()
    for _ in range(decoder.layers):
        x = writer.add(x, writer.attend(writer.normalize(x), angles))
        x = writer.add(x, writer.gate(writer.normalize(x)))
    logits = writer.product(writer.normalize(x), decoder.width, decoder.words)
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
