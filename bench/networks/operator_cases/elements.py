"""Cases of ops that compute each element alone, and of those that reduce them."""

import numpy as np
from networks.operator_cases.case import Either, b, c, case, f, i, u, v

SMALL, LARGE = (16, 256), (4, 512, 512)
HALF = np.float16
FLOATS = {"float16": HALF, "float64": np.float64}
INTEGERS = {"int64": np.int64, "int32": np.int32, "int8": np.int8, "uint8": np.uint8}


def unary(op, make=f, *, note="", large=LARGE, **attributes):
    return case(op, [make(*SMALL)], [make(*large)], note=note, **attributes)


def binary(op, make=f, *, note="", large=LARGE, **attributes):
    return case(op, [make(*SMALL), make(*SMALL)], [make(*large), make(*large)], note=note,
                **attributes)


def typed(make, dtype, *numbers):
    """A function of dimensions alone."""
    return lambda *dims: make(*numbers, *dims, dtype=dtype)


def activations():
    for op in ("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu",
               "Selu", "Shrink", "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh",
               "ThresholdedRelu", "Abs", "Atan", "Asinh", "Ceil", "Cos", "Cosh", "Erf", "Exp",
               "Floor", "IsInf", "IsNaN", "Neg", "Reciprocal", "Round", "Sign", "Sin", "Sinh",
               "Tan"):
        yield unary(op)
    yield unary("Gelu", note="tanh", approximate="tanh")
    for op in ("Acos", "Asin", "Atanh"):
        yield unary(op, lambda *dims: u(-0.99, 0.99, *dims))
    yield unary("Acosh", lambda *dims: u(1, 9, *dims))
    for op in ("Log", "Sqrt"):
        yield unary(op, lambda *dims: u(0.1, 9, *dims))
    yield case("PRelu", [f(16, 256), c(f(256))], [f(1, 64, 128, 128), c(f(64, 1, 1))])
    yield case("Clip", [f(*SMALL), v(-1, "f"), v(1, "f")], [f(*LARGE), v(-1, "f"), v(1, "f")])
    yield case("SwiGLU", [f(*SMALL)] * 2, [f(*LARGE)] * 2)
    yield unary("Not", b)
    yield case("Dropout", [f(*SMALL)], [f(*LARGE)])
    yield case("Identity", [f(*SMALL)], [f(*LARGE)])


def arithmetic():
    for op in ("Add", "Sub", "Mul", "Div"):
        yield binary(op)
    yield case("Add", [f(16, 256), f(256)], [f(4, 512, 512), f(512)], note="row")
    yield case("Mul", [f(16, 256), f(16, 1)], [f(4, 512, 512), f(4, 512, 1)], note="column")
    yield case("Pow", [u(0.1, 3, *SMALL), f(*SMALL)], [u(0.1, 3, *LARGE), f(*LARGE)])
    yield case("Pow", [f(*SMALL), v(2, "f")], [f(*LARGE), v(2, "f")], note="square")
    yield binary("Mod", fmod=1)
    yield case("Mod", [i(99, *SMALL), i(9, *SMALL, least=1)],
               [i(99, *LARGE), i(9, *LARGE, least=1)], note="int64")
    for op in ("Max", "Min", "Mean", "Sum"):
        yield binary(op)
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        yield binary(op)
    for op in ("And", "Or", "Xor"):
        yield binary(op, b)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield binary(op, typed(i, np.int32, 99))
    yield unary("BitwiseNot", typed(i, np.int32, 99))
    yield binary("BitShift", typed(i, np.uint32, 9), direction="LEFT")
    yield case("Where", [b(*SMALL), f(*SMALL), f(*SMALL)], [b(*LARGE), f(*LARGE), f(*LARGE)])
    yield case("Where", [b(16, 256), f(16, 256), v(0, "f")], [b(512, 512), f(4, 512, 512),
                                                             v(0, "f")], note="mask")


def other_types():
    for name, dtype in {**INTEGERS, **FLOATS}.items():
        kind = typed(f, dtype) if name in FLOATS else typed(i, dtype, 100)
        for op in ("Add", "Mul", "Max"):
            if not (op == "Max" and name == "float16"):
                yield binary(op, kind, note=name)
        yield case("Where", [b(*SMALL), kind(*SMALL), kind(*SMALL)],
                   [b(*LARGE), kind(*LARGE), kind(*LARGE)], note=name)
        if name in ("int64", "int32", "float64"):
            yield binary("Less", kind, note=name)
            yield case("Div", [kind(*SMALL), i(9, *SMALL, least=1, dtype=dtype)],
                       [kind(*LARGE), i(9, *LARGE, least=1, dtype=dtype)], note=name)
        if name in ("int64", "int32", "float16", "float64"):
            yield binary("Equal", kind, note=name)
            yield unary("Abs", kind, note=name)
    yield binary("Equal", b, note="bool")
    yield case("Where", [b(*SMALL), b(*SMALL), b(*SMALL)], [b(*LARGE), b(*LARGE), b(*LARGE)],
               note="bool")
    for op in ("Exp", "Sigmoid", "Tanh", "Erf", "Sqrt", "Log"):
        yield unary(op, lambda *dims: u(0.1, 3, *dims, dtype=np.float64), note="float64")
    for op in ("Sigmoid", "Tanh", "Gelu", "Relu"):
        yield unary(op, typed(f, HALF), note="float16")
    yield case("Pow", [i(9, *SMALL), v(2)], [i(9, *LARGE), v(2)], note="int64 square")
    yield case("Clip", [i(99, *SMALL), v(9), v(50)], [i(99, *LARGE), v(9), v(50)], note="int64")


