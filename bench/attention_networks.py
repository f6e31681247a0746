#!/usr/bin/env python3
"""Writes networks of one attention each, in the sizes of real networks: Softmax(query * key * scale +
mask) * value with the Transposes around it, without weights."""

import numpy as np
from more_networks import NetworkWriter, write_all

# Name: heads, queries, keys, width of a head, whether there is a mask.
SIZES = {
    "clip_text": (12, 77, 77, 64, True),
    "bert_128": (12, 128, 128, 64, True),
    "vision_base": (12, 197, 197, 64, False),
    "bert_512": (12, 512, 512, 64, True),
    "whisper_encoder": (6, 1500, 1500, 64, False),
    "painter_4096": (8, 4096, 4096, 40, False),
    "reduced_keys": (1, 3136, 49, 32, False),
}


def network(name):
    heads, queries, keys, head, has_mask = SIZES[name]

    def make(writer):
        def split(x, length, order):
            parts = writer.op("Reshape", x, np.array([1, length, heads, head], np.int64))
            return writer.op("Transpose", parts, perm=order)

        inputs = {"q": [1, queries, heads * head], "k": [1, keys, heads * head],
                  "v": [1, keys, heads * head]}
        scores = writer.op("MatMul", split("q", queries, [0, 2, 1, 3]),
                           split("k", keys, [0, 2, 3, 1]))
        scores = writer.op("Mul", scores, np.float32(head ** -0.5))
        if has_mask:
            inputs["mask"] = [1, 1, 1, keys]
            scores = writer.op("Add", scores, "mask")
        mixed = writer.op("MatMul", writer.op("Softmax", scores, axis=-1),
                          split("v", keys, [0, 2, 1, 3]))
        joined = writer.op("Transpose", mixed, perm=[0, 2, 1, 3])
        return inputs, writer.op("Reshape", joined,
                                 np.array([1, queries, heads * head], np.int64))

    make.__name__ = name
    return make


if __name__ == "__main__":
    write_all(tuple(map(network, SIZES)), __doc__,
              "bench/attention_networks.py build/attention_networks")
