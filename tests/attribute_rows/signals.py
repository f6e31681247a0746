"""Signals, matrices, norms and sets. Random numbers have no rows: no two programs draw the same."""

import numpy as np
from attribute_rows.row import Row, combined, ints

# Of its own, so that the rows of other modules keep their values.
SOURCE = np.random.default_rng(79)


def drawn(*shape):
    return np.round(SOURCE.standard_normal(shape) * 2, 2).astype(np.float32)


def whole(number, dtype=np.int64):
    return np.array(number, dtype)


def transform_rows():
    signal, spectrum = drawn(2, 5, 6, 1), drawn(2, 5, 6, 2)
    yield Row("DFT", {"input": signal}, {
        "axis": [whole(0), whole(-4)], "dft_length": [whole(4), whole(9), whole(7, np.int32)],
        "inverse": [1], "onesided": [1, combined("onesided", 1, dft_length=whole(8))]},
        same={"inverse": [0], "onesided": [0]})
    # Version 20 has another default.
    for versions, other, default in ((range(17, 20), [2, -2], [1, -3]),
                                     (range(20, 1000), [1, -3], [2, -2])):
        yield Row("DFT", {"input": signal}, {"axis": [whole(one) for one in other]},
                  same={"axis": [whole(one) for one in default]}, versions=versions)
    yield Row("DFT", {"input": spectrum}, {
        "inverse": [1, combined("inverse", 1, axis=whole(0)), combined("inverse", 1, onesided=1)],
        "dft_length": [whole(3), whole(11)]})
    window = drawn(8)
    yield Row("STFT", {"signal": drawn(2, 30, 1), "frame_step": whole(4)}, {
        "window": [window, combined("window", window, onesided=0),
                   combined("window", window, frame_length=whole(8))],
        "frame_length": [whole(8), whole(7, np.int64), combined("frame_length", whole(5),
                                                                onesided=0)],
        "onesided": [combined("onesided", 0, window=window)]})
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield Row(op, {"size": whole(9)}, {"periodic": [0], "output_datatype": [11, 10]},
                  same={"periodic": [1], "output_datatype": [1]})
    yield Row("MelWeightMatrix", {
        "num_mel_bins": whole(6), "dft_length": whole(64), "sample_rate": whole(8000),
        "lower_edge_hertz": np.float32(90.5), "upper_edge_hertz": np.float32(3800)},
        {"output_datatype": [11, 10, 6]}, same={"output_datatype": [1]})


def norm_rows():
    x = drawn(2, 3, 4, 5)
    yield Row("LpNormalization", {"input": x}, {"axis": [0, 1, -2, -4], "p": [1]},
              same={"axis": [-1, 3], "p": [2]})
    image = drawn(1, 3, 9, 8)
    yield Row("LpPool", {"X": image}, {
        "p": [1, 3], "auto_pad": ["SAME_UPPER", "SAME_LOWER", combined(
            "auto_pad", "SAME_LOWER", strides=[2, 2])],
        "pads": [[1, 0, 1, 1], [0, 1, 0, 0]], "strides": [[2, 1], [1, 3]],
        "dilations": [[2, 1], [1, 3], combined("dilations", [2, 2], pads=[2, 1, 2, 1])],
        "ceil_mode": [combined("ceil_mode", 1, strides=[4, 4])],
        "kernel_shape": [[2, 3], [1, 1], [9, 8]]}, {"kernel_shape": [3, 2]},
        same={"auto_pad": ["VALID", "NOTSET"], "p": [2], "strides": [[1, 1]]})
    yield Row("GlobalLpPool", {"X": image}, {"p": [1, 3]}, same={"p": [2]})
    yield Row("MeanVarianceNormalization", {"X": x}, {
        "axes": [[1], [0, 1], [2, 3], [-1, 0], [0, 1, 2, 3]]}, same={"axes": [[0, 2, 3]]})
    ties = np.round(drawn(3, 4, 5))
    yield Row("Hardmax", {"input": ties}, {"axis": [0, 2]}, versions=range(1, 13))
    yield Row("Hardmax", {"input": ties}, {"axis": [0, 1, -2, -3]}, same={"axis": [2, -1]},
              versions=range(13, 1000))


def set_rows():
    values = SOURCE.integers(-1, 2, (4, 3, 2)).astype(np.float32)
    values[0, 0] = 1, -1  # not in ascending order
    yield Row("Unique", {"X": values}, {"sorted": [0], "axis": [0, 1, -1]}, outputs=4,
              same={"sorted": [1]})
    yield Row("ReverseSequence", {"input": drawn(3, 3, 2), "sequence_lens": ints(2, 3, 1)}, {
        "batch_axis": [combined("batch_axis", 0, time_axis=1)],
        "time_axis": [combined("time_axis", 1, batch_axis=0)]},
        same={"batch_axis": [1], "time_axis": [0]})
    yield Row("Scatter", {"data": drawn(3, 3, 3), "indices": np.array([[[0, 2, 1]]]),
                          "updates": drawn(1, 1, 3)}, {"axis": [1, 2, -1, -2]},
              same={"axis": [0]})
    yield Row("CumProd", {"x": drawn(2, 3, 4), "axis": np.array(1)}, {
        "reverse": [1], "exclusive": [1, combined("exclusive", 1, reverse=1)],
        "axis": [np.array(-1), np.array(0), np.array(-3), np.array(2, np.int32)]})


def type_rows():
    numbers = drawn(3, 4)
    yield Row("EyeLike", {"input": numbers}, {"k": [1, -2, 3], "dtype": [7, 11]},
              same={"k": [0], "dtype": [1]})
    yield Row("BitCast", {"input": numbers}, {"to": [6, 12]})


FAMILIES = (transform_rows, norm_rows, set_rows, type_rows)
