"""Products, arithmetic with types of its own, and ops that make values."""

import numpy as np
from attribute_rows.row import X, Row, combined, floats, ints


def product_rows():
    a, square = floats(3, 3), floats(3, 3)
    yield Row("Gemm", {"A": a, "B": square}, {
        "C": [floats(3, 3), floats(3), floats(3, 1)],
        "alpha": [0.5, -2.0], "beta": [combined("beta", 0.5, C=floats(3)), combined(
            "beta", -1.0, C=floats(3, 3))],
        "transA": [1, combined("transA", 1, transB=1)], "transB": [1]}, versions=range(11, 1000))
    yield Row("Gemm", {"A": a, "B": square, "C": floats(3, 3)}, {
        "alpha": [0.5], "beta": [0.5], "transA": [1], "transB": [1]}, versions=range(1, 11))
    yield Row("Gemm", {"A": a, "B": square, "C": floats(3)}, {"broadcast": [1]},
              versions=range(6, 7))
    yield Row("Einsum", {"Inputs": [floats(3, 3), floats(3, 3)]}, {
        "equation": ["ij,jk->ik", "ij,kj->ik", "ij,ij->i", "ij,jk", "ij,ij->", "ij,jk->ki"]})
    x, y = np.array([-7, 7, -7, 7, 5, -5], np.int32), np.array([3, 3, -3, -3, 2, 2], np.int32)
    yield Row("Mod", {"A": x, "B": y}, {"fmod": [1]})
    yield Row("Mod", {"A": x.astype(np.int64), "B": y.astype(np.int64)}, {"fmod": [1]})
    yield Row("Mod", {"A": x.astype(np.float32) / 2, "B": y.astype(np.float32)}, {"fmod": [1]})
    for dtype in (np.uint8, np.uint32, np.uint64):
        yield Row("BitShift", {"X": ints(1, 200, 77, dtype=dtype), "Y": ints(3, 1, 2, dtype=dtype)},
                  {"direction": ["LEFT", "RIGHT"]})
    numbers = np.array([-2.7, -0.5, 0, 0.5, 1, 1.5, 3.3, 100], np.float32)
    yield Row("Cast", {"input": numbers}, {"to": [1, 10, 11, 16, 6, 7, 3, 5, 9]},
              same={})
    yield Row("Cast", {"input": np.abs(numbers)}, {"to": [2, 4, 12, 13, 9]})
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less", "Equal"):
        left, right = np.abs(floats(3, 3, 3)) + 1, np.abs(floats(3)) + 1
        if op == "Equal":
            left, right = np.round(left).astype(np.int32), np.round(right).astype(np.int32)
        yield Row(op, {"A": left, "B": right}, {
            "broadcast": [1], "axis": [combined("axis", 0, broadcast=1),
                                       combined("axis", 1, broadcast=1)]},
            same={"axis": [combined("axis", 2, broadcast=1)]}, versions=range(1, 7))
    for op in ("And", "Or", "Xor"):
        left, right = floats(3, 3, 3) > 0, np.array([True, False, True])
        yield Row(op, {"A": left, "B": right}, {
            "broadcast": [1], "axis": [combined("axis", 0, broadcast=1),
                                       combined("axis", 1, broadcast=1)]}, versions=range(1, 7))


def creation_rows():
    yield Row("ConstantOfShape", {"input": ints(2, 3)},
              {"value": [np.array([5], np.int32), np.array([0.5], np.float32),
                         np.array([1], bool)]})
    values = {"value_float": [2.5], "value_floats": [[1.5, 2.5]], "value_int": [3],
              "value_ints": [[3, 4]]}
    yield Row("Constant", {}, {"value": [floats(2, 2), ints(3)]})
    yield Row("Constant", {}, values, versions=range(12, 1000))
    yield Row("Range", {"start": np.float32(1), "limit": np.float32(7), "delta": np.float32(1.5)},
              {}, same={"stash_type": [1]}, versions=range(27, 1000))
    yield Row("Dropout", {"data": X}, {}, same={"ratio": [0.3], "seed": [3], "is_test": [1]},
              versions=range(6, 12))
    yield Row("Dropout", {"data": X}, {}, outputs=2, same={
        "ratio": [np.float32(0.3)], "seed": [3], "training_mode": [combined(
            "training_mode", np.array(False), ratio=np.float32(0.3))]}, versions=range(12, 1000))


FAMILIES = (product_rows, creation_rows)
