"""The small element types (floats of 8 and 4 bits, integers of 4 and 2 bits) beside ml_dtypes,
onnx.reference and ONNX Runtime: conversions, quantisation, ops that move elements, files."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from programs import run_program
from small_models import model_of, node, tensor_type

ml_dtypes = pytest.importorskip("ml_dtypes")

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
SMALL_INTEGERS = ("INT4", "UINT4", "INT2", "UINT2")
SMALL = (*FLOAT8, "FLOAT4E2M1", "FLOAT8E8M0", *SMALL_INTEGERS)
OTHERS = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64",
          "UINT8", "UINT16", "UINT32", "UINT64")
IR_VERSION = 13
COUNT = 150


def number_of(name):
    return TensorProto.DataType.Value(name)


def dtype_of(name):
    return np.dtype(helper.tensor_dtype_to_np_dtype(number_of(name)))


def kind_of(name, shape=None):
    return tensor_type(number_of(name), shape)


def model(nodes, inputs, outputs, opset=25, **options):
    return model_of(nodes, inputs, outputs, opset=opset, ir_version=IR_VERSION, **options)


def run(tessera, made, feeds, **options):
    """The outputs on the reference, unless `options` say something else."""
    loaded = tessera.load(made.SerializeToString(), log=lambda message: None)
    options = options or {"backends": ["reference"]}
    return loaded.bind({name: array.shape for name, array in feeds.items()}, **options).run(feeds)


def all_values(name):
    dtype = dtype_of(name)
    if name in SMALL:
        bits = 8 if "8" in name else 2 if name.endswith("2") else 4
        codes = np.arange(2 ** (bits if "FLOAT4" not in name else 4), dtype=np.uint8)
        values = codes.view(dtype)
        # In memory, integers are extended by their sign.
        return values if name not in SMALL_INTEGERS else values.astype(np.int8).astype(dtype)
    return None


def bytes_of(array):
    return np.ascontiguousarray(array).view(np.uint8)


def same(found, wanted):
    """Equal element by element; all NaN are equal."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype.kind in "biu" or found.dtype.name in ("int4", "uint4", "int2", "uint2"):
        np.testing.assert_array_equal(found.astype(np.int64), wanted.astype(np.int64))
        return
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(one, other)
    numbers = ~np.isnan(other)
    np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


def cast(tessera, array, source, target, opset=25, **attributes):
    made = model([node("Cast", to=number_of(target), **attributes)],
                 {"x": kind_of(source, [None])}, {"y": kind_of(target, [None])}, opset)
    return run(tessera, made, {"x": array})[0]


