"""Cases of the ops of com.microsoft."""

import numpy as np
from networks.operator_cases.case import Either, c, contrib, f, i, u, v
from networks.operator_cases.layers import bytes_of, scale, zero

SMALL, LARGE = (16, 256), (4, 512, 512)
WINDOW = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}


def elements():
    for op in ("BiasGelu", "FastGelu"):
        yield contrib(op, [f(16, 256), c(f(256))], [f(512, 3072), c(f(3072))])
    yield contrib("FastGelu", [f(16, 256)], [f(512, 3072)], note="no bias")
    for op in ("Gelu", "QuickGelu"):
        yield contrib(op, [f(*SMALL)], [f(*LARGE)])
    yield contrib("BiasAdd", [f(1, 16, 64), f(64), f(1, 16, 64)],
                  [f(1, 1024, 320), f(320), f(1, 1024, 320)])
    yield contrib("BiasSplitGelu", [f(1, 8, 2560), f(2560)], [f(1, 256, 2560), f(2560)])
    yield contrib("BiasSoftmax", [f(16, 64), f(16, 64)], [f(1024, 1024), f(1024, 1024)], axis=1,
                  is_inner_broadcast=0)
    for op in ("ComplexMul", "ComplexMulConj"):
        yield contrib(op, [f(16, 128, 2)] * 2, [f(512, 512, 2)] * 2)
    yield contrib("CDist", [f(16, 32), f(16, 32)], [f(512, 64), f(512, 64)])
    yield contrib("IsAllFinite", [f(*SMALL)], [f(*LARGE)])
    yield contrib("MurmurHash3", [i(999, 256, dtype=np.int32)], [i(999, 2**17, dtype=np.int32)])
    yield contrib("MulInteger", [bytes_of(*SMALL), zero(), bytes_of(*SMALL), zero()],
                  [bytes_of(*LARGE), zero(), bytes_of(*LARGE), zero()])
    yield contrib("DynamicTimeWarping", [f(1, 16, 32)], [f(1, 200, 500)])


def movement():
    yield contrib("ExpandDims", [f(*SMALL), v(0, np.int32)], [f(*LARGE), v(0, np.int32)])
    yield contrib("GatherND", [f(32, 32, 4), i(32, 256, 2)], [f(256, 256, 16), i(256, 65536, 2)])
    yield contrib("Pad", [f(1, 4, 30, 30), v([0, 0, 1, 1, 0, 0, 1, 1])],
                  [f(1, 64, 126, 126), v([0, 0, 1, 1, 0, 0, 1, 1])])
    yield contrib("Range", [_scalar(0), _scalar(1000), _scalar(1)],
                  [_scalar(0), _scalar(2**20), _scalar(1)])
    yield contrib("TorchEmbedding", [f(64, 64), i(64, 64)], [f(8192, 256), i(8192, 4096)])
    yield contrib("Trilu", [f(64, 64)], [f(4, 512, 512)])
    yield contrib("UnfoldTensor", [f(16, 64)], [f(64, 4096)], dim=1, size=16, step=4)
    yield contrib("Unique", [u(0, 50, 512)], [u(0, 5000, 2**16)], outputs=3)
    yield contrib("GridSample", [f(1, 4, 16, 16), u(-1.1, 1.1, 1, 16, 16, 2)],
                  [f(1, 32, 64, 64), u(-1.1, 1.1, 1, 128, 128, 2)])
    yield contrib("CropAndResize", [f(1, 4, 16, 16), u(0, 1, 4, 4), v([0] * 4, np.int32),
                                    v([7, 7], np.int32)],
                  [f(1, 64, 56, 56), u(0, 1, 100, 4), v([0] * 100, np.int32), v([7, 7], np.int32)])
    yield contrib("NGramRepeatBlock", [i(20, 2, 32), f(2, 64)], [i(20, 16, 512), f(16, 32000)],
                  ngram_size=3)


def _scalar(number):
    return lambda source: np.array(number, np.int64)


