"""Random uses of ops on signals, matrices and sets, beside ONNX Runtime and the definition in
NumPy: shapes, axes, lengths, types and versions at once, which tests/attribute_rows varies one by
one.

ONNX Runtime does not judge where it deviates from the standard; the place says how."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

CASES = 25  # for each op
FLOATS = (np.float32, np.float64, np.float16)
# A few roundings of each type, as a part of the largest result.
TOLERANCE = {np.float16: 3e-3, np.float32: 3e-6, np.float64: 1e-13}
# ONNX Runtime sums in the type of the elements, and has constants of windows in float32.
TOLERANCE_OF_JUDGE = {np.float16: 1e-2, np.float32: 1e-4, np.float64: 1e-6}


class Case:
    def __init__(self, op, inputs, attributes=None, *, opset, outputs=1, domain="", expected=None,
                 has_judge=True):
        self.op, self.inputs, self.opset, self.outputs = op, inputs, opset, outputs
        self.attributes, self.domain = attributes or {}, domain
        self.expected = expected  # arrays, or None
        self.has_judge = has_judge

    def __str__(self):
        shapes = [None if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs]
        small = [x.tolist() for x in self.inputs if x is not None and x.size <= 2]
        return f"{self.op}-{self.opset} {shapes} {small} {self.attributes}"

    def model(self):
        names = ["" if x is None else f"i{index}" for index, x in enumerate(self.inputs)]
        node = helper.make_node(self.op, names, [f"o{index}" for index in range(self.outputs)],
                                "target", domain=self.domain)
        for name, value in self.attributes.items():
            kind = onnx.AttributeProto.INTS if isinstance(value, list) else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        given = {name: x for name, x in zip(names, self.inputs) if x is not None}
        fed = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype),
                                             x.shape) for name, x in given.items()]
        graph = helper.make_graph([node], "drawn", fed,
                                  [onnx.ValueInfoProto(name=name) for name in node.output])
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, 1))
        model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
        return model.SerializeToString(), given


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def shape_of(random, rank, most=6):
    return [int(size) for size in random.integers(1, most + 1, rank)]


def drawn(random, shape, dtype):
    return random.standard_normal(shape).astype(dtype)


def pick(random, values):
    return values[int(random.integers(len(values)))]


def parts_of(spectrum, dtype):
    return np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)


# --- The ops -------------------------------------------------------------------------------------


def dft_case(random):
    dtype = pick(random, FLOATS)
    rank = int(random.integers(2, 5))
    shape = shape_of(random, rank, pick(random, (5, 12, 40)))
    axis = int(random.integers(rank))
    inverse, onesided = (int(random.integers(2)) for _ in range(2))
    parts = 2 if inverse else 1 if onesided else pick(random, (1, 2))
    if inverse and onesided:
        shape[axis] += 1
    x = drawn(random, [*shape, parts], dtype)
    length = int(random.integers(1, 30)) if random.random() < 0.5 else None
    exact = x.astype(np.float64)
    exact = exact[..., 0] + (1j * exact[..., 1] if parts == 2 else 0)
    if inverse and onesided:
        expected = np.fft.irfft(exact, length, axis)[..., None].astype(dtype)
    elif inverse:
        expected = parts_of(np.fft.ifft(exact, length, axis), dtype)
    elif onesided:
        expected = parts_of(np.fft.rfft(exact.real, length, axis), dtype)
    else:
        expected = parts_of(np.fft.fft(exact, length, axis), dtype)
    opset = pick(random, (17, 19, 20, 28))
    given = pick(random, (axis, axis - rank - 1))
    attributes = {"inverse": inverse, "onesided": onesided}
    inputs = [x, None if length is None else scalar(length, pick(random, (np.int32, np.int64)))]
    if opset < 20:
        attributes["axis"] = given
    else:
        inputs.append(scalar(given))
    # ONNX Runtime reads more than half of the bins if a length is given.
    return Case("DFT", inputs, attributes, opset=opset, expected=[expected],
                has_judge=not (inverse and onesided and length is not None))


def stft_case(random):
    dtype = pick(random, (np.float32, np.float64))
    batch, length = int(random.integers(1, 4)), int(random.integers(8, 90))
    frame, step = int(random.integers(1, min(length, 40) + 1)), int(random.integers(1, 12))
    onesided = int(random.integers(2))
    parts = 1 if onesided else pick(random, (1, 2))
    x = drawn(random, [batch, length, parts], dtype)
    window = drawn(random, [frame], dtype) if random.random() < 0.7 else None
    exact = x.astype(np.float64)
    exact = exact[..., 0] + (1j * exact[..., 1] if parts == 2 else 0)
    frames = np.stack([exact[:, start:start + frame]
                       for start in range(0, length - frame + 1, step)], 1)
    frames = frames * (1 if window is None else window.astype(np.float64))
    spectra = np.fft.fft(frames, axis=-1)
    if onesided:
        spectra = spectra[..., :frame // 2 + 1]
    has_length = window is None or random.random() < 0.5
    return Case("STFT", [x, scalar(step), window, scalar(frame) if has_length else None],
                {"onesided": onesided}, opset=17, expected=[parts_of(spectra, dtype)])


def window_case(random):
    op, terms = pick(random, (("HannWindow", (0.5, 0)), ("HammingWindow", (21 / 46, 0)),
                              ("BlackmanWindow", (0.5, 0.08))))
    size, periodic = int(random.integers(2, 70)), int(random.integers(2))
    dtype = pick(random, (*FLOATS, np.int32))
    angle = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
    exact = 1 - terms[0] * (1 + np.cos(angle)) - terms[1] * (1 - np.cos(2 * angle))
    attributes = {"periodic": periodic, "output_datatype": helper.np_dtype_to_tensor_dtype(
        np.dtype(dtype))}
    return Case(op, [scalar(size)], attributes, opset=17, expected=[exact.astype(dtype)],
                has_judge=np.dtype(dtype).kind == "f")  # it rounds the largest element down to 0


def mel_case(random):
    bands, length = int(random.integers(1, 20)), int(random.integers(8, 500))
    rate = int(pick(random, (8000, 16000, 44100)))
    lower = round(float(random.uniform(0, 500)), 1)
    upper = round(float(random.uniform(600, rate / 2.2)), 1)
    return Case("MelWeightMatrix", [scalar(bands), scalar(length), scalar(rate),
                                    np.array(lower, np.float32), np.array(upper, np.float32)],
                opset=17)


def det_case(random):
    dtype = pick(random, (np.float32, np.float64))
    size = int(random.integers(1, 7))
    x = drawn(random, [*shape_of(random, int(random.integers(3)), 3), size, size], dtype)
    expected = np.linalg.det(x.astype(np.float64)).astype(dtype)
    return Case("Det", [x], opset=pick(random, (11, 22)), expected=[expected])


def inverse_case(random):
    dtype = pick(random, (np.float32, np.float64))
    size = int(random.integers(1, 7))
    batch = shape_of(random, int(random.integers(3)), 3)
    x = (drawn(random, [*batch, size, size], dtype) + 4 * np.eye(size)).astype(dtype)
    return Case("Inverse", [x], opset=17, domain="com.microsoft",
                expected=[np.linalg.inv(x.astype(np.float64)).astype(dtype)])


def eye_case(random):
    dtype = pick(random, (np.float32, np.float64, np.int32, np.int64, np.uint64))
    shape = shape_of(random, 2)
    k = int(random.integers(-7, 8))
    return Case("EyeLike", [np.zeros(shape, np.float32)],
                {"k": k, "dtype": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))},
                opset=pick(random, (9, 22)), expected=[np.eye(*shape, k, dtype)])


def hardmax_case(random):
    rank = int(random.integers(1, 5))
    x = np.round(drawn(random, shape_of(random, rank, 5), np.float32))
    opset, axis = pick(random, (9, 11, 13)), int(random.integers(-rank, rank))
    if opset < 11:
        axis %= rank
    flat = x
    if opset < 13:
        flat = x.reshape(int(np.prod(x.shape[:axis % rank])), -1)
    along = -1 if opset < 13 else axis
    expected = np.zeros_like(flat)
    np.put_along_axis(expected, np.expand_dims(flat.argmax(along), along), 1, along)
    return Case("Hardmax", [x], {"axis": axis}, opset=opset, expected=[expected.reshape(x.shape)])


def lp_normalization_case(random):
    dtype = pick(random, (np.float32, np.float64))
    rank = int(random.integers(1, 5))
    x = drawn(random, shape_of(random, rank), dtype) * (random.random() < 0.9)
    x = x.astype(dtype)
    axis, p = int(random.integers(-rank, rank)), pick(random, (1, 2))
    norm = np.linalg.norm(x.astype(np.float64), p, axis, keepdims=True)
    expected = np.divide(x, norm, out=np.zeros(x.shape), where=norm != 0).astype(dtype)
    return Case("LpNormalization", [x], {"axis": axis, "p": p}, opset=pick(random, (6, 21, 22)),
                expected=[expected])


def lp_pool_case(random):
    rank = int(random.integers(1, 4))
    x = drawn(random, [*shape_of(random, 2, 3), *random.integers(5, 11, rank)], np.float32)
    if random.random() < 0.2:
        p = int(random.integers(1, 5))
        exact = np.abs(x.astype(np.float64)) ** p
        total = exact.sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
        return Case("GlobalLpPool", [x], {"p": p}, opset=pick(random, (6, 22)),
                    expected=[total.astype(np.float32)])
    opset = pick(random, (6, 11, 18, 22))
    kernel = [int(one) for one in random.integers(1, 4, rank)]
    attributes = {"kernel_shape": kernel, "p": int(random.integers(1, 5)),
                  "strides": [int(one) for one in random.integers(1, 4, rank)]}
    if opset >= 18 and random.random() < 0.5:
        attributes["dilations"] = [int(one) for one in random.integers(1, 3, rank)]
    if opset >= 18:
        attributes["ceil_mode"] = int(random.integers(2))
    choice = random.random()
    if choice < 0.4:
        attributes["pads"] = [int(random.integers(0, kernel[axis % rank]))
                              for axis in range(2 * rank)]
    elif choice < 0.7 and "dilations" not in attributes:
        attributes["auto_pad"] = pick(random, ("SAME_UPPER", "SAME_LOWER", "VALID"))
        # If a window leaves gaps, ONNX Runtime's padding is negative.
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], kernel)]
    return Case("LpPool", [x], attributes, opset=opset)


def moments_case(random):
    rank = int(random.integers(1, 5))
    x = (drawn(random, shape_of(random, rank, 5), np.float32) + 2).astype(np.float32)
    axes = [int(one) for one in random.choice(rank, int(random.integers(1, rank + 1)), False)]
    exact = x.astype(np.float64)
    deviation = exact.std(tuple(axes), keepdims=True) + 1e-9
    expected = (exact - exact.mean(tuple(axes), keepdims=True)) / deviation
    # ONNX Runtime sums squares in float32 and divides by 0 if all elements are equal.
    return Case("MeanVarianceNormalization", [x], {"axes": axes}, opset=pick(random, (9, 13)),
                expected=[expected.astype(np.float32)], has_judge=bool(deviation.min() > 0.3))


def reverse_case(random):
    x = drawn(random, shape_of(random, int(random.integers(2, 5))), pick(random, FLOATS))
    batch_axis = int(random.integers(2))
    lengths = random.integers(0, x.shape[1 - batch_axis] + 1, x.shape[batch_axis])
    expected = x.copy()
    for entry, length in enumerate(lengths):
        part = np.moveaxis(expected, batch_axis, 0)[entry]
        part[:length] = part[:length][::-1].copy()
    return Case("ReverseSequence", [x, lengths],
                {"batch_axis": batch_axis, "time_axis": 1 - batch_axis}, opset=10,
                expected=[expected])


def unique_case(random):
    dtype = pick(random, (np.float32, np.float64, np.int64, np.int8))
    rank = int(random.integers(1, 4))
    x = random.integers(-2, 3, shape_of(random, rank)).astype(dtype)
    attributes = {"sorted": int(random.integers(2))}
    axis = int(random.integers(-rank, rank)) if random.random() < 0.7 else None
    if axis is not None:
        attributes["axis"] = axis
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not attributes["sorted"]:
        order = np.argsort(first)
        y = np.take(y, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return Case("Unique", [x], attributes, opset=11, outputs=4,
                expected=[y, first, inverse, counts])


def scatter_case(random):
    rank = int(random.integers(1, 4))
    x = drawn(random, shape_of(random, rank), np.float32)
    axis = int(random.integers(-rank, rank))
    shape = [int(random.integers(1, size + 1)) for size in x.shape]
    shape[axis] = 1  # no two updates of one element
    indices = random.integers(-x.shape[axis], x.shape[axis], shape)
    return Case("Scatter", [x, indices, drawn(random, shape, np.float32)], {"axis": axis},
                opset=pick(random, (9, 10)))


def product_case(random):
    dtype = pick(random, (np.float32, np.float64, np.int32, np.int64))
    rank = int(random.integers(1, 4))
    x = (drawn(random, shape_of(random, rank), np.float64) * 2).astype(dtype)
    axis = int(random.integers(-rank, rank))
    exclusive, reverse = (int(random.integers(2)) for _ in range(2))
    exact = np.flip(x, axis) if reverse else x
    exact = np.cumprod(exact.astype(np.int64 if x.dtype.kind == "i" else np.float64), axis)
    if exclusive:
        exact = np.roll(exact, 1, axis)
        np.moveaxis(exact, axis, 0)[0] = 1
    exact = np.flip(exact, axis) if reverse else exact
    return Case("CumProd", [x, scalar(axis)], {"exclusive": exclusive, "reverse": reverse},
                opset=26, expected=[exact.astype(dtype)])


def bit_cast_case(random):
    group = pick(random, ((np.uint8, np.int8), (np.uint16, np.int16, np.float16),
                          (np.uint32, np.int32, np.float32), (np.uint64, np.int64, np.float64)))
    source, target = pick(random, group), pick(random, group)
    x = random.integers(0, 100, shape_of(random, 2)).astype(source)
    return Case("BitCast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))},
                opset=26, expected=[x.view(target)])


DRAW = {draw.__name__.removesuffix("_case"): draw for draw in (
    dft_case, stft_case, window_case, mel_case, det_case, inverse_case, eye_case, hardmax_case,
    lp_normalization_case, lp_pool_case, moments_case, reverse_case, unique_case, scatter_case,
    product_case, bit_cast_case)}


# --- The comparison ------------------------------------------------------------------------------


def run_judge(model, fed):
    """None if ONNX Runtime has no kernel for the node."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:
        return None
    return session.run(None, fed)