def floats_to_round(name, random):
    """Every float16, every value of the type, the middle of each two, their neighbours, and noise."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    values = all_values(name).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    bits = random.integers(0, 2**32, 4096, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([halves, values, middles, np.nextafter(middles, np.float32(np.inf)),
                           np.nextafter(middles, np.float32(-np.inf)), bits.view(np.float32),
                           (values.max() * np.float32([1.01, 1.03, 1.2, -1.2, 2])),
                           np.float32([0.0, -0.0, np.nan, np.inf, -np.inf])])


@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("name", [*FLOAT8, "FLOAT4E2M1"])
@pytest.mark.filterwarnings("ignore")
def test_floats_are_rounded_as_ml_dtypes_round(tessera, name, saturate):
    x = floats_to_round(name, np.random.default_rng(5))
    found = cast(tessera, x, "FLOAT", name, saturate=saturate)
    is_limited = saturate and name in FLOAT8
    wanted = numpy_helper.saturate_cast(x, dtype_of(name)) if is_limited else x.astype(dtype_of(name))
    same(found, wanted)
    halves = x[:65536].astype(np.float16)
    same(cast(tessera, halves, "FLOAT16", name, saturate=saturate), found[:65536])


def power_of(number, saturate, mode):
    """float8e8m0 by the table of Cast; zero and the numbers that it does not mention saturate."""
    if np.isnan(number):
        return 255
    lowest, highest = 2.0 ** -127, 2.0 ** 127
    if not lowest <= number <= highest:
        return 255 if not saturate else 0 if number < lowest else 254
    mantissa, exponent = np.frexp(float(number))  # in [0.5, 1)
    goes_up = mantissa > 0.5 if mode == "up" else mantissa >= 0.75 if mode == "nearest" else False
    return int(exponent) - 1 + 127 + int(goes_up)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [1, 0])
def test_powers_of_two_are_rounded_as_the_table_says(tessera, saturate, mode):
    random = np.random.default_rng(6)
    bits = random.integers(0, 0x7F800000, 4000, dtype=np.uint64).astype(np.uint32)
    powers = 2.0 ** np.arange(-126, 128, dtype=np.float32)
    x = np.concatenate([bits.view(np.float32), powers, 1.5 * powers[:-1], 1.25 * powers[:-1],
                        np.float32([0, np.inf, np.nan, 2.0 ** -127, 1.5 * 2.0 ** 127])])
    found = cast(tessera, x, "FLOAT", "FLOAT8E8M0", saturate=saturate, round_mode=mode)
    wanted = [power_of(number, saturate, mode) for number in x.astype(np.float64)]
    np.testing.assert_array_equal(bytes_of(found), wanted)


@pytest.mark.parametrize("source", SMALL)
@pytest.mark.filterwarnings("ignore")
def test_all_values_become_every_other_type(tessera, source):
    x = all_values(source)
    for target in (*OTHERS, *SMALL):
        if target == source:
            same(cast(tessera, x, source, target), x)
            continue
        found = cast(tessera, x, source, target)
        numbers = x.astype(np.float64)
        if target in FLOAT8:
            wanted = numpy_helper.saturate_cast(numbers, dtype_of(target))
        elif target == "FLOAT8E8M0":
            is_given = ~(numbers < 0)
            wanted = np.array([power_of(each, 1, "up") for each in np.abs(numbers)],
                              np.uint8).view(dtype_of(target))
            found, wanted = found[is_given], wanted[is_given]
        elif dtype_of(target).kind in "iu" or target in SMALL_INTEGERS:
            # What an integer type does not hold is not defined.
            whole = np.trunc(np.where(np.isfinite(numbers), numbers, 0))
            is_inside = np.isfinite(numbers) & (np.abs(whole) < 2.0 ** 63)
            if source not in SMALL_INTEGERS:
                limits = ml_dtypes.iinfo(dtype_of(target))
                is_inside &= (whole >= limits.min) & (whole <= limits.max)
            found, whole = found[is_inside], whole[is_inside].astype(np.int64)
            wanted = whole.astype(dtype_of(target))
        else:
            wanted = numbers.astype(dtype_of(target))
            if target == "FLOAT4E2M1":  # it has no NaN
                found, wanted = found[~np.isnan(numbers)], wanted[~np.isnan(numbers)]
        same(found, wanted)


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.filterwarnings("ignore")
def test_cast_like_is_cast(tessera, target):
    x = np.random.default_rng(7).normal(size=300).astype(np.float32) * 3
    made = model([node("CastLike", "x t", saturate=0)],
                 {"x": kind_of("FLOAT", [300]), "t": kind_of(target, [1])}, {"y": kind_of(target)})
    found = run(tessera, made, {"x": x, "t": np.zeros(1, dtype_of(target))})[0]
    np.testing.assert_array_equal(bytes_of(found),
                                  bytes_of(cast(tessera, x, "FLOAT", target, saturate=0)))


# --- QuantizeLinear and DequantizeLinear ----------------------------------------------------------

QUANTISED = (*FLOAT8, "FLOAT4E2M1", *SMALL_INTEGERS)
SINCE = {**dict.fromkeys(FLOAT8, 19), "INT4": 21, "UINT4": 21, "FLOAT4E2M1": 23, "INT2": 25,
         "UINT2": 25}


def random_scales(random, shape, version):
    """The shape of the scales, and the attributes that say what they are of."""
    kinds = ["one", "axis"] + (["block"] if version >= 21 else [])
    kind = random.choice(kinds)
    if kind == "one":
        return (), {}
    axis = int(random.integers(len(shape)))
    attributes = {"axis": axis - len(shape) if random.random() < 0.5 else axis}
    if kind == "axis":
        return (shape[axis],), attributes
    block = int(random.integers(1, shape[axis] + 1))
    sizes = list(shape)
    sizes[axis] = -(-shape[axis] // block)
    # onnx.reference reads neither another block nor a block size that does not divide the axis.
    return tuple(sizes), {**attributes, "block_size": block}


def random_quantisation(random):
    """A node, its inputs, and the version."""
    name = random.choice(QUANTISED)
    version = int(random.choice([each for each in (19, 21, 23, 24, 25) if each >= SINCE[name]]))
    shape = tuple(int(size) for size in random.integers(1, 6, int(random.integers(1, 4))))
    real = str(random.choice(["FLOAT", "FLOAT16"] if version >= 19 else ["FLOAT"]))
    scale_shape, attributes = random_scales(random, shape, version)
    scale_type = real
    if version >= 24 and random.random() < 0.3:
        scale_type = "FLOAT8E8M0"
        scales = (2.0 ** random.integers(-2, 3, scale_shape)).astype(dtype_of(scale_type))
    else:
        scales = np.asarray(random.uniform(0.1, 3, scale_shape)).astype(dtype_of(scale_type))
    values = all_values(name)
    values = values[np.isfinite(values.astype(np.float32))]
    zeros = np.zeros(scale_shape, dtype_of(name))
    if name in SMALL_INTEGERS:
        zeros = np.asarray(random.choice(values.astype(np.int8), scale_shape)).astype(dtype_of(name))
    is_forward = random.random() < 0.5
    x = (np.asarray(random.normal(size=shape) * 4).astype(dtype_of(real)) if is_forward
         else np.asarray(random.choice(bytes_of(values), shape)).astype(np.uint8).view(dtype_of(name)))
    inputs = {"x": x, "scale": scales}
    names = "x scale"
    has_zeros = random.random() < 0.5 or (is_forward and version < 21)
    if has_zeros:
        inputs["zero"] = zeros
        names += " zero"
    if is_forward:
        if not has_zeros:
            attributes["output_dtype"] = number_of(name)
        if random.random() < 0.3:
            attributes["saturate"] = 0
        if version >= 23 and random.random() < 0.3:
            attributes["precision"] = number_of(str(random.choice(["FLOAT", "FLOAT16"])))
        return node("QuantizeLinear", names, **attributes), inputs, version, real, name, name
    output = real
    if version >= 23 and (scale_type == "FLOAT8E8M0" or random.random() < 0.3):
        output = str(random.choice(["FLOAT", "FLOAT16"]))
        attributes["output_dtype"] = number_of(output)
    return node("DequantizeLinear", names, **attributes), inputs, version, real, name, output


def has_half_quotient(made, real):
    """Whether QuantizeLinear rounds its quotient to float16: "The type of `y_scale` determines the
    precision of the division operation [...], unless the `precision` attribute is specified"."""
    chosen = [each.i for each in made.attribute if each.name == "precision"]
    return made.op_type == "QuantizeLinear" and (chosen or [number_of(real)])[0] == TensorProto.FLOAT16