def layers():
    yield contrib("FusedConv", [f(1, 4, 16, 16), c(f(8, 4, 3, 3)), c(f(8))],
                  [f(1, 64, 56, 56), c(f(64, 64, 3, 3)), c(f(64))], activation="Relu", **WINDOW)
    for op, more in (("NhwcConv", {}), ("NhwcFusedConv", {"activation": "Relu"})):
        yield contrib(op, [f(1, 16, 16, 4), c(f(8, 4, 3, 3)), c(f(8))],
                      [f(1, 56, 56, 64), c(f(64, 64, 3, 3)), c(f(64))], **more, **WINDOW)
    yield contrib("ConvTransposeWithDynamicPads", [f(1, 8, 8, 8), c(f(8, 4, 2, 2)), v([0] * 4)],
                  [f(1, 64, 64, 64), c(f(64, 32, 2, 2)), v([0] * 4)], strides=[2, 2])
    yield contrib("FusedGemm", [f(8, 64), c(f(64, 64)), c(f(64))],
                  [f(128, 768), c(f(768, 768)), c(f(768))], activation="Relu")
    for op in ("FusedMatMul", "TransposeMatMul"):
        yield contrib(op, [f(4, 8, 16), f(4, 8, 16)], [f(12, 256, 64), f(12, 256, 64)], transB=1,
                      alpha=0.125)
    yield contrib("FusedMatMulActivation", [f(8, 64), f(64, 64)], [f(128, 768), f(768, 768)],
                  activation="Relu")
    yield contrib("Inverse", [f(4, 8, 8)], [f(64, 64, 64)])
    yield contrib("Rfft", [f(4, 64)], [f(64, 1024)], signal_ndim=1, onesided=1, normalized=0)
    yield contrib("Irfft", [f(4, 33, 2)], [f(64, 513, 2)], signal_ndim=1, onesided=1, normalized=0)
    yield contrib("MaxpoolWithMask", [f(1, 4, 16, 16), i(2, 1, 4, 16, 16, dtype=np.int32, least=1)],
                  [f(1, 64, 112, 112), i(2, 1, 64, 112, 112, dtype=np.int32, least=1)], strides=[2, 2],
                  **WINDOW)
    yield contrib("NhwcMaxPool", [bytes_of(1, 16, 16, 8)], [bytes_of(1, 112, 112, 64)],
                  strides=[2, 2], **WINDOW)
    yield contrib("WordConvEmbedding", [i(30, 4, 8, dtype=np.int32, least=1), c(f(8, 1, 3, 8)),
                                        c(f(8)), c(f(30, 8))],
                  [i(30, 64, 16, dtype=np.int32, least=1), c(f(64, 1, 3, 32)), c(f(64)),
                   c(f(30, 32))], conv_window_size=3, embedding_size=Either(8, 64),
                  char_embedding_size=Either(8, 32))
    yield contrib("MoE", [f(8, 32), f(8, 4), c(f(4, 64, 32)), None, c(f(4, 32, 64))],
                  [f(32, 256), f(32, 8), c(f(8, 512, 256)), None, c(f(8, 256, 512))], k=2,
                  activation_type="gelu")


def normalizations():
    yield contrib("SkipLayerNormalization",
                  [f(16, 1, 256), f(16, 1, 256), c(f(256)), c(f(256)), c(f(256))],
                  [f(1, 1024, 768), f(1, 1024, 768), c(f(768)), c(f(768)), c(f(768))])
    yield contrib("SkipSimplifiedLayerNormalization",
                  [f(16, 1, 256), f(16, 1, 256), c(f(256))],
                  [f(1, 1024, 768), f(1, 1024, 768), c(f(768))])
    yield contrib("GroupNorm", [f(1, 16, 16, 32), c(f(32)), c(f(32))],
                  [f(1, 64, 64, 320), c(f(320)), c(f(320))], groups=Either(8, 32), activation=1)
    yield contrib("SkipGroupNorm",
                  [f(1, 16, 16, 32), c(f(32)), c(f(32)), f(1, 16, 16, 32), c(f(32))],
                  [f(1, 64, 64, 320), c(f(320)), c(f(320)), f(1, 64, 64, 320), c(f(320))],
                  groups=Either(8, 32), activation=1)
    yield contrib("EmbedLayerNormalization",
                  [i(100, 1, 16, dtype=np.int32), i(2, 1, 16, dtype=np.int32), c(f(100, 64)),
                   c(f(32, 64)), c(f(2, 64)), c(f(64)), c(f(64))],
                  [i(8000, 1, 512, dtype=np.int32), i(2, 1, 512, dtype=np.int32), c(f(8000, 768)),
                   c(f(512, 768)), c(f(2, 768)), c(f(768)), c(f(768))], outputs=2)
    yield contrib("QEmbedLayerNormalization",
                  _quantised_embedding(16, 100, 32, 64), _quantised_embedding(512, 8000, 512, 768),
                  outputs=2)


