"""The backend openvino for users: when it is chosen, what it shares with the others, and that
networks compute the same as elsewhere."""

import concurrent.futures
import json
import pathlib

import numpy as np
import pytest
from programs import json_of, run_program, run_python
from small_models import model_bytes, model_of, node, save_model

HAS_AVX512 = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text()
SIDE = 24
CHANNELS = 40
LAYERS = 4


@pytest.fixture(scope="module")
def backends(tessera_binary):
    listing = json_of(tessera_binary, "backends", "--json")
    return {entry["backend"]: entry for entry in listing["backends"]}


@pytest.fixture(scope="module")
def openvino(backends):
    """Skips if this build does not have the backend, saying why."""
    entry = backends["openvino"]
    if not entry["is_usable"]:
        assert entry["reason"]
        pytest.skip(f"no backend openvino: {entry['reason']}")
    return entry


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Convolutions with 64 KiB of weights each, and a Tanh."""
    random = np.random.default_rng(3)
    nodes, weights = [], {}
    for layer in range(LAYERS):
        weight = random.standard_normal((CHANNELS, CHANNELS, 3, 3), dtype=np.float32) / 20
        weights[f"w{layer}"] = weight
        nodes.append(node("Conv", f"x{layer} w{layer}", f"y{layer}", f"conv{layer}",
                          pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", f"y{layer}", f"x{layer + 1}", f"relu{layer}"))
    nodes.append(node("Tanh", f"x{LAYERS}", "y", "tanh"))
    shape = ["batch", CHANNELS, SIDE, SIDE]
    return save_model(tmp_path_factory.mktemp("network") / "model.onnx", nodes, {"x0": shape},
                      {"y": shape}, weights)


SHAPE = [1, CHANNELS, SIDE, SIDE]


def explain(tessera_binary, model, *arguments):
    return json_of(tessera_binary, "explain", model, "--shape", "x0=1x40x24x24", "--json", "--runs",
                   "1", *arguments)


def users(explained):
    return {step["backend"] for step in explained["steps"]}


def test_is_left_alone_where_nothing_is_measured(tessera_binary, openvino, network):
    explained = explain(tessera_binary, network)
    assert "openvino" not in users(explained)
    reasons = {entry["reason"] for entry in explained["refusals"]
               if entry["backend"] == "openvino"}
    assert reasons == {"its regions are used only if times are measured (optimize), or if nodes are pinned to it"}


def test_alone_leaves_the_reference_to_do_it_where_nothing_is_measured(
        tessera_binary, openvino, network):
    assert users(explain(tessera_binary, network, "--backends", "openvino")) == {"reference"}


def test_a_pin_forces_the_whole_model_into_one_region(tessera_binary, openvino, network):
    explained = explain(tessera_binary, network, "--pin", "*=openvino")
    assert users(explained) == {"openvino"}
    assert explained["step_count"] == 1
    # The library's memory has its weights in its own formats, and the inner values.
    assert explained["library_bytes"] > LAYERS * CHANNELS * CHANNELS * 9 * 4
    assert explained["pack_bytes"] == 0


def test_a_pin_that_cannot_be_served_says_why(tessera_binary, openvino, tmp_path):
    model = save_model(tmp_path / "model.onnx", [node("Asinh", "x0", "y", "curve")],
                       {"x0": [1, 40, 24, 24]}, {"y": [1, 40, 24, 24]})
    done = run_program(tessera_binary, "run", model, "--random", "1", "--pin", "curve=openvino",
                       code=None)
    assert done.returncode != 0
    assert "OpenVINO regions do not contain this op" in done.stderr


def test_is_measured_and_checked_where_prices_are_wanted(tessera_binary, openvino, network):
    explained = explain(tessera_binary, network, "--optimize", "--candidates", "--backends",
                        "openvino,reference")
    regions = [entry for entry in explained["candidates"] if entry["backend"] == "openvino"]
    # The whole graph, and its two halves.
    assert sorted({len(entry["nodes"]) for entry in regions}) == [4, 5, 9]
    measured = [entry for entry in regions if entry["time"] is not None]
    assert measured
    assert all(entry["verdict"] == "fine" for entry in measured)
    assert "openvino" in users(explained)


def test_a_tiny_graph_gets_no_region_unless_there_is_time_for_it(
        tessera_binary, openvino, needs_a_library, tmp_path):
    """The milliseconds of its tune budget are not enough to build a region."""
    model = save_model(tmp_path / "tiny.onnx",
                       [node("Relu", "x0", "x1", "first"), node("Conv", "x1 w", "y", "second")],
                       {"x0": SHAPE}, {"y": SHAPE},
                       {"w": np.eye(CHANNELS, dtype=np.float32)[..., None, None]})

    def offering(*options):
        explained = explain(tessera_binary, model, "--optimize", "--candidates", *options)
        return {entry["backend"] for entry in explained["candidates"]}

    assert "openvino" not in offering()
    assert "openvino" in offering("--tune-budget", "2")
    # The reference alone is much slower.
    assert "openvino" in offering("--backends", "openvino,reference")


def test_executors_in_two_threads_give_what_the_reference_gives(tessera, openvino, network):
    model = tessera.load(network, threads=2, log=lambda message: None)
    pins = [tessera.Pin("*", "openvino")]
    random = np.random.default_rng(4)
    inputs = [random.standard_normal(SHAPE, dtype=np.float32) for _ in range(2)]
    plain = model.bind({"x0": SHAPE}, backends=["reference"])
    expected = [plain.run({"x0": array})[0].copy() for array in inputs]
    executors = [model.bind({"x0": SHAPE}, threads=1, pins=pins) for _ in inputs]
    failures = []

    def work(index):
        for _ in range(20):
            found = executors[index].run({"x0": inputs[index]})[0]
            if not np.allclose(found, expected[index], rtol=1e-3, atol=1e-6):
                failures.append(index)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2)))
    assert not failures


def test_one_thread_runtime_serves_all_libraries(tessera, openvino, network):
    script = f"""
        import json, numpy, tessera
        model = tessera.load({str(network)!r}, threads=2, log=lambda message: None)
        x = {{"x0": numpy.ones({SHAPE}, numpy.float32)}}
        def libraries(name):
            lines = open("/proc/self/maps").read().splitlines()
            return sorted({{line.split()[-1] for line in lines if name in line}})
        model.bind({{"x0": {SHAPE}}}, threads=2).run(x)
        before = libraries("/libopenvino")
        model.bind({{"x0": {SHAPE}}}, threads=2, pins=[tessera.Pin("*", "openvino")]).run(x)
        print(json.dumps({{"before": before, "openvino": libraries("/libopenvino"),
                          "tbb": libraries("/libtbb.so")}}))
        """
    found = json.loads(run_python(tessera, script).stdout)
    # OpenVINO is not loaded before a region is built.
    assert found["before"] == []
    assert found["openvino"]
    assert len(found["tbb"]) == 1, found["tbb"]


def test_verify_finds_nothing_wrong(bin_dir, tessera_binary, openvino):
    plugin = bin_dir.parent / "lib" / "tessera" / "backend_openvino.so"
    run_program(tessera_binary, "verify", "--backend", plugin, "--cases", "1")


ZOO = ["squeezenet", "shufflenet", "mobilenet_v2"]


@pytest.mark.parametrize("name", ZOO)
def test_a_network_of_the_zoo_gives_what_it_gives_elsewhere(tessera, openvino, bin_dir, name):
    model_file = bin_dir.parent.parent / "zoo" / name / "model.onnx"
    if not model_file.exists():
        pytest.skip(f"{model_file} is not there")
    model = tessera.load(model_file, threads=2, log=lambda message: None)
    random = np.random.default_rng(5)
    inputs = {value.name: random.standard_normal(value.shape).astype(np.float32)
              for value in model.inputs}
    expected = model.bind().run(inputs)[0].copy()
    nodes = model.describe().nodes
    if name == "shufflenet":
        assert [node.op for node in nodes[-4:]] == ["AveragePool", "Reshape", "Gemm", "Softmax"]
        nodes = nodes[:-4]  # an average of 7 x 7 elements would lose digits
    if name == "squeezenet":
        assert [node.op for node in nodes[-2:]] == ["GlobalAveragePool", "Softmax"]
        nodes = nodes[:-2]  # the same for 13 x 13
    pins = [tessera.Pin(node.name, "openvino") for node in nodes]
    # OpenVINO's maximum drops NaN.
    executor = model.bind(pins=pins, nan="fast")
    found = executor.run(inputs)[0]
    scale = np.sqrt(np.mean(expected.astype(np.float64) ** 2))
    assert np.abs(found - expected).max() <= 1e-3 * scale


@pytest.mark.parametrize("shape, columns, slopes", [
    ((1, 9, 31, 9), 9, (9, 1, 1)), ((1, 9, 31, 9), 4, (9, 1, 1)), ((2, 4, 7, 5), 4, (1, 4, 1, 1)),
    ((1, 9, 31, 9), 9, (9, 31, 1)), ((9, 31, 9), 4, (9, 1, 1)), ((1, 9, 31, 9), 4, (4,)),
    ((1, 9, 31, 9), 9, (9,)), ((9, 9, 9), 9, (9,)), ((2, 9, 9), 9, (9,)), ((9, 9), 9, (9, 1)),
    ((1, 9, 31, 9), 9, ()), ((1, 9, 31, 9), 4, None), ((3, 31, 9), 4, None)])
@pytest.mark.parametrize("first", ["MatMul", "Tanh"])
def test_slopes_lie_along_their_own_axis(tessera, openvino, first, shape, columns, slopes):
    """OpenVINO would use slopes of one dimension along axis 1, and slopes along axis 1 for the
    columns of a product. Without slopes: a Relu, for which NaN is kept by slopes of zero."""
    if first == "Tanh":
        shape = (*shape[:-1], columns)
    random = np.random.default_rng(6)
    weights = random.standard_normal((shape[-1], columns)).astype(np.float32)
    constants = {"w": weights}
    second = node("Relu", "m", "a")
    if slopes is not None:
        factors = random.standard_normal(slopes).astype(np.float32)
        constants["s"] = factors
        second = node("PRelu", "m s", "a")
    model = model_of([node(first, ["x", "w"] if first == "MatMul" else ["x"], "m"), second,
                      node("Add", "a a", "y")], {"x": shape}, {"y": (*shape[:-1], columns)},
                     constants)
    x = random.standard_normal(shape).astype(np.float32)
    executor = tessera.load(model.SerializeToString()).bind(pins=[tessera.Pin("*", "openvino")])
    assert {step.backend for step in executor.plan().steps} == {"openvino"}
    value = x.astype(np.float64) @ weights if first == "MatMul" else np.tanh(x.astype(np.float64))
    below = 0 if slopes is None else value * factors
    expected = 2 * np.where(value < 0, below, value)
    np.testing.assert_allclose(executor.run({"x": x})[0], expected, rtol=1e-4, atol=1e-4)


def test_what_openvino_does_not_compute_is_refused(tessera, openvino):
    """Each is within what the op's version allows, and right elsewhere."""
    weights = {"w": np.ones((3, 1), np.float32), "s": np.array([], np.int64)}
    rows = (((1, 1, 5),
             [node("AveragePool", "x", "y", kernel_shape=[3], strides=[4], pads=[1, 0], ceil_mode=1,
                   count_include_pad=1)], []),
            ((1, 4, 3, 3), [node("LRN", "x", "y", size=3, bias=1.5)], []),
            ((1, 3), [node("MatMul", "x w", "p"), node("Reshape", "p s", "y")], weights))
    for shape, nodes, constants in rows:
        model = tessera.load(model_bytes(nodes, {"x": shape}, "y", constants))
        with pytest.raises(tessera.Error, match="openvino"):
            model.bind(pins=[tessera.Pin("*", "openvino")])
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        expected = model.bind(backends=["reference"]).run({"x": x})[0].copy()
        found = model.bind(backends=["openvino", "native", "reference"], optimize="now").run({"x": x})[0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def load_nodes(tessera, nodes, shape, constants=(), opset=13):
    """A model of one input x and one output y."""
    return tessera.load(model_bytes(nodes, {"x": shape}, "y", dict(constants), opset=opset))


def chain_of(ops, constants, shape):
    """Nodes from x to y, each with its constant of that shape as second input if it has one; and
    the constants."""
    nodes, values, at = [], {}, "x"
    for index, (op, constant) in enumerate(zip(ops, constants)):
        inputs = [at]
        if constant is not None:
            values[f"c{index}"] = np.full(shape, constant, np.float32)
            inputs.append(f"c{index}")
        at = "y" if index == len(ops) - 1 else f"v{index}"
        nodes.append(node(op, inputs, [at], f"{op}{index}"))
    return nodes, values


BIAS, FACTOR = np.float32(0.9371), np.float32(3.777)


@pytest.mark.parametrize("ops, constants", [
    (("Add", "Mul"), (BIAS, FACTOR)), (("Sub", "Mul"), (-BIAS, FACTOR)),
    (("Sum", "Mul"), (BIAS, FACTOR)), (("Add", "Neg", "Mul"), (BIAS, None, FACTOR)),
    (("Add", "Mul", "Mul"), (BIAS, 2, FACTOR)), (("Add", "Add", "Mul"), (0.5 * BIAS, 0.5 * BIAS, FACTOR)),
    (("Neg", "Neg", "Add", "Mul"), (None, None, BIAS, FACTOR)),
    (("Add", "Mul", "Tanh", "Tanh"), (BIAS, FACTOR, None, None))])
@pytest.mark.parametrize("shape", [(), (8, 1, 1), (1, 8, 6, 8)])
def test_a_scaled_sum_keeps_its_digits(tessera, openvino, ops, constants, shape):
    """OpenVINO computes (x + a) * b as x * b + a * b. Here x + a nearly cancels."""
    nodes, values = chain_of(ops, constants, shape)
    x = np.full((1, 8, 6, 8), -BIAS * np.float32(1.0003), np.float32)
    exact = x.astype(np.float64)
    for op, constant in zip(ops, constants):
        number = None if constant is None else np.float64(np.float32(constant))
        exact = {"Add": lambda: exact + number, "Sum": lambda: exact + number,
                 "Sub": lambda: exact - number, "Mul": lambda: exact * number,
                 "Neg": lambda: -exact, "Tanh": lambda: np.tanh(exact)}[op]()
    model = load_nodes(tessera, nodes, x.shape, values)
    found = model.bind(backends=["openvino", "reference"], optimize="now").run({"x": x})[0]
    assert np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))) <= 8
    factor = next(node.name for node in nodes if node.op_type == "Mul" and values[node.input[1]].flat[0] != 2)
    with pytest.raises(tessera.Error, match="loses the digits of a small sum"):
        model.bind(pins=[tessera.Pin(factor, "openvino")])