def onnx_name(dtype):
    return TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(dtype))


def quantisation_model(made, inputs, version, output):
    return model([made], {name: kind_of(onnx_name(array.dtype), array.shape)
                          for name, array in inputs.items()},
                 {"y": kind_of(output, inputs["x"].shape)}, version)


@pytest.mark.filterwarnings("ignore")
def test_quantisation_equals_the_reference(tessera, is_long):
    random = np.random.default_rng(8)
    compared = 0
    for _ in range(3000 if is_long else COUNT):
        made, inputs, version, real, name, output = random_quantisation(random)
        if real == "FLOAT" and has_half_quotient(made, real):
            continue  # it rounds the numbers, too, not the quotient alone
        graph = quantisation_model(made, inputs, version, output)
        found = run(tessera, graph, inputs)[0]
        try:
            wanted = ReferenceEvaluator(graph).run(None, inputs)[0]
        except (ValueError, TypeError, RuntimeError):
            continue  # blocks that do not divide the axis, types that it cannot subtract
        compared += 1
        message = f"{made}\n{inputs}"
        close(found, wanted, message)
    assert compared > (1500 if is_long else COUNT // 2)


def close(found, wanted, message):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, message
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    # The judges round products to the output's type in two steps.
    tolerance = 2.0 ** -10 if found.dtype == np.float16 else 2.0 ** -22 if found.dtype == np.float32 else 0
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=0, err_msg=message)


# --- Ops that move elements, and constants --------------------------------------------------------

MOVEMENTS = {
    "Identity": (node("Identity"), {}, lambda x: x),
    "Reshape": (node("Reshape", "x s"), {"s": np.array([3, -1])}, lambda x: x.reshape(3, -1)),
    "Flatten": (node("Flatten", axis=2), {}, lambda x: x.reshape(6, -1)),
    "Squeeze": (node("Squeeze", "x s"), {"s": np.array([2])}, lambda x: x[:, :, 0]),
    "Unsqueeze": (node("Unsqueeze", "x s"), {"s": np.array([0])}, lambda x: x[None]),
    "Transpose": (node("Transpose", perm=[3, 0, 1, 2]), {}, lambda x: x.transpose(3, 0, 1, 2)),
    "Pad": (node("Pad", "x s"), {"s": np.array([0, 1, 0, 0, 0, 0, 0, 2])},
            lambda x: np.pad(bytes_of(x), ((0, 0), (1, 0), (0, 0), (0, 2))).view(x.dtype)),
    "Shape": (node("Shape"), {}, lambda x: np.array(x.shape)),
    "Size": (node("Size"), {}, lambda x: np.array(x.size)),
}


