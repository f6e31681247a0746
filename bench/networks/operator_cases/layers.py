"""Cases of layers: products, convolutions, pools, normalisations, images, signals, losses."""

import numpy as np
from networks.operator_cases.case import Either, Fixed, c, case, f, i, u, v

HALF = np.float16
TRAINING = "ai.onnx.preview.training"


def bytes_of(*dims, dtype=np.uint8):
    return i(120, *dims, dtype=dtype)


def scale(number=0.05):
    return v(number, np.float32)


def zero(dtype=np.uint8, number=0):
    return v(number, dtype)


def products():
    yield case("MatMul", [f(8, 64), c(f(64, 64))], [f(128, 768), c(f(768, 768))])
    yield case("MatMul", [f(1, 64), c(f(64, 64))], [f(1, 2048), c(f(2048, 2048))], note="vector")
    yield case("MatMul", [f(4, 8, 16), f(4, 16, 8)], [f(12, 256, 64), f(12, 64, 256)],
               note="batches")
    for name, dtype in (("float64", np.float64), ("int32", np.int32), ("int64", np.int64)):
        yield case("MatMul", [i(9, 8, 64, dtype=dtype), i(9, 64, 64, dtype=dtype)],
                   [i(9, 128, 256, dtype=dtype), i(9, 256, 256, dtype=dtype)], note=name)
    yield case("MatMul", [f(8, 64, dtype=HALF), c(f(64, 64, dtype=HALF))],
               [f(128, 512, dtype=HALF), c(f(512, 512, dtype=HALF))], note="float16")
    yield case("Gemm", [f(8, 64), c(f(64, 64)), c(f(64))], [f(128, 768), c(f(768, 768)), c(f(768))],
               transB=1)
    yield case("Einsum", [f(1, 2, 8, 16), f(1, 2, 8, 16)], [f(1, 8, 256, 64), f(1, 8, 256, 64)],
               equation="bhid,bhjd->bhij")
    yield case("Einsum", [f(16, 16), f(16, 16)], [f(512, 512), f(512, 512)], equation="ij,ij->i",
               note="rows")
    yield case("Einsum", [f(2, 8, 4), f(2, 8, 4), f(4, 4)], [f(4, 64, 64), f(4, 64, 64), f(64, 64)],
               equation="abi,acj,ij->abc", note="three")
    yield case("Det", [f(4, 8, 8)], [f(64, 64, 64)])
    yield case("MatMulInteger", [bytes_of(8, 64), c(bytes_of(64, 64))],
               [bytes_of(128, 512), c(bytes_of(512, 512))])
    yield case("QLinearMatMul", [bytes_of(8, 64), scale(), zero(), c(bytes_of(64, 64)), scale(),
                                 zero(), scale(9), zero()],
               [bytes_of(128, 512), scale(), zero(), c(bytes_of(512, 512)), scale(), zero(),
                scale(99), zero()])
    yield case("QuantizeLinear", [f(16, 256), scale(), zero()], [f(4, 512, 512), scale(), zero()])
    yield case("DequantizeLinear", [bytes_of(16, 256), scale(), zero()],
               [bytes_of(4, 512, 512), scale(), zero()])
    yield case("DynamicQuantizeLinear", [f(16, 256)], [f(4, 512, 512)], outputs=3)


def convolutions():
    window = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    yield case("Conv", [f(1, 4, 16, 16), c(f(8, 4, 3, 3)), c(f(8))],
               [f(1, 64, 56, 56), c(f(64, 64, 3, 3)), c(f(64))], **window)
    yield case("Conv", [f(1, 16, 8, 8), c(f(16, 1, 3, 3))], [f(1, 96, 112, 112), c(f(96, 1, 3, 3))],
               group=Either(16, 96), note="depthwise", **window)
    yield case("Conv", [f(1, 4, 64), c(f(8, 4, 3))], [f(1, 80, 1500), c(f(128, 80, 3))],
               note="1D")
    yield case("Conv", [f(1, 2, 6, 6, 6), c(f(4, 2, 3, 3, 3))],
               [f(1, 16, 16, 32, 32), c(f(16, 16, 3, 3, 3))], note="3D")
    yield case("ConvTranspose", [f(1, 8, 8, 8), c(f(8, 4, 2, 2))],
               [f(1, 64, 64, 64), c(f(64, 32, 2, 2))], strides=[2, 2])
    yield case("ConvTranspose", [f(1, 8, 8, 8), c(f(8, 4, 4, 4))],
               [f(1, 64, 32, 32), c(f(64, 32, 4, 4))], strides=[2, 2], pads=[1, 1, 1, 1],
               note="4x4")
    yield case("ConvTranspose", [f(1, 4, 64), c(f(4, 4, 4))], [f(1, 64, 1000), c(f(64, 64, 16))],
               strides=Either([2], [8]), note="1D")
    yield case("DeformConv", [f(1, 4, 8, 8), c(f(4, 4, 3, 3)), f(1, 18, 8, 8)],
               [f(1, 32, 32, 32), c(f(32, 32, 3, 3)), f(1, 18, 32, 32)], **window)
    yield case("Col2Im", [f(1, 36, 64), v([8, 8]), v([3, 3])],
               [f(1, 576, 4096), v([64, 64]), v([3, 3])], pads=[1, 1, 1, 1])
    yield case("CausalConvWithState", [f(1, 16, 32), c(f(16, 1, 4))],
               [f(1, 512, 512), c(f(512, 1, 4))], outputs=2)
    yield case("ConvInteger", [bytes_of(1, 4, 8, 8), c(bytes_of(4, 4, 3, 3))],
               [bytes_of(1, 32, 28, 28), c(bytes_of(32, 32, 3, 3))], **window)
    yield case("QLinearConv", [bytes_of(1, 4, 8, 8), scale(), zero(), c(bytes_of(4, 4, 3, 3)),
                               scale(), zero(), scale(9), zero()],
               [bytes_of(1, 64, 28, 28), scale(), zero(), c(bytes_of(64, 64, 3, 3)), scale(),
                zero(), scale(99), zero()], **window)