@pytest.mark.parametrize("ops, constants", [
    (("Sub", "Sub"), (1e6, 0.1)), (("Add", "Add"), (-1e6, 0.1)), (("Sub", "Add"), (1e6, 0.1)),
    (("Sub", "Neg", "Sub"), (1e6, None, 0.1)), (("Sub", "Identity", "Sub"), (1e6, None, 0.1)),
    (("Sub", "Mul", "Sub"), (1e6, 2, 0.1)), (("Sub", "Sum"), (1e6, 0.1))])
@pytest.mark.parametrize("shape", [(), (8, 1, 1), (1, 8, 6, 8)])
def test_sums_with_several_constants_keep_their_digits(tessera, openvino, ops, constants, shape):
    """OpenVINO computes (x + a) + b as x + (a + b), which here is a third of a unit off."""
    nodes, values = chain_of(ops, constants, shape)
    x = np.full((1, 8, 6, 8), 1e6, np.float32)
    model = load_nodes(tessera, nodes, x.shape, values)
    found = model.bind(backends=["openvino", "reference"], optimize="now").run({"x": x})[0]
    assert np.max(np.abs(np.abs(found) - 0.1)) < 1e-7
    with pytest.raises(tessera.Error, match="loses the digits of a small sum"):
        model.bind(pins=[tessera.Pin(nodes[-1].name, "openvino")])