@pytest.mark.parametrize("op", MOVEMENTS)
def test_elements_are_moved(tessera, op):
    made, weights, wanted = MOVEMENTS[op]
    for name in SMALL:
        values = all_values(name)
        x = np.resize(bytes_of(values), (2, 3, 1, 4)).view(dtype_of(name))
        output = "INT64" if op in ("Shape", "Size") else name
        graph = model([made], {"x": kind_of(name, [2, 3, 1, 4])}, {"y": kind_of(output)},
                      weights=weights)
        for options in ({}, {"threads": 1}):  # the reference; all backends
            found, = run(tessera, graph, {"x": x}, **options)
            assert found.dtype == wanted(x).dtype and found.shape == wanted(x).shape
            np.testing.assert_array_equal(bytes_of(found), bytes_of(wanted(x)))


def branch(name, array):
    return helper.make_graph(
        [node("Constant", "", name, value=numpy_helper.from_array(array))], name, [],
        [helper.make_value_info(name, kind_of(onnx_name(array.dtype), array.shape))])


@pytest.mark.parametrize("name", SMALL)
def test_nested_graphs_carry_them(tessera, name):
    one, other = (np.array(each, np.uint8).view(dtype_of(name)) for each in ([1, 0, 1], [0, 1, 1]))
    chosen = model([node("If", "c", "y", then_branch=branch("t", one), else_branch=branch("e", other))],
                   {"c": tensor_type(TensorProto.BOOL, [])}, {"y": kind_of(name, [3])})
    for flag in (True, False):
        found, = run(tessera, chosen, {"c": np.array(flag)})
        np.testing.assert_array_equal(bytes_of(found), bytes_of(one if flag else other))
    inside = helper.make_graph(
        [node("Identity", "go", "on"), node("Identity", "a", "b"), node("Identity", "a", "out")], "body",
        [helper.make_value_info("i", tensor_type(TensorProto.INT64, [])),
         helper.make_value_info("go", tensor_type(TensorProto.BOOL, [])),
         helper.make_value_info("a", kind_of(name, [3]))],
        [helper.make_value_info("on", tensor_type(TensorProto.BOOL, [])),
         helper.make_value_info("b", kind_of(name, [3])), helper.make_value_info("out", kind_of(name, [3]))])
    loop = model([node("Loop", ["n", "", "x"], "y z", body=inside)],
                 {"n": tensor_type(TensorProto.INT64, []), "x": kind_of(name, [3])},
                 {"y": kind_of(name), "z": kind_of(name)})
    last, collected = run(tessera, loop, {"n": np.array(2), "x": one})
    np.testing.assert_array_equal(bytes_of(last), bytes_of(one))
    np.testing.assert_array_equal(bytes_of(collected), np.stack([bytes_of(one)] * 2))


@pytest.mark.parametrize("name", SMALL)
def test_constants_are_unpacked(tessera, tmp_path, name):
    values = all_values(name)
    for count in (1, 3, 5, len(values)):
        array = np.resize(bytes_of(values), count).view(dtype_of(name))
        raw = numpy_helper.from_array(array, "w")
        typed = TensorProto(name="w", data_type=raw.data_type, dims=[count],
                            int32_data=list(raw.raw_data))
        for weight in (raw, typed):
            made = model([node("Identity", "w", "y")], {}, {"y": kind_of(name, [count])})
            made.graph.initializer.append(weight)
            for place in ("inside", "outside"):
                path = str(tmp_path / f"{place}.onnx")
                onnx.save(made, path, save_as_external_data=place == "outside", size_threshold=0,
                          location=f"{count}.bin")
                found, = tessera.load(path).bind().run({})
                same(found, array)
        filled = model([node("ConstantOfShape", "s", "y", value=numpy_helper.from_array(array[-1:]))],
                       {"s": tensor_type(TensorProto.INT64, [1])}, {"y": kind_of(name)})
        found, = run(tessera, filled, {"s": np.array([3])})
        same(found, np.repeat(array[-1:], 3))


def test_weights_of_four_bits_feed_other_backends(tessera):
    """What follows a DequantizeLinear runs on every backend; its weights are constants."""
    random = np.random.default_rng(9)
    weights = random.integers(-8, 8, (32, 16)).astype(ml_dtypes.int4)
    scales = random.uniform(0.1, 1, (4, 16)).astype(np.float32)
    made = model([node("DequantizeLinear", "w s", "d", axis=0, block_size=8), node("MatMul", "x d", "y")],
                 {"x": ["rows", 32]}, {"y": None}, weights={"w": weights, "s": scales})
    x = random.normal(size=(5, 32)).astype(np.float32)
    wanted = x @ (weights.astype(np.float32) * np.repeat(scales, 8, axis=0))
    for options in ({}, {"threads": 1}):  # the reference; all backends
        np.testing.assert_allclose(run(tessera, made, {"x": x}, **options)[0], wanted, rtol=1e-4, atol=1e-4)