def _quantised_embedding(length, count, positions, width):
    return [i(count, 1, length, dtype=np.int32), i(2, 1, length, dtype=np.int32),
            c(bytes_of(count, width)), c(bytes_of(positions, width)), c(bytes_of(2, width)),
            c(bytes_of(width)), c(bytes_of(width)), None, *[scale()] * 5, *[zero()] * 5]


def attentions():
    yield contrib("Attention", [f(1, 16, 32), c(f(32, 96)), c(f(96))],
                  [f(1, 128, 768), c(u(-0.1, 0.1, 768, 2304)), c(f(2304))], num_heads=Either(2, 12))
    yield contrib("MultiHeadAttention", [f(1, 16, 32)] * 3, [f(1, 256, 768)] * 3,
                  num_heads=Either(2, 12))
    yield contrib("DecoderMaskedMultiHeadAttention",
                  [f(1, 1, 32)] * 3 + [None, None] + [f(1, 2, 32, 16)] * 2
                  + [v([8], np.int32)],
                  [f(1, 1, 768)] * 3 + [None, None] + [f(1, 12, 512, 64)] * 2
                  + [v([400], np.int32)],
                  num_heads=Either(2, 12), past_present_share_buffer=1, outputs=3)
    yield contrib("GroupQueryAttention", _grouped(1, 4, 2, 16, 32), _grouped(1, 16, 4, 64, 1024),
                  num_heads=Either(4, 16), kv_num_heads=Either(2, 4), outputs=3)
    yield contrib("RotaryEmbedding", [f(1, 16, 32), c(_row(16)), c(f(16, 8)), c(f(16, 8))],
                  [f(1, 512, 1024), c(_row(512)), c(f(512, 32)), c(f(512, 32))],
                  num_heads=Either(2, 16))


def _row(count):
    return lambda source: np.arange(count, dtype=np.int64)[None]


def _grouped(batch, heads, pairs, width, past):
    return [f(batch, 1, heads * width), f(batch, 1, pairs * width), f(batch, 1, pairs * width),
            f(batch, pairs, past, width), f(batch, pairs, past, width),
            v([past] * batch, np.int32), v(past + 1, np.int32)]


# --- Quantised ---


def quantised_elements():
    pair = [scale(), zero(), bytes_of(*SMALL), scale(), zero(), scale(0.1), zero()]
    large = [scale(), zero(), bytes_of(*LARGE), scale(), zero(), scale(0.1), zero()]
    for op in ("QLinearAdd", "QLinearMul"):
        yield contrib(op, [bytes_of(*SMALL), *pair], [bytes_of(*LARGE), *large])
    one = [scale(), zero(), scale(0.01), zero()]
    for op, more in (("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearSigmoid", {})):
        yield contrib(op, [bytes_of(*SMALL), *one], [bytes_of(*LARGE), *one], **more)
    yield contrib("QLinearSoftmax", [bytes_of(16, 256), *one], [bytes_of(4, 512, 512), *one],
                  attributes={"axis": -1, "opset": 13})
    yield contrib("QLinearReduceMean", [bytes_of(16, 256), *one], [bytes_of(2048, 512), *one],
                  axes=[1], keepdims=1)
    yield contrib("QLinearAveragePool", [bytes_of(1, 4, 16, 16), *one],
                  [bytes_of(1, 64, 112, 112), *one], strides=[2, 2], **WINDOW)
    yield contrib("QLinearGlobalAveragePool", [bytes_of(1, 16, 8, 8), *one],
                  [bytes_of(1, 512, 28, 28), *one])
    yield contrib("QLinearConcat", [scale(), zero(), bytes_of(16, 128), scale(), zero(),
                                    bytes_of(16, 128), scale(0.04), zero()],
                  [scale(), zero(), bytes_of(512, 1024), scale(), zero(), bytes_of(512, 1024),
                   scale(0.04), zero()], axis=1)
    yield contrib("QLinearWhere", [i(2, *SMALL, dtype=np.bool_), bytes_of(*SMALL), scale(), zero(),
                                   bytes_of(*SMALL), scale(), zero(), scale(), zero()],
                  [i(2, *LARGE, dtype=np.bool_), bytes_of(*LARGE), scale(), zero(),
                   bytes_of(*LARGE), scale(), zero(), scale(), zero()])
    yield contrib("QuantizeLinear", [f(*SMALL), scale(), zero()], [f(*LARGE), scale(), zero()])
    yield contrib("DequantizeLinear", [bytes_of(*SMALL), scale(), zero()],
                  [bytes_of(*LARGE), scale(), zero()])
    yield contrib("ReduceSumInteger", [bytes_of(16, 256)], [bytes_of(2048, 512)], axes=[1],
                  keepdims=1)


