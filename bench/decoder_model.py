#!/usr/bin/env python3
"""Writes a small decoder as exporters write Llama: RMS normalization, causal attention with rotary
embeddings of queries and keys, and a gated SiLU layer. The weights are random, and the same for the
same options. The inputs are `ids` and `positions`, both int64 [batch, positions]; the output y has
one logit for each word."""

import dataclasses
import math

from harness.arguments import Parser
from networks.graph_writer import GraphWriter, rotate_half, value_info
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


@dataclasses.dataclass
class StepDecoder:
    """The sizes of GPT-2."""
    layers: int = 12
    width: int = 768
    heads: int = 12
    key_heads: int = 12
    hidden: int = 3072
    words: int = 50257
    past: int = 512  # positions of the caches
    bits: int = 4
    block: int = 32
    accuracy: int = 0  # the accuracy_level of ONNX Runtime: 1 is float32, 4 int8
    seed: int = 0

    @property
    def head(self):
        return self.width // self.heads

    @property
    def weight_bytes(self):
        """Of all products of a step, with their scales."""
        layer = self.width * (self.width + (self.heads + 2 * self.key_heads) * self.head
                              + 2 * self.hidden)
        weights = self.layers * layer + self.width * self.words
        return weights * self.bits // 8 + weights // self.block * 4

    def caches(self):
        """The names of each cache of the past and of the one that follows it."""
        return [(f"past_{kind}_{layer}", f"present_{kind}_{layer}")
                for layer in range(self.layers) for kind in ("key", "value")]

    @property
    def cache_shape(self):
        return [1, self.key_heads, self.past, self.head]


class StepWriter(GraphWriter):
    """One step of a decoder with quantised weights and caches, as ONNX Runtime's exporters write it.
    Inputs: `ids` [1, 1], `last` [1], the last position, `total` [1], that position plus 1, and the
    caches. Outputs: the logits y, and the caches."""

    def __init__(self, decoder):
        super().__init__()
        self.random = np.random.default_rng(decoder.seed)
        self.decoder = decoder

    def microsoft(self, name, *inputs, outputs=1, **attributes):
        made = self.op(name, *inputs, outputs=outputs, **attributes)
        self.nodes[-1].domain = "com.microsoft"
        return made

    def quantised(self, x, rows, columns):
        decoder = self.decoder
        blocks = rows // decoder.block
        bytes_of_block = decoder.block * decoder.bits // 8
        weights = self.random.integers(0, 256, (columns, blocks, bytes_of_block), np.uint8)
        # Such that the weights have the variance 1 / rows.
        deviation = 2 ** decoder.bits / math.sqrt(12)
        scales = self.random.uniform(0.9, 1.1, (columns, blocks)) / deviation / math.sqrt(rows)
        return self.microsoft("MatMulNBits", x, self.exact(weights),
                              self.exact(scales.astype(np.float32)), K=rows, N=columns,
                              bits=decoder.bits, block_size=decoder.block,
                              accuracy_level=decoder.accuracy)

    def norm(self):
        return 1 + 0.1 * self.random.standard_normal(self.decoder.width)

    def angles(self):
        half = self.decoder.head // 2
        turns = np.outer(np.arange(self.decoder.past), 1 / 10_000 ** (np.arange(half) / half))
        return [self.exact(part(turns).astype(np.float32)) for part in (np.cos, np.sin)]

    def attend(self, x, layer, angles):
        decoder = self.decoder
        parts = self.quantised(x, decoder.width,
                               (decoder.heads + 2 * decoder.key_heads) * decoder.head)
        caches = [f"past_{kind}_{layer}" for kind in ("key", "value")]
        mixed, *presents = self.microsoft(
            "GroupQueryAttention", parts, "", "", *caches, "last", "total", *angles, outputs=3,
            num_heads=decoder.heads, kv_num_heads=decoder.key_heads, do_rotary=1)
        for kind, present in zip(("key", "value"), presents):
            self.rename(present, f"present_{kind}_{layer}")
        return self.quantised(mixed, decoder.width, decoder.width)

    def rename(self, made, name):
        node = self.nodes[-1]
        node.output[list(node.output).index(made)] = name

    def write(self):
        decoder = self.decoder
        table = self.random.standard_normal((decoder.words, decoder.width))
        total = self.op("Gather", table, "ids", axis=0)
        angles = self.angles()
        x = self.op("SimplifiedLayerNormalization", total, self.norm(), axis=-1, epsilon=1e-5,
                    stash_type=1)
        for layer in range(decoder.layers):
            x, total = self.skip(total, self.attend(x, layer, angles))
            opened = self.microsoft("Gelu", self.quantised(x, decoder.width, decoder.hidden))
            x, total = self.skip(total, self.quantised(opened, decoder.hidden, decoder.width))
        return self.quantised(x, decoder.width, decoder.words)

    def skip(self, total, x):
        """The normalised sum, and the sum."""
        made, _, _, added = self.microsoft("SkipSimplifiedLayerNormalization", total, x,
                                           self.norm(), outputs=4, epsilon=1e-5)
        for index in (1, 2):
            self.nodes[-1].output[index] = ""
        return made, added


def step_model(decoder):
    """The model as a ModelProto."""
    writer = StepWriter(decoder)
    logits = writer.write()
    caches = decoder.caches()
    inputs = [value_info("ids", [1, 1], np.int64), value_info("last", [1], np.int32),
              value_info("total", [1], np.int32),
              *(value_info(past, decoder.cache_shape) for past, _ in caches)]
    writer.nodes.append(onnx.helper.make_node("Identity", [logits], ["y"], name="y"))
    outputs = [value_info("y", [1, 1, decoder.words]),
               *(value_info(present, decoder.cache_shape) for _, present in caches)]
    graph = onnx.helper.make_graph(writer.nodes, "decoder", inputs, outputs, writer.constants)
    domains = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=domains, ir_version=9)


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