def pools():
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    for op in ("AveragePool", "LpPool", "MaxPool"):
        yield case(op, [f(1, 4, 16, 16)], [f(1, 64, 112, 112)], **window)
    yield case("MaxPool", [f(1, 4, 16, 16)], [f(1, 64, 112, 112)], outputs=2, note="indices",
               **window)
    yield case("MaxPool", [bytes_of(1, 4, 16, 16)], [bytes_of(1, 64, 112, 112)], note="uint8",
               **window)
    yield case("MaxPool", [f(1, 2, 8, 8, 8)], [f(1, 16, 16, 56, 56)], note="3D",
               kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield case("MaxPool", [f(1, 4, 256)], [f(1, 256, 4096)], note="1D", kernel_shape=[2],
               strides=[2])
    for op in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"):
        yield case(op, [f(1, 16, 8, 8)], [f(1, 512, 32, 32)])
    yield case("MaxUnpool", [f(1, 4, 8, 8), c(_maxima(4, 8))], [f(1, 64, 64, 64), c(_maxima(64, 64))],
               kernel_shape=[2, 2], strides=[2, 2])


def _maxima(channels, size):
    """Indices of maxima of windows of 2 x 2, as MaxPool gives them."""
    def make(source):
        rows = 2 * np.arange(size)[:, None] + source.integers(0, 2, (channels, size, size))
        columns = 2 * np.arange(size) + source.integers(0, 2, (channels, size, size))
        planes = np.arange(channels)[:, None, None] * 4 * size * size
        return (planes + rows * 2 * size + columns)[None].astype(np.int64)
    return make


def normalizations():
    yield case("BatchNormalization", [f(1, 8, 16, 16)] + [c(u(0.5, 1, 8))] * 4,
               [f(1, 64, 112, 112)] + [c(u(0.5, 1, 64))] * 4)
    yield case("InstanceNormalization", [f(1, 8, 16, 16), c(f(8)), c(f(8))],
               [f(1, 64, 112, 112), c(f(64)), c(f(64))])
    yield case("GroupNormalization", [f(1, 8, 16, 16), c(f(8)), c(f(8))],
               [f(1, 64, 112, 112), c(f(64)), c(f(64))], num_groups=Either(4, 32))
    yield case("LayerNormalization", [f(16, 256), c(f(256)), c(f(256))],
               [f(1024, 768), c(f(768)), c(f(768))])
    yield case("RMSNormalization", [f(16, 256), c(f(256))], [f(1024, 768), c(f(768))])
    yield case("SimplifiedLayerNormalization", [f(16, 256), c(f(256))], [f(1024, 768), c(f(768))],
               axis=-1, opset=17)
    yield case("LRN", [f(1, 8, 8, 8)], [f(1, 64, 56, 56)], size=5)
    yield case("LpNormalization", [f(16, 256)], [f(1024, 768)])
    yield case("LpNormalization", [f(16, 256)], [f(1, 64, 112, 112)], p=1, axis=Either(0, 1),
               note="columns")
    yield case("MeanVarianceNormalization", [f(1, 8, 16, 16)], [f(1, 64, 112, 112)])


def recurrences():
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            def weights(size, inputs, gates=gates, count=count):
                return [c(u(-0.1, 0.1, count, gates * size, inputs)),
                        c(u(-0.1, 0.1, count, gates * size, size)),
                        c(u(-0.1, 0.1, count, 2 * gates * size))]
            yield case(op, [f(4, 1, 16), *weights(16, 16)], [f(64, 1, 256), *weights(256, 256)],
                       hidden_size=Either(16, 256), direction=direction,
                       note="" if count == 1 else "two ways", outputs=2)


def attentions():
    yield case("Attention", [f(1, 2, 16, 16)] * 3, [f(1, 12, 256, 64)] * 3)
    yield case("RotaryEmbedding", [f(1, 2, 16, 16), f(16, 8), f(16, 8), Fixed(_positions(16))],
               [f(1, 16, 512, 64), f(512, 32), f(512, 32), Fixed(_positions(512))])
    yield case("LinearAttention", [f(1, 8, 32), f(1, 8, 32), f(1, 8, 32)],
               [f(1, 256, 256), f(1, 256, 256), f(1, 256, 256)], q_num_heads=4, kv_num_heads=4,
               update_rule="linear", outputs=2)


def _positions(count):
    return lambda source: np.arange(count, dtype=np.int64)[None]


def _boxes(count, batch=1):
    def make(source):
        corner = source.uniform(0, 600, (batch, count, 2))
        return np.concatenate([corner, corner + source.uniform(5, 80, (batch, count, 2))],
                              axis=-1).astype(np.float32)
    return make


def _regions(count, most, with_batch=False):
    def make(source):
        corner = source.uniform(0, most / 2, (count, 2))
        boxes = np.concatenate([corner, corner + source.uniform(1, most / 2, (count, 2))], axis=1)
        if with_batch:
            boxes = np.concatenate([np.zeros((count, 1)), boxes], axis=1)
        return boxes.astype(np.float32)
    return make


def images():
    yield case("NonMaxSuppression", [_boxes(50), u(0, 1, 1, 2, 50), v([10]), v([0.5], "f"),
                                     v([0.1], "f")],
               [_boxes(4000), u(0, 1, 1, 4, 4000), v([100]), v([0.5], "f"), v([0.05], "f")])
    for mode in ("avg", "max"):
        yield case("RoiAlign", [f(1, 4, 16, 16), _regions(4, 16), v([0] * 4)],
                   [f(1, 64, 56, 56), _regions(100, 56), v([0] * 100)], output_height=7,
                   output_width=7, sampling_ratio=2, mode=mode, note=mode)
    yield case("MaxRoiPool", [f(1, 4, 16, 16), _regions(4, 16, True)],
               [f(1, 64, 56, 56), _regions(100, 56, True)], pooled_shape=[7, 7])
    for mode, note in (("linear", ""), ("nearest", "nearest"), ("cubic", "cubic")):
        yield case("GridSample", [f(1, 4, 16, 16), u(-1.1, 1.1, 1, 16, 16, 2)],
                   [f(1, 32, 64, 64), u(-1.1, 1.1, 1, 128, 128, 2)], mode=mode, note=note)
    yield case("GridSample", [f(1, 2, 8, 8, 8), u(-1.1, 1.1, 1, 8, 8, 8, 3)],
               [f(1, 8, 16, 32, 32), u(-1.1, 1.1, 1, 16, 32, 32, 3)], note="3D")
    for mode in ("nearest", "linear", "cubic"):
        yield case("Resize", [f(1, 4, 16, 16), None, v([1, 1, 2, 2], "f")],
                   [f(1, 32, 64, 64), None, v([1, 1, 2, 2], "f")], mode=mode, note=mode)
    yield case("Resize", [f(1, 4, 16, 16), None, v([1, 1, 0.6, 0.6], "f")],
               [f(1, 3, 480, 640), None, v([1, 1, 0.6, 0.6], "f")], mode="linear", antialias=1,
               note="antialias")
    yield case("Resize", [bytes_of(1, 4, 16, 16), None, v([1, 1, 2, 2], "f")],
               [bytes_of(1, 3, 240, 320), None, v([1, 1, 2, 2], "f")], mode="linear", note="uint8")


def signals():
    yield case("DFT", [f(4, 64, 1)], [f(64, 1024, 1)])
    yield case("DFT", [f(4, 64, 2)], [f(64, 1000, 2)], note="complex 1000")
    yield case("DFT", [f(4, 64, 1)], [f(64, 1024, 1)], onesided=1, note="one side")
    yield case("STFT", [f(1, 512, 1), v(128), v([1] * 128, "f")],
               [f(1, 16000, 1), v(160), v([1] * 400, "f")], onesided=1)


def losses():
    yield case("NegativeLogLikelihoodLoss", [f(16, 32), i(32, 16)], [f(4096, 256), i(256, 4096)])
    yield case("SoftmaxCrossEntropyLoss", [f(16, 32), i(32, 16)], [f(4096, 256), i(256, 4096)])
    rate = [v(0.1, "f"), v(3)]
    for op, states in (("Adagrad", 1), ("Adam", 2), ("Momentum", 1)):
        more = {"Adam": {}, "Adagrad": {}, "Momentum": {
            "alpha": 0.9, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard"}}[op]
        yield case(op, [*rate, *[u(0.1, 1, 16, 256)] * (2 + states)],
                   [*rate, *[u(0.1, 1, 1024, 1024)] * (2 + states)], domain=TRAINING,
                   outputs=1 + states, **more)


FAMILIES = (products, convolutions, pools, normalizations, recurrences, attentions, images,
            signals, losses)