# --- Files and refusals ---------------------------------------------------------------------------

@pytest.mark.parametrize("name", SMALL)
def test_files_of_the_command_line(tessera_binary, tmp_path, name):
    array = bytes_of(all_values(name))[1:4].view(dtype_of(name))
    path = tmp_path / "model.onnx"
    onnx.save(model([node("Identity")], {"x": kind_of(name, [3])}, {"y": kind_of(name, [3])}), path)
    np.save(tmp_path / "x.npy", array)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(array, "x").SerializeToString())
    for file in ("x.npy", "x.pb"):
        run_program(tessera_binary, "run", path, "--input", f"x={tmp_path / file}",
                    "--output", tmp_path / "out", "--expect", f"y={tmp_path / file}")
        written, = (tmp_path / "out").glob("*.npy")
        same(np.load(written).view(np.uint8).view(dtype_of(name)), array)
    run_program(tessera_binary, "run", path, "--random", "1")


def test_types_of_other_versions_are_refused(tessera):
    for op, opset, name in (("Identity", 18, "FLOAT8E5M2"), ("Identity", 19, "INT4"),
                            ("Transpose", 23, "FLOAT8E8M0"), ("Reshape", 24, "INT2"),
                            ("Relu", 25, "INT4"), ("Abs", 25, "FLOAT8E4M3FN")):
        inputs = {"x": kind_of(name, [2])}
        if op == "Reshape":
            inputs["s"] = tensor_type(TensorProto.INT64, [1])
        made = model([node(op, " ".join(inputs))], inputs, {"y": kind_of(name)}, opset)
        with pytest.raises(tessera.InvalidModel, match=f"found {name.lower()}"):
            tessera.load(made.SerializeToString(), log=lambda message: None)
    for name in ("COMPLEX64", "COMPLEX128", "FLOAT6E2M3"):
        made = model([node("Identity")], {"x": kind_of(name, [2])}, {"y": kind_of(name)})
        with pytest.raises(tessera.Unsupported, match=name.lower()):
            tessera.load(made.SerializeToString(), log=lambda message: None)


def session_of(graph):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(graph.SerializeToString(), options,
                                            providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001, its errors have no common class
        return None  # it has no such kernel


@pytest.mark.filterwarnings("ignore")
def test_quantisation_equals_onnx_runtime(tessera, is_long):
    """On constants, because onnxruntime takes no such arrays; the result is cast to float32."""
    random = np.random.default_rng(10)
    compared = 0
    for _ in range(3000 if is_long else COUNT):
        made, inputs, version, real, name, _ = random_quantisation(random)
        if has_half_quotient(made, real):
            continue  # it divides in float32
        is_narrow = name == "FLOAT4E2M1" or "FLOAT8E8M0" in {onnx_name(each.dtype)
                                                             for each in inputs.values()}
        graph = model([made, node("Cast", "y", "z", to=TensorProto.FLOAT)], {}, {"z": None}, version,
                      weights=inputs)
        graph.ir_version = 11
        session = None if is_narrow else session_of(graph)
        if session is None:
            continue
        try:
            wanted = session.run(None, {})[0]
        except Exception:  # noqa: BLE001, zero points of 8-bit floats, for example
            continue
        compared += 1
        close(run(tessera, graph, {})[0], wanted, f"{made}\n{inputs}")
    assert compared > (500 if is_long else 25)


@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("name", FLOAT8)
def test_casts_equal_onnx_runtime(tessera, name, saturate):
    x = floats_to_round(name, np.random.default_rng(11))
    if not saturate:
        # There the table says NaN or infinity, and onnxruntime gives 448 for 480, NaN for 61440.
        largest = float(ml_dtypes.finfo(dtype_of(name)).max)
        x = x[~(np.abs(x) > largest) | ~np.isfinite(x)]
    made = model([node("Cast", "x", "s", to=number_of(name), saturate=saturate),
                  node("Cast", "s", "y", to=TensorProto.FLOAT)], {"x": [None]}, {"y": [None]}, 19)
    made.ir_version = 9
    same(run(tessera, made, {"x": x})[0], session_of(made).run(None, {"x": x})[0])
