"""Cases of ops that move, choose, repeat or make elements."""

import numpy as np
from networks.operator_cases.case import Either, b, c, case, f, i, u, v, words

SMALL, LARGE = (16, 256), (4, 512, 512)
HALF = np.float16


def places(count, *dims):
    """Distinct indices below `count`, as long as dims[0], in a row of dims[1]."""
    def make(source):
        rows = [source.integers(0, count, dims[0]) for _ in range(dims[1])]
        rows[0] = source.permutation(count)[:dims[0]]
        return np.stack(rows, axis=-1)
    return make


def copies():
    for name, dtype in (("", np.float32), ("int64", np.int64), ("bool", np.bool_),
                        ("uint8", np.uint8), ("float16", HALF)):
        def make(*dims, dtype=dtype):
            return i(2, *dims, dtype=dtype)
        yield case("Concat", [make(16, 128), make(16, 128)], [make(512, 1024), make(512, 1024)],
                   axis=1, note=name)
        yield case("Transpose", [make(16, 256)], [make(1024, 1024)], perm=[1, 0], note=name)
        yield case("Gather", [make(64, 64), i(64, 64)], [make(8192, 256), i(8192, 4096)], axis=0,
                   note=name)
        yield case("Slice", [make(16, 512), v([0]), v([512]), v([1]), v([2])],
                   [make(1024, 2048), v([0]), v([2048]), v([1]), v([2])], note=f"step {name}".strip())
        yield case("Expand", [make(16, 1), v([16, 256])], [make(1024, 1), v([1024, 1024])],
                   note=name)
    yield case("Transpose", [f(1, 8, 16, 32)], [f(1, 512, 12, 64)], perm=[0, 2, 1, 3],
               note="heads")
    yield case("Transpose", [f(1, 16, 16, 16)], [f(1, 64, 128, 128)], perm=[0, 2, 3, 1],
               note="channels last")
    yield case("Concat", [f(16, 128), f(16, 128)], [f(512, 1024), f(512, 1024)], axis=0,
               note="rows")
    yield case("Slice", [f(16, 512), v([8]), v([264]), v([1])],
               [f(1024, 2048), v([8]), v([1032]), v([1])])
    yield case("Slice", [f(16, 256), v([-1]), v([-9999]), v([1]), v([-1])],
               [f(1024, 1024), v([-1]), v([-9999]), v([1]), v([-1])], note="backwards")
    yield case("Split", [f(16, 256)], [f(1024, 1024)], axis=1, num_outputs=2, outputs=2)
    yield case("Tile", [f(16, 64), v([1, 4])], [f(512, 512), v([2, 2])])
    yield case("Pad", [f(1, 4, 30, 30), v([0, 0, 1, 1, 0, 0, 1, 1])],
               [f(1, 64, 126, 126), v([0, 0, 1, 1, 0, 0, 1, 1])])
    for mode in ("reflect", "edge", "wrap"):
        yield case("Pad", [f(1, 4, 30, 30), v([0, 0, 1, 1, 0, 0, 1, 1])],
                   [f(1, 64, 126, 126), v([0, 0, 1, 1, 0, 0, 1, 1])], mode=mode, note=mode)
    for mode in ("DCR", "CRD"):
        yield case("DepthToSpace", [f(1, 16, 16, 16)], [f(1, 64, 128, 128)], blocksize=2,
                   mode=mode, note=mode)
    yield case("SpaceToDepth", [f(1, 4, 32, 32)], [f(1, 16, 256, 256)], blocksize=2)
    yield case("Flatten", [f(16, 256)], [f(4, 512, 512)])
    yield case("Reshape", [f(16, 256), v([-1])], [f(4, 512, 512), v([-1])])
    yield case("Squeeze", [f(1, 16, 256), v([0])], [f(1, 1024, 1024), v([0])])
    yield case("Unsqueeze", [f(16, 256), v([0])], [f(1024, 1024), v([0])])
    yield case("Shape", [f(16, 256)], [f(4, 512, 512)])
    yield case("Size", [f(16, 256)], [f(4, 512, 512)])
    yield case("Trilu", [f(64, 64)], [f(4, 512, 512)])
    yield case("Trilu", [b(64, 64), v(1)], [b(4, 512, 512), v(1)], note="bool", upper=0)
    yield case("ReverseSequence", [f(16, 4, 64), c(i(16, 4, least=1))],
               [f(128, 16, 512), c(i(128, 16, least=1))])
    yield case("CenterCropPad", [f(32, 64), v([16, 96])], [f(1024, 1024), v([512, 2048])])
    yield case("Upsample", [f(1, 4, 16, 16), v([1, 1, 2, 2], "f")],
               [f(1, 32, 64, 64), v([1, 1, 2, 2], "f")], opset=9)