@pytest.mark.parametrize("ops, constants, expected", [
    (("Mul", "Mul"), (1e30, 1e30), 1e30), (("Mul", "Neg", "Mul"), (1e30, None, 1e30), -1e30),
    (("Mul", "Div"), (1e30, 2.0**-100), 2.0**100), (("Mul", "Mul", "Mul"), (1e15, 1e15, 1e30), 1e30)])
def test_products_with_several_constants_stay_finite(tessera, openvino, ops, constants, expected):
    """OpenVINO computes (x * a) * b as x * (a * b), which here is infinite."""
    nodes, values = chain_of(ops, constants, ())
    x = np.full((1, 8, 6, 8), 1e-30, np.float32)
    model = load_nodes(tessera, nodes, x.shape, values)
    found = model.bind(backends=["openvino", "reference"], optimize="now").run({"x": x})[0]
    np.testing.assert_allclose(found, np.full_like(x, expected), rtol=1e-6)
    with pytest.raises(tessera.Error, match="no normal float32"):
        model.bind(pins=[tessera.Pin(nodes[-1].name, "openvino")])


@pytest.mark.parametrize("ops", [("Conv", "Mul"), ("Mul", "Conv"), ("MatMul", "Mul"), ("Mul", "Neg", "MatMul")])
def test_factors_of_products_stay_finite(tessera, openvino, ops):
    """OpenVINO multiplies the factor into the weights, which makes them infinite."""
    shapes = {"Conv": (8, 8, 1, 1), "MatMul": (8, 4), "Mul": ()}
    nodes, values, at = [], {}, "x"
    for index, op in enumerate(ops):
        inputs = [at]
        if op in shapes:
            values[f"c{index}"] = np.full(shapes[op], 1e30, np.float32)
            inputs.append(f"c{index}")
        at = "y" if index == len(ops) - 1 else f"v{index}"
        nodes.append(node(op, inputs, [at], f"{op}{index}"))
    x = np.full((1, 8, 6, 8), 1e-30, np.float32)
    model = load_nodes(tessera, nodes, x.shape, values)
    found = model.bind(backends=["openvino", "reference"], optimize="now").run({"x": x})[0]
    np.testing.assert_allclose(np.abs(found), np.full_like(found, 8e30), rtol=1e-6)
    with pytest.raises(tessera.Error, match="no normal float32"):
        model.bind(pins=[tessera.Pin(nodes[-1].name, "openvino")])