CASTS = (("float32", "float16"), ("float16", "float32"), ("float32", "int64"),
         ("int64", "float32"), ("int64", "int32"), ("int32", "int64"), ("bool", "float32"),
         ("float32", "bool"), ("bool", "int64"), ("int64", "bool"), ("float32", "uint8"),
         ("uint8", "float32"), ("float32", "float64"), ("float64", "float32"), ("int32", "float32"),
         ("float32", "int32"), ("bfloat16", "float32"), ("float32", "bfloat16"))


def casts():
    number = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
              "float64": 11, "bfloat16": 16}
    for from_type, to_type in CASTS:
        if from_type == "bfloat16" or to_type == "bfloat16":
            continue  # NumPy has no such type
        make = b if from_type == "bool" else typed(u, np.dtype(from_type), 0, 100)
        yield unary("Cast", make, note=f"{from_type} to {to_type}", to=number[to_type])
    yield case("CastLike", [f(*SMALL), i(9, 1)], [f(*LARGE), i(9, 1)])
    yield unary("BitCast", to=6)


def reductions():
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                 "SumSquare"):
        def make(*dims):
            return u(0.5, 1.5, *dims)
        yield case(f"Reduce{kind}", [make(16, 256), v([1])], [make(4, 512, 512), v([2])],
                   note="rows")
        yield case(f"Reduce{kind}", [make(16, 256), v([0])], [make(4, 512, 512), v([1])],
                   note="columns")
    for op in ("ReduceSum", "ReduceMax", "ReduceMean"):
        for name, dtype in (("int64", np.int64), ("int32", np.int32), ("float64", np.float64),
                            ("float16", HALF)):
            if (op, name) == ("ReduceMax", "float16"):
                continue
            make = typed(u, dtype, 0, 100)
            yield case(op, [make(16, 256), v([1])], [make(4, 512, 512), v([2])], note=name)
    for name, dtype in (("int8", np.int8), ("uint8", np.uint8)):
        make = typed(i, dtype, 100)
        yield case("ReduceMax", [make(16, 256), v([1])], [make(4, 512, 512), v([2])], note=name)
    yield case("ReduceSum", [f(16, 256)], [f(4, 512, 512)], note="all", keepdims=0)
    for op in ("ArgMax", "ArgMin"):
        yield case(op, [f(16, 256)], [f(4, 512, 512)], axis=-1)
    yield case("ArgMax", [f(16, 256)], [f(1, 64, 128, 128)], axis=Either(0, 1), note="columns")
    for name, dtype in (("int32", np.int32), ("uint8", np.uint8), ("float64", np.float64)):
        yield case("ArgMax", [i(100, 16, 256, dtype=dtype)], [i(100, 4, 512, 512, dtype=dtype)],
                   axis=-1, note=name)
    yield case("CumSum", [f(16, 256), v(1)], [f(4, 512, 512), v(2)], note="rows")
    yield case("CumSum", [f(16, 256), v(0)], [f(4, 512, 512), v(1)], note="columns")
    yield case("CumSum", [i(9, 16, 256), v(1)], [i(9, 4, 512, 512), v(2)], note="int64")
    yield case("CumProd", [u(0.9, 1.1, 16, 256), v(1)], [u(0.9, 1.1, 4, 512, 512), v(2)])
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield case(op, [f(16, 256)], [f(4, 512, 512)], axis=-1)
    yield case("Softmax", [f(16, 256)], [f(1, 64, 128, 128)], axis=Either(0, 1), note="columns")
    yield case("Softmax", [f(16, 256, dtype=HALF)], [f(4, 512, 512, dtype=HALF)], axis=-1,
               note="float16")
    yield case("Softmax", [f(16, 256, dtype=np.float64)], [f(4, 512, 512, dtype=np.float64)],
               axis=-1, note="float64")
    for name, small, large in (("", 8, 10), ("many", 64, 200)):
        yield case("TopK", [f(16, 256), v([small])], [f(128, 8400), v([large])], outputs=2,
                   note=name, axis=-1)
    yield case("TopK", [f(256, 16), v([5])], [f(1000, 512), v([5])], outputs=2, note="columns",
               axis=0)
    for name, dtype in (("int64", np.int64), ("float64", np.float64), ("int32", np.int32)):
        yield case("TopK", [i(99999, 16, 256, dtype=dtype), v([8])],
                   [i(99999, 128, 8400, dtype=dtype), v([10])], outputs=2, note=name, axis=-1)


FAMILIES = (activations, arithmetic, other_types, casts, reductions)