def quantised_layers():
    def matrices(rows, inner, columns):
        return bytes_of(rows, inner), c(bytes_of(inner, columns))
    (a, w), (la, lw) = matrices(8, 64, 64), matrices(128, 512, 512)
    yield contrib("DynamicQuantizeMatMul", [f(8, 64), w, scale(), zero()],
                  [f(128, 512), lw, scale(), zero()])
    yield contrib("MatMulIntegerToFloat", [a, w, scale(), scale(), zero(), zero()],
                  [la, lw, scale(), scale(), zero(), zero()])
    yield contrib("MatMulInteger16", [i(99, 8, 64, dtype=np.int16), i(99, 64, 64, dtype=np.int16)],
                  [i(99, 64, 256, dtype=np.int16), i(99, 256, 256, dtype=np.int16)])
    yield contrib("QGemm", [a, scale(), zero(), w, scale(), zero(), None, scale(9), zero()],
                  [la, scale(), zero(), lw, scale(), zero(), None, scale(99), zero()])
    yield contrib("QLinearConv", [bytes_of(1, 8, 8, 4), scale(), zero(), c(bytes_of(4, 4, 3, 3)),
                                  scale(), zero(), scale(9), zero()],
                  [bytes_of(1, 28, 28, 64), scale(), zero(), c(bytes_of(64, 64, 3, 3)), scale(),
                   zero(), scale(99), zero()], channels_last=1, **WINDOW)
    yield contrib("MatMulNBits", [f(1, 64), c(i(256, 64, 2, 16, dtype=np.uint8)),
                                  c(u(0.01, 0.1, 64, 2))],
                  [f(1, 2048), c(i(256, 2048, 64, 16, dtype=np.uint8)),
                   c(u(0.01, 0.1, 2048, 64))], K=Either(64, 2048), N=Either(64, 2048), bits=4,
                  block_size=32)
    yield contrib("MatMulBnb4", [f(1, 64), c(i(256, 2048, dtype=np.uint8)),
                                 c(u(0.01, 0.1, 64))],
                  [f(1, 1024), c(i(256, 2**19, dtype=np.uint8)), c(u(0.01, 0.1, 16384))],
                  K=Either(64, 1024), N=Either(64, 1024), block_size=64, quant_type=1)
    yield contrib("GatherBlockQuantized", [c(i(256, 64, 32, dtype=np.uint8)), i(64, 16),
                                           c(u(0.01, 0.1, 64, 2))],
                  [c(i(256, 4096, 256, dtype=np.uint8)), i(4096, 2048),
                   c(u(0.01, 0.1, 4096, 16))], bits=4, block_size=32)
    yield contrib("QAttention", [bytes_of(1, 16, 32), c(bytes_of(32, 96)), c(f(96)), scale(),
                                 scale(), None, zero(), zero()],
                  [bytes_of(1, 128, 768), c(bytes_of(768, 2304)), c(f(2304)), scale(0.01),
                   scale(0.01), None, zero(), zero()], num_heads=Either(2, 12))
    yield contrib("DynamicQuantizeLSTM", _quantised_recurrence(4, 16, 16),
                  _quantised_recurrence(64, 256, 256), hidden_size=Either(16, 256), outputs=2)


def _quantised_recurrence(steps, inputs, size):
    return [f(steps, 1, inputs), c(bytes_of(1, inputs, 4 * size)), c(bytes_of(1, size, 4 * size)),
            c(f(1, 8 * size)), None, None, None, None, v([0.01], "f"), zero(number=[60]),
            v([0.01], "f"), zero(number=[60])]


FAMILIES = (elements, movement, layers, normalizations, attentions, quantised_elements,
            quantised_layers)