@pytest.mark.parametrize("shape, axes", [
    ((512,), [0]), ((512, 4), [0]), ((2, 512, 3, 5), [1]), ((1, 512, 1, 1), [1]), ((4, 512, 1, 1), [1]),
    ((512, 1, 1), [0]), ((1, 512, 2, 2), [1, 2, 3]), ((64, 64, 2, 2), [0, 1, 2, 3]), ((36, 4), [0]),
    ((36,), [0]), ((1, 63), [1]), ((1, 1024), [1]), ((2, 8, 28, 28), [2, 3]), ((4, 512, 2), [1, 2])])
def test_a_sum_without_parts_is_short(tessera, openvino, shape, axes):
    """OpenVINO adds up what is not neighbouring in the last two axes one after the other."""
    # In vectors of 16 elements, 63 are a sum of 3 + 3 * 15 additions; in vectors of 8, of 7 + 3 * 7.
    is_short_mean = shape == (1, 63) and not HAS_AVX512
    for op in ("ReduceSumSquare",) if is_short_mean else ("ReduceMean", "ReduceSumSquare"):
        nodes = [node("Abs", "x", "a"), node(op, "a", "y", "sum", axes=axes)]
        model = load_nodes(tessera, nodes, shape, opset=11)
        with pytest.raises(tessera.Error, match="is not exact enough: it adds up"):
            model.bind(pins=[tessera.Pin("sum", "openvino")])


