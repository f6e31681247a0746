"""NaN and infinity propagate correctly through every backend: docs/decisions/0031.

The onnx wheel's reference evaluator defines the expected values. (a) If it returns NaN, so must the
result; if it returns an infinity, the result must not be finite. (b) Elements that depend on no
special value are the same as without special values."""

import numpy as np
import pytest
from catalog import BACKENDS
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from programs import run_program
from small_models import model_of, node

FLOAT = TensorProto.FLOAT
RANDOM = np.random.default_rng(7)


def floats(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


IMAGE = (1, 32, 12, 12)
CONV = {"w": floats(32, 32, 3, 3) / 10, "b": floats(32)}
DEPTHWISE = {"w": floats(32, 1, 3, 3)}
ROWS = (12, 64)
PRODUCT = {"w": floats(64, 48) / 8, "b": floats(48)}
LIMITS = {"zero": np.float32(0), "six": np.float32(6), "half": np.float32(-0.5),
          "nothing": np.float32(np.nan)}


def conv(**attributes):
    return "Conv", ["x", "w", "b"], "c", {"pads": [1, 1, 1, 1], **attributes}


def op(name, inputs=("x",), output="y", **attributes):
    return name, list(inputs), output, attributes


PRODUCT_AND_SUM = [op("MatMul", ("x", "w"), "m"), op("Add", ("m", "b"), "a")]

# Name -> nodes, shape of x, constants.
CASES = {
    **{name: ([op(name)], (7, 33), {}) for name in (
        "Abs", "Ceil", "Celu", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish",
        "LeakyRelu", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Softmax",
        "LogSoftmax", "Softplus", "Softsign", "Sqrt", "Tanh")},
    "Clip": ([op("Clip", ("x", "half", "six"))], (7, 33), LIMITS),
    "Clip below": ([op("Clip", ("x", "half"))], (7, 33), LIMITS),
    "Clip above": ([op("Clip", ("x", "", "six"))], (7, 33), LIMITS),
    "Clip to a number": ([op("Clip", ("x", "six", "half"))], (7, 33), LIMITS),
    "Clip by NaN": ([op("Clip", ("x", "nothing", "six"))], (7, 33), LIMITS),
    "Clip, Sigmoid": ([op("Clip", ("x", "half", "six"), "c"), op("Sigmoid", "c")], (7, 33), LIMITS),
    "Clip above, Sigmoid": ([op("Clip", ("x", "", "six"), "c"), op("Sigmoid", "c")], (7, 33), LIMITS),
    "Max": ([op("Max", ("x", "other"))], (7, 33), {"other": floats(7, 33)}),
    "Max of a number": ([op("Max", ("x", "half"))], (7, 33), LIMITS),
    "Min": ([op("Min", ("other", "x"))], (7, 33), {"other": floats(7, 33)}),
    "Min of rows": ([op("Min", ("x", "other"))], (7, 33), {"other": floats(33)}),
    "Min of a number": ([op("Min", ("six", "x"))], (7, 33), LIMITS),
    "PRelu": ([op("PRelu", ("x", "slope"))], (7, 33), {"slope": floats(33)}),
    "Add, Relu": ([op("Add", ("x", "other"), "a"), op("Relu", "a")], IMAGE,
                  {"other": floats(1, 32, 1, 1)}),
    "Mul, Max": ([op("Mul", ("x", "other"), "a"), op("Max", ("a", "other"))], (7, 33),
                 {"other": floats(7, 33)}),
    "ReduceMax": ([op("ReduceMax", ("x", "axes"))], (7, 33), {"axes": np.array([1])}),
    "ReduceMin": ([op("ReduceMin", ("x", "axes"))], (7, 33), {"axes": np.array([0])}),
    "ReduceSum": ([op("ReduceSum", ("x", "axes"))], (7, 33), {"axes": np.array([1])}),
    "ReduceMean": ([op("ReduceMean", ("x", "axes"))], IMAGE, {"axes": np.array([2, 3])}),
    "GlobalAveragePool": ([op("GlobalAveragePool")], IMAGE, {}),
    "GlobalMaxPool": ([op("GlobalMaxPool")], IMAGE, {}),
    "AveragePool": ([op("AveragePool", kernel_shape=[3, 3])], IMAGE, {}),
    "LayerNormalization": ([op("LayerNormalization", ("x", "scale", "shift"))], ROWS,
                           {"scale": floats(64), "shift": floats(64)}),
    "Conv": ([op("Conv", ("x", "w", "b"), pads=[1, 1, 1, 1])], IMAGE, CONV),
    "Conv, Relu": ([conv(), op("Relu", "c")], IMAGE, CONV),
    "Conv, Add, Relu": ([conv(), op("Add", ("c", "x"), "a"), op("Relu", "a")], IMAGE, CONV),
    # The other operand of a sum is read again, so the sum must not overwrite it.
    "Relu, Conv, Add": ([op("Relu", "x", "r"), op("Conv", ("r", "w", "b"), "c", pads=[1, 1, 1, 1]),
                         op("Add", ("c", "r"), "a"), op("Relu", "a")], IMAGE, CONV),
    "Conv, Add, Mul": ([conv(), op("Neg", "x", "n"), op("Add", ("c", "n"), "a"),
                        op("Mul", ("a", "n"))], IMAGE, CONV),
    "MatMul, Add, Mul": ([op("MatMul", ("x", "w"), "m"), op("Neg", "x", "n"),
                          op("Add", ("m", "n"), "a"), op("Mul", ("a", "n"))], ROWS,
                         {"w": floats(64, 64) / 8}),
    # If NaN was lost before a bounded function, its result would look like an ordinary number.
    "Conv, Relu, Sigmoid": ([conv(), op("Relu", "c", "r"), op("Sigmoid", "r")], IMAGE, CONV),
    "MatMul, Add, Relu, Tanh": ([*PRODUCT_AND_SUM, op("Relu", "a", "r"), op("Tanh", "r")], ROWS,
                                PRODUCT),
    "Relu, Sigmoid": ([op("Relu", "x", "r"), op("Sigmoid", "r")], IMAGE, {}),
    "Conv, Clip to 6": ([conv(), op("Clip", ("c", "zero", "six"))], IMAGE, CONV | LIMITS),
    "Conv, Clip to 6, Sigmoid": ([conv(), op("Clip", ("c", "zero", "six"), "d"), op("Sigmoid", "d")],
                                 IMAGE, CONV | LIMITS),
    "Conv, Clip above, Sigmoid": ([conv(), op("Clip", ("c", "", "six"), "d"), op("Sigmoid", "d")],
                                  IMAGE, CONV | LIMITS),
    "Conv, Clip to a number": ([conv(), op("Clip", ("c", "zero", "half"))], IMAGE, CONV | LIMITS),
    "Conv, Clip": ([conv(), op("Clip", ("c", "half", "six"))], IMAGE, CONV | LIMITS),
    "Conv, HardSwish": ([conv(), op("HardSwish", "c")], IMAGE, CONV),
    "Conv, HardSigmoid": ([conv(), op("HardSigmoid", "c")], IMAGE, CONV),
    "Conv, Swish": ([conv(), op("Sigmoid", "c", "s"), op("Mul", ("c", "s"))], IMAGE, CONV),
    "Conv, LeakyRelu": ([conv(), op("LeakyRelu", "c", alpha=0.1)], IMAGE, CONV),
    "depthwise Conv, Relu": (
        [op("Conv", ("x", "w"), "c", group=32, pads=[1, 1, 1, 1]), op("Relu", "c")], IMAGE,
        DEPTHWISE),
    "MatMul, Relu": ([op("MatMul", ("x", "w"), "m"), op("Relu", "m")], ROWS, PRODUCT),
    "MatMul, Add, Relu": ([*PRODUCT_AND_SUM, op("Relu", "a")], ROWS, PRODUCT),
    "MatMul, Add, Gelu": ([*PRODUCT_AND_SUM, op("Gelu", "a")], ROWS, PRODUCT),
    "MatMul, Add, Clip to 6": ([*PRODUCT_AND_SUM, op("Clip", ("a", "zero", "six"))], ROWS,
                               PRODUCT | LIMITS),
    "Gemm, Relu": ([op("Gemm", ("x", "w", "b"), "m"), op("Relu", "m")], ROWS, PRODUCT),
    "MatMul, Softmax": ([op("MatMul", ("x", "w"), "m"), op("Softmax", "m")], ROWS, PRODUCT),
    "LSTM": ([op("LSTM", ("x", "w", "r"), hidden_size=8)], (5, 2, 6),
             {"w": floats(1, 32, 6), "r": floats(1, 32, 8)}),
    "GRU": ([op("GRU", ("x", "w", "r"), hidden_size=8)], (5, 2, 6),
            {"w": floats(1, 24, 6), "r": floats(1, 24, 8)}),
}


def make_model(nodes, shape, constants, opset=20):
    return model_of([node(name, inputs, [output], f"node{index}", **attributes)
                     for index, (name, inputs, output, attributes) in enumerate(nodes)],
                    {"x": shape}, "y",
                    {name: np.asarray(array) for name, array in constants.items()
                     if any(name in inputs for _, inputs, _, _ in nodes)}, opset=opset)


def with_special(x, value):
    """`x` with `value` in the middle and at the end."""
    special = x.copy()
    special.flat[x.size // 3] = value
    special.flat[x.size - 2] = value
    return special


@pytest.fixture(scope="module")
def expected():
    """The evaluator's results for a case, for each special value in the input."""
    known = {}

    def ask(case, value):
        if (case, value) not in known:
            nodes, shape, constants = CASES[case]
            x = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
            x = x if value is None else with_special(x, value)
            with np.errstate(all="ignore"):
                [y] = ReferenceEvaluator(make_model(nodes, shape, constants)).run(None, {"x": x})
            known[case, value] = x, y
        return known[case, value]

    return ask


def explain_wrong(plain, marked, right, found):
    """Describes what is wrong with `found`, or "". `plain`: the result without special values;
    `marked`: with NaN in their places, which marks the elements that depend on them; `right`: with
    the special values."""
    lost = np.flatnonzero(np.isnan(right) & ~np.isnan(found) | np.isinf(right) & np.isfinite(found))
    if lost.size:
        return f"element {lost[0]}: expected {right.flat[lost[0]]}, found {found.flat[lost[0]]}"
    alone = np.isfinite(plain) & (plain.view(np.uint32) == marked.view(np.uint32))
    far = alone & ~(np.abs(found - plain) <= 1e-4 * np.maximum(np.abs(plain), 1))
    worst = np.flatnonzero(far)
    if worst.size:
        return (f"element {worst[0]} reads no special value: expected {plain.flat[worst[0]]}, "
                f"found {found.flat[worst[0]]}")
    return ""


def bind(tessera, backend, case, **options):
    """An executor of the case on that backend, and on the reference for nodes that the backend
    refuses."""
    model = make_model(*CASES[case])
    chosen = [backend] if backend == "reference" else [backend, "reference"]
    loaded = tessera.load(model.SerializeToString(), log=lambda message: None)
    if backend == "openvino":
        # The backend's regions are used only if they were measured or pinned.
        pins = [tessera.Pin("*", backend)]
        return loaded.bind(backends=chosen, threads=1, pins=pins, **options)
    return loaded.bind(backends=chosen, threads=1, **options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_special_values_come_out(tessera, need_backend, expected, backend, case):
    need_backend(backend)
    try:
        executor = bind(tessera, backend, case)
    except tessera.Error as error:
        # The backend refuses these nodes, or says that it would lose NaN.
        assert "cannot be served" in str(error)
        return
    plain = expected(case, None)[1]
    marked = expected(case, np.nan)[1]
    for value in (np.nan, np.inf, -np.inf):
        x, right = expected(case, value)
        [found] = executor.run({"x": x})
        wrong = explain_wrong(plain, marked, right, found)
        assert not wrong, f"{value}: {wrong}; {executor.plan().steps}"


@pytest.mark.parametrize("case", ("Relu", "Conv, Relu", "Conv, Clip to 6", "MatMul, Add, Relu"))
def test_what_was_measured_keeps_them_too(tessera, expected, case):
    nodes, shape, constants = CASES[case]
    executor = tessera.load(make_model(nodes, shape, constants).SerializeToString(),
                            log=lambda message: None).bind(threads=1, optimize=True)
    x, right = expected(case, np.nan)
    [found] = executor.run({"x": x})
    assert not np.isfinite(found[~np.isfinite(right)]).any()


def test_fast_offers_what_exact_withholds(tessera_binary, tmp_path, choose_backends):
    path = tmp_path / "model.onnx"
    nodes, shape, constants = CASES["Clip"]
    path.write_bytes(make_model(nodes, shape, constants).SerializeToString())

    def explain(*options):
        done = run_program(tessera_binary, "explain", path, *choose_backends("onednn"), *options)
        return " ".join(done.stdout.split())

    assert "does not keep NaN, which only nan=fast allows" in explain()
    assert "nan=fast" not in explain("--nan", "fast")


def test_sums_that_overflow_are_no_error(tessera_binary, tmp_path, needs_native):
    """Depending on the order, a sum of huge products is an infinity or NaN."""
    path = tmp_path / "model.onnx"
    nodes, shape, constants = CASES["MatMul, Relu"]
    path.write_bytes(make_model(nodes[:1] and [op("MatMul", ("x", "w"))], shape,
                                {"w": floats(64, 48) * 1e20}).SerializeToString())
    np.save(tmp_path / "x.npy", floats(*shape) * 1e20)
    run_program(tessera_binary, "verify", path, "--input", f"x={tmp_path}/x.npy")


LARGEST = np.finfo(np.float32).max


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", ("", "Conv", "MatMul"))
@pytest.mark.parametrize("name, nodes, opset, low, high", [
    ("defaults", [op("Clip", "x")], 6, -LARGEST, LARGEST),
    ("default maximum", [op("Clip", "x", min=0.0)], 6, 0, LARGEST),
    ("default minimum", [op("Clip", "x", max=6.0)], 10, -LARGEST, 6),
    ("given", [op("Clip", ("x", "lowest", "largest"))], 13, -LARGEST, LARGEST),
    ("given maximum", [op("Clip", ("x", "zero", "largest"))], 13, 0, LARGEST),
    ("Max, Min", [op("Max", ("x", "lowest"), "m"), op("Min", ("m", "largest"))], 13, -LARGEST, LARGEST)])
def test_the_largest_number_bounds_infinity(tessera, need_backend, backend, first, name, nodes, opset,
                                            low, high):
    """The bounds of a Clip up to version 10 are finite where none is given."""
    need_backend(backend)
    constants = {"lowest": -LARGEST, "largest": LARGEST, "zero": np.float32(0),
                 "w": 2 * np.eye(4, dtype=np.float32)}
    shape = (1, 4, 2, 2) if first == "Conv" else (4, 4)
    if first == "Conv":
        constants["w"] = constants["w"].reshape(4, 4, 1, 1)
    before = [op(first, ("v", "w"), "x")] if first else []
    model = make_model([*before, *nodes], shape, constants, opset)
    model.graph.input[0].name = "v" if first else "x"
    x = np.random.default_rng(4).choice(np.array([np.inf, -np.inf, 1, -1], np.float32), shape)
    if first:
        # Twice the largest number is infinite in the product, without 0 * infinity beside it.
        x = np.where(np.isinf(x), np.copysign(LARGEST, x), x)
        x.reshape(4, -1)[1:] = 1
    loaded = tessera.load(model.SerializeToString(), log=lambda message: None)
    pins = [tessera.Pin("*", backend)] if backend == "openvino" else []
    try:
        executor = loaded.bind(backends=list(dict.fromkeys([backend, "reference"])), threads=1, pins=pins)
    except tessera.Error as error:
        assert "cannot be served" in str(error)
        return
    with np.errstate(over="ignore"):
        expected = np.clip(2 * x if first else x, low, high)
    np.testing.assert_array_equal(executor.run({model.graph.input[0].name: x})[0], expected)