def indices():
    yield case("GatherElements", [f(64, 64), i(64, 64, 64)], [f(1024, 1024), i(1024, 1024, 1024)],
               axis=1)
    yield case("GatherElements", [f(64, 64), i(64, 64, 64)], [f(1024, 1024), i(1024, 1024, 1024)],
               axis=0, note="columns")
    yield case("Gather", [f(64, 64), i(64, 16)], [f(1024, 1024), i(1024, 512)], axis=1,
               note="columns")
    yield case("GatherND", [f(32, 32, 4), i(32, 256, 2)], [f(256, 256, 16), i(256, 65536, 2)])
    yield case("GatherND", [f(4, 256), i(256, 4, 64, 1)], [f(64, 8192), i(8192, 64, 4096, 1)],
               batch_dims=1, note="batches")
    yield case("ScatterElements", [f(64, 64), i(64, 32, 64), f(32, 64)],
               [f(1024, 1024), i(1024, 512, 1024), f(512, 1024)], axis=0, reduction="add")
    yield case("ScatterElements", [f(64, 64), c(_columns(32, 64)), f(32, 64)],
               [f(1024, 1024), c(_columns(512, 1024)), f(512, 1024)], axis=0, note="set")
    yield case("ScatterND", [f(256, 16), places(256, 64, 1), f(64, 16)],
               [f(8192, 128), places(8192, 4096, 1), f(4096, 128)])
    yield case("ScatterND", [f(64, 64), i(64, 256, 2), f(256)],
               [f(1024, 1024), i(1024, 65536, 2), f(65536)], reduction="add", note="add")
    yield case("TensorScatter", [f(1, 4, 32, 16), f(1, 4, 1, 16), v([5])],
               [f(1, 16, 1024, 64), f(1, 16, 1, 64), v([500])])
    yield case("Compress", [f(64, 64), b(64)], [f(1024, 1024), b(1024)], axis=0)
    yield case("Compress", [f(4096), b(4096)], [f(2**20), b(2**20)], note="flat")
    for name, make in (("", lambda *dims: b(*dims, share=0.1)),
                       ("float32", lambda *dims: i(2, *dims, dtype=np.float32)),
                       ("int64", lambda *dims: i(2, *dims))):
        yield case("NonZero", [make(16, 256)], [make(1024, 1024)], note=name)
    yield case("OneHot", [i(32, 128), v(32), v([0, 1], "f")], [i(1000, 1024), v(1000), v([0, 1], "f")])
    yield case("Unique", [i(50, 512)], [i(5000, 2**17)], outputs=4)
    yield case("Unique", [f(512)], [f(2**14)], outputs=1, note="float32", sorted=1)
    yield case("Unique", [i(3, 64, 4)], [i(3, 8192, 8)], outputs=4, axis=0, note="rows")


def _columns(rows, columns):
    """For each column, other rows."""
    def make(source):
        return np.stack([source.permutation(2 * rows)[:rows] for _ in range(columns)], axis=1)
    return make


def makers():
    yield case("ConstantOfShape", [v([16, 256])], [v([1024, 1024])])
    yield case("ConstantOfShape", [_shape(16, 256)], [_shape(1024, 1024)], note="open")
    yield case("EyeLike", [f(64, 64)], [f(1024, 1024)])
    yield case("Range", [_scalar(0), _scalar(1000), _scalar(1)],
               [_scalar(0), _scalar(2**20), _scalar(1)])
    yield case("Range", [_scalar(0, "f"), _scalar(1000, "f"), _scalar(1, "f")],
               [_scalar(0, "f"), _scalar(2**20, "f"), _scalar(1, "f")], note="float32")
    for op in ("BlackmanWindow", "HammingWindow", "HannWindow"):
        yield case(op, [_scalar(400)], [_scalar(2**16)])
    yield case("MelWeightMatrix", [_scalar(number) for number in (8, 64, 8000)]
               + [_scalar(0, "f"), _scalar(4000, "f")],
               [_scalar(number) for number in (128, 1024, 16000)]
               + [_scalar(0, "f"), _scalar(8000, "f")])
    yield case("AffineGrid", [f(1, 2, 3), v([1, 3, 32, 32])], [f(4, 2, 3), v([4, 3, 256, 256])])
    yield case("Bernoulli", [u(0, 1, 16, 256)], [u(0, 1, 1024, 1024)], is_random=True)
    yield case("Multinomial", [f(1, 64)], [f(16, 1000)], sample_size=Either(16, 1000),
               is_random=True)
    for op in ("RandomNormalLike", "RandomUniformLike"):
        yield case(op, [f(16, 256)], [f(1024, 1024)], is_random=True)
    for op in ("RandomNormal", "RandomUniform"):
        yield case(op, [], [], shape=Either([16, 256], [1024, 1024]), is_random=True)


def _shape(*dims):
    return lambda source: np.array(dims, np.int64)


def _scalar(number, dtype=np.int64):
    return lambda source: np.array(number, dtype)


def strings():
    yield case("StringConcat", [words(50, 256)] * 2, [words(500, 32768)] * 2)
    yield case("StringNormalizer", [words(50, 256)], [words(500, 32768)],
               case_change_action="UPPER", locale="C")
    yield case("StringSplit", [words(50, 64)], [words(500, 16384)], delimiter="a", outputs=2)
    yield case("RegexFullMatch", [words(50, 64)], [words(500, 16384)], pattern="[a-m]+.*")
    yield case("TfIdfVectorizer", [i(9, 64)], [i(9, 64, 256)], max_gram_length=2,
               min_gram_length=1, max_skip_count=0, mode="TF", ngram_counts=[0, 4],
               ngram_indexes=list(range(7)), pool_int64s=[1, 2, 3, 4, 1, 2, 3, 4, 5, 6])
    yield case("Equal", [words(50, 256)] * 2, [words(500, 32768)] * 2, note="strings")
    yield case("Gather", [words(50, 256), i(256, 256)], [words(500, 32768), i(32768, 32768)],
               note="strings")


FAMILIES = (copies, indices, makers, strings)