@pytest.mark.parametrize("shape, axes", [
    ((1, 512), [1]), ((512, 1), [0]), ((1, 512, 1), [1]), ((2, 4, 8, 8), [1, 2, 3]), ((4, 256, 2), [1, 2]),
    ((1, 49), [1]), ((1, 196), [1]), ((2, 8, 14, 14), [2, 3]), ((3, 21), [1]), ((1, 64, 2), [1, 2]),
    ((32,), [0]), ((32, 4), [0]), ((2, 32, 3, 5), [1]), ((1, 32, 1, 1), [1]), ((8, 8, 8), [0, 1, 2]),
    *([] if HAS_AVX512 else [((1, 63), [1])])])
def test_a_sum_of_rows_or_of_few_elements_is_within_its_bound(tessera, openvino, shape, axes):
    random = np.random.default_rng(8)
    nodes = [node("Abs", "x", "a"), node("ReduceMean", "a", "y", "sum", axes=axes)]
    model = load_nodes(tessera, nodes, shape, opset=11)
    # In vectors of 8 elements, these are sums of more than 32 additions in a row.
    if np.prod([shape[axis] for axis in axes]) in (512, 196) and len(axes) < 3 and not HAS_AVX512:
        with pytest.raises(tessera.Error, match="is not exact enough: it adds up"):
            model.bind(pins=[tessera.Pin("sum", "openvino")])
        return
    executor = model.bind(pins=[tessera.Pin("*", "openvino")])
    for turn in range(200):
        # Equal elements are the worst case: each addition rounds in the same direction.
        x = random.standard_normal(() if turn % 2 else shape)
        x = np.broadcast_to(np.asarray(x, np.float32), shape).copy()
        exact = np.abs(x.astype(np.float64)).mean(axis=tuple(axes), keepdims=True)
        bound = np.spacing(exact.astype(np.float32)) + 4 * 2.0**-23 * exact
        assert np.max(np.abs(executor.run({"x": x})[0] - exact) / bound) < 1