def difference(found, expected, tolerance):
    """"" if the arrays are equal up to rounding."""
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return (f"output {index}: expected {other.dtype}{list(other.shape)}, found "
                    f"{one.dtype}{list(one.shape)}")
        a, b = one.astype(np.float64), other.astype(np.float64)
        part = tolerance.get(one.dtype.type, 0)
        limit = part * np.abs(b).max(initial=0) + 10 * part * np.abs(b)
        if not (np.abs(a - b) <= limit).all():
            return f"output {index}: expected {other.tolist()}, found {one.tolist()}"
    return ""


def explain(tessera, case):
    """(what is wrong, whether ONNX Runtime took part)"""
    model, fed = case.model()
    executor = tessera.load(model).bind(backends=["reference"], threads=1, optimize=False)
    found = [np.asarray(output) for output in executor.run(fed)]
    wrong = ""
    if case.expected is not None:
        wrong = difference(found, case.expected, TOLERANCE)
    judged = run_judge(model, fed) if case.has_judge else None
    if judged is not None and not wrong:
        wrong = difference(found, judged, TOLERANCE_OF_JUDGE)
        wrong = wrong and "ONNX Runtime: " + wrong
    return wrong, judged is not None


@pytest.mark.parametrize("name", sorted(DRAW))
def test_is_the_definition_and_what_onnx_runtime_computes(tessera, name):
    random = np.random.default_rng(sum(name.encode()))
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CASES):
            case = DRAW[name](random)
            wrong, _ = explain(tessera, case)
            failures += [f"{case}: {wrong}"] if wrong else []
    assert not failures, "\n".join(failures[:5])
