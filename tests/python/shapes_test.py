"""One executor with inputs of several shapes: in Python, and on networks of the zoo."""

import pathlib
import shutil
import signal
import time

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from programs import end_of, start_python
from small_models import node

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(count, seed=0):
    return np.random.default_rng(seed + count).standard_normal((count, 3)).astype(np.float32)


def test_arrays_of_other_shapes_switch_the_executor(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (2, 3)}, threads=1)
    for count in (5, 2, 5, 1):
        [y] = executor.run(rows(count))
        np.testing.assert_array_equal(y, 2 * rows(count))
        assert executor.outputs[0].shape == (count, 3) and f"{count}x3" in repr(executor)
        assert executor.plan().steps[-1].outputs[0].type == f"float32 {count}x3"
    shapes = executor.shapes()
    assert [plan.shapes for plan in shapes.plans] == [{"x": [1, 3]}, {"x": [5, 3]}, {"x": [2, 3]}]
    assert shapes.arena_bytes == max(plan.arena_bytes for plan in shapes.plans)


def test_shapes_may_be_fixed(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind({"x": (2, 3)}, threads=1, fixed_shapes=True)
    expected = "expected float32 2x3, as it was bound with fixed_shapes, found float32 4x3"
    with pytest.raises(tessera.InvalidArgument, match=expected):
        executor.run(rows(4))
    executor.run(rows(2))
    with pytest.raises(tessera.InvalidArgument, match="the model declares float32 rowsx3"):
        model.bind({"x": (2, 3)}).run(np.zeros((2, 4), np.float32))
    with pytest.raises(tessera.InvalidArgument, match="most_shapes: expected at least 1"):
        model.bind({"x": (2, 3)}, most_shapes=0)


def test_ranges_are_planned_for_in_bind(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind({"x": (range(2, 101), 3)}, threads=1)
    assert executor.inputs[0].shape == (14, 3)
    arena = executor.shapes().arena_bytes
    assert len(executor.shapes().plans) == 1
    for count in (100, 2, 14, 57):
        np.testing.assert_array_equal(executor.run(rows(count))[0], 2 * rows(count))
    assert len(executor.shapes().plans) == 1 and executor.shapes().arena_bytes == arena
    expected = "expected float32 2..100x3, the ranges that bind.. was given, found float32 1x3"
    with pytest.raises(tessera.InvalidArgument, match=expected):
        executor.run(rows(1))
    np.testing.assert_array_equal(executor.run(rows(3))[0], 2 * rows(3))


@pytest.mark.parametrize(("shapes", "text"), [
    ({"x": (range(5, 5), 3)}, "found range.5, 5"),
    ({"x": (range(9, 1, -1), 3)}, "upwards"),
    ({"x": (range(-2, 4), 3)}, "found range.-2, 4"),
    ({"x": (range(0, 2**70), 3)}, "fit 64 bits"),
    ({"x": (range(1, 4), range(3, 5))}, "the model declares float32 rowsx3"),
    ({"y": (range(1, 4), 3)}, "no such input"),
    ({"x": (range(1, 4),)}, "the model declares float32 rowsx3"),
    ({"x": (range(1, 2**62), 3)}, "input 'x'"),
])
def test_wrong_ranges_are_told(tessera, doubling_model, shapes, text):
    with pytest.raises(tessera.InvalidArgument, match=text):
        tessera.load(doubling_model).bind(shapes, threads=1)


@pytest.mark.parametrize("shapes", [
    {"x": ("4", 3)}, {"x": (range(1, 3), 3.5)}, {"x": 4}, [],
    [{"x": (range(1, 4), 3)}], [{"x": (1, 3)}, 5], "x", {5: (1, 3)}, {"x": (None, 3)}, {"x": None},
])
def test_other_types_are_no_shapes(tessera, doubling_model, shapes):
    with pytest.raises(TypeError, match="shapes: expected a dictionary of shapes by input"):
        tessera.load(doubling_model).bind(shapes, threads=1)


@pytest.fixture
def halving_model(save_model):
    """x + Resize(MaxPool(x)), which takes multiples of 8 only."""
    nodes, value = [], "x"
    for depth in range(3):
        nodes.append(node("MaxPool", value, f"p{depth}", kernel_shape=[2], strides=[2]))
        value = f"p{depth}"
    nodes += [node("Resize", ["p2", "", "scales"], "r", mode="nearest"), node("Add", "x r", "y")]
    return save_model(nodes, {"x": [1, 1, "w"]}, {"y": [1, 1, "w"]},
                      {"scales": np.array([1, 1, 8], np.float32)})


def test_ranges_may_have_steps(tessera, halving_model):
    executor = tessera.load(halving_model).bind({"x": (1, 1, range(8, 200, 8))}, threads=1)
    assert executor.inputs[0].shape == (1, 1, 40), "the geometric mean of 8 and 192 is 39"
    for width in (192, 8, 16, 40):
        assert executor.run(np.ones((1, 1, width), np.float32))[0].shape == (1, 1, width)
    for width in (20, 200):
        with pytest.raises(tessera.InvalidArgument, match="1x1x8..192/8, the ranges"):
            executor.run(np.ones((1, 1, width), np.float32))


def test_sizes_that_the_model_refuses_may_lie_in_a_range(tessera, halving_model):
    model = tessera.load(halving_model)
    executor = model.bind({"x": (1, 1, range(8, 193))}, threads=1)
    assert executor.inputs[0].shape == (1, 1, 192), "not 39, which is no multiple of 8"
    assert executor.run(np.ones((1, 1, 24), np.float32))[0].shape == (1, 1, 24)
    with pytest.raises(tessera.InvalidModel, match="Add"):
        executor.run(np.ones((1, 1, 20), np.float32))
    with pytest.raises(tessera.InvalidModel, match="middle of the ranges: 'x' 1x1x38.*steps"):
        model.bind({"x": (1, 1, range(8, 188))}, threads=1)


def test_fixed_shapes_are_those_of_bind(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind([{"x": (2, 3)}, {"x": (5, 3)}], threads=1, fixed_shapes=True)
    for count in (5, 2, 5):
        executor.run(rows(count))
    with pytest.raises(tessera.InvalidArgument, match="fixed_shapes, found float32 4x3"):
        executor.run(rows(4))
    with pytest.raises(tessera.InvalidArgument, match="expected no ranges"):
        model.bind({"x": (range(2, 4), 3)}, threads=1, fixed_shapes=True)


def test_named_shapes_stay(tessera, doubling_model):
    named = [{"x": (count, 3)} for count in (3, 4, 5)]
    executor = tessera.load(doubling_model).bind(named, threads=1, most_shapes=1, families=False)
    for count in range(6, 12):
        executor.run(rows(count))
    assert {plan.shapes["x"][0] for plan in executor.shapes().plans} == {3, 4, 5, 11}


def test_progress_is_told_of_all_shapes(tessera, doubling_model, tmp_path):
    seen = []
    tessera.load(doubling_model).bind(
        [{"x": (count, 3)} for count in (1000, 2000, 3000)], threads=1, optimize=True,
        in_process=True, cache_dir=tmp_path, on_progress=lambda told: seen.append(told.phase))
    assert seen.count("choosing a plan") >= 3


def test_tuning_inputs_are_those_of_the_first_shapes(tessera, doubling_model, tmp_path):
    executor = tessera.load(doubling_model).bind(
        [{"x": (4, 3)}, {"x": (7, 3)}], threads=1, optimize=True, in_process=True,
        cache_dir=tmp_path, tuning_inputs={"x": rows(4)})
    np.testing.assert_array_equal(executor.run(rows(7))[0], 2 * rows(7))


def test_a_time_limit_holds_for_a_first_run_that_binds(tessera, doubling_model, tmp_path):
    executor = tessera.load(doubling_model).bind(threads=1, optimize=True, cache_dir=tmp_path)
    executor.set_time_limit(1e-6)
    with pytest.raises(tessera.Cancelled, match="passed while the run bound the model"):
        executor.run(rows(4))
    assert not executor.has_shapes
    executor.set_time_limit(0)
    np.testing.assert_array_equal(executor.run(rows(4))[0], 2 * rows(4))


def test_ranges_that_no_memory_can_hold_are_refused(tessera, save_model):
    model = tessera.load(save_model(
        [node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "x t", "y")],
        {"x": ["rows", 8]}, {"y": ["rows", "rows"]}))
    with pytest.raises(tessera.OutOfMemory, match="MatMul"):
        model.bind({"x": (range(1, 10**8), 8)}, threads=1)


def test_each_of_several_shapes_gets_a_plan(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind([{"x": (count, 3)} for count in (5, 1, 40)], threads=1, most_shapes=1)
    assert executor.inputs[0].shape == (5, 3)
    assert {plan.shapes["x"][0] for plan in executor.shapes().plans} == {1, 5, 40}
    for count in (40, 5, 1, 7, 40):
        np.testing.assert_array_equal(executor.run(rows(count))[0], 2 * rows(count))
    with pytest.raises(tessera.InvalidArgument, match="no such input"):
        model.bind([{"x": (5, 3)}, {"y": (5, 3)}], threads=1)


def test_what_is_bound_decides_too(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (2, 3)}, threads=1, most_shapes=2)
    for count in (4, 2, 3, 4):
        y = np.zeros((count, 3), np.float32)
        executor.bind_input("x", rows(count))
        executor.bind_output("y", y)
        executor.run_bound()
        np.testing.assert_array_equal(y, 2 * rows(count))
        assert executor.run()[0] is y
    with pytest.raises(tessera.InvalidArgument, match="output 'y': expected memory for float32 7x3"):
        executor.run(rows(7))
    assert len(executor.shapes().plans) == 2


def test_state_pairs_hold_for_every_shape(tessera, save_model):
    path = save_model([node("Add", "past x", "total")], {"past": ["n"], "x": ["n"]},
                      {"total": ["n"]})
    executor = tessera.load(path).bind({"past": (4,), "x": (4,)}, threads=1,
                                       state_pairs=[("past", "total")])
    for length in (6, 4, 6):
        state, x = np.zeros(length, np.float32), np.arange(length, dtype=np.float32)
        executor.bind_input("past", state)
        executor.bind_input("x", x)
        executor.bind_output("total", state)
        for run in range(1, 4):
            executor.run_bound()
            np.testing.assert_array_equal(state, run * x)


@pytest.mark.parametrize("backend, least_reused", (("reference", 3), ("native", 2)))
def test_kernels_serve_for_every_number_of_rows(tessera, save_model, need_backend, backend,
                                                least_reused):
    need_backend(backend)
    weight = np.random.default_rng(1).standard_normal((24, 40)).astype(np.float32)
    path = save_model(
        [node("MatMul", "x w", "product"), node("LayerNormalization", "product scale", "normal"),
         node("Tanh", "normal", "y")], {"x": ["sequences", "tokens", 24]},
        {"y": ["sequences", "tokens", 40]}, {"w": weight, "scale": np.arange(40, dtype=np.float32)})
    model = tessera.load(path)

    def array(*shape):
        return np.random.default_rng(shape).standard_normal((*shape, 24)).astype(np.float32)

    executor = model.bind({"x": (2, 5, 24)}, threads=1, backends=[backend], families=False)
    for shape in ((2, 300), (3, 2), (2, 5), (4, 97)):
        fresh = model.bind({"x": (*shape, 24)}, threads=1, backends=[backend])
        np.testing.assert_array_equal(executor.run(array(*shape))[0], fresh.run(array(*shape))[0])
    newest = executor.shapes().plans[0]
    assert newest.reused_kernels >= least_reused and newest.kernels == 3


def network(name):
    path = ROOT / "build/zoo" / name / "model.onnx"
    if not path.exists():
        pytest.skip("the zoo is not here")
    return path


def opened_target(dims, length):
    """A Reshape's target shape with the length made variable: copied from the input (0), or
    inferred (-1)."""
    if length not in dims[:2]:
        return dims
    place = dims.index(length)
    if dims[0] == -1:
        return [1, -1, *dims[2:]]
    return [*dims[:place], 0 if -1 in dims else -1, *dims[place + 1:]]


def open_length(name, tables, folder):
    """A network of the zoo for one sequence of any length up to its original one. `tables` has
    names of constants with their axes along the sequence; only the beginning of these axes is read.
    """
    source = network(name)
    model = onnx.load(source, load_external_data=False)
    graph = model.graph
    [tokens] = graph.input
    dims = tokens.type.tensor_type.shape.dim
    length = dims[1].dim_value
    dims[1].dim_param = "tokens"
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    targets = set()
    for each in graph.node:
        if each.op_type != "Reshape":
            continue
        targets.add(each.input[1])
        del each.attribute[:]  # removes allowzero, so that 0 copies a dimension
    for constant in graph.initializer:
        if constant.name in targets:
            opened = opened_target(numpy_helper.to_array(constant).tolist(), length)
            constant.CopyFrom(numpy_helper.from_array(np.array(opened, np.int64), constant.name))
    front = [node("Shape", [tokens.name], ["dims of tokens"]),
             node("Gather", ["dims of tokens", "one"], "length")]
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    for table, axes in tables.items():
        for each in graph.node:
            each.input[:] = [value + " so far" if value == table else value for value in each.input]
        starts, along = np.zeros(len(axes), np.int64), np.array(axes, np.int64)
        graph.initializer.append(numpy_helper.from_array(starts, table + " starts"))
        graph.initializer.append(numpy_helper.from_array(along, table + " axes"))
        front.append(node("Concat", ["length"] * len(axes), [table + " ends"], axis=0))
        front.append(node("Slice", [table, table + " starts", table + " ends", table + " axes"],
                          [table + " so far"]))
    nodes = [*front, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for file in source.resolve().parent.iterdir():
        if file.name != "model.onnx":
            # A link would change the time of the file's status, by which other tests, which run
            # beside this one, know that their model is unchanged.
            shutil.copyfile(file, folder / file.name)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx", length


@pytest.mark.parametrize("name, tables", (
    ("bert_mini", {"slice_1": [1], "where": [2, 3]}),
    ("gpt2_small", {"unsqueeze": [1], "where": [2, 3]})))
def test_networks_take_any_length(tessera, name, tables, tmp_path, capsys, request):
    path, most = open_length(name, tables, tmp_path)
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    model = tessera.load(path)
    value = model.inputs[0]

    def tokens(length):
        return np.random.default_rng(length).integers(0, 1000, (1, length)).astype(value.type)

    def bind(length):
        return model.bind({value.name: (1, length)}, threads=1)

    executor = bind(16)
    executor.run(tokens(16))
    lengths = (most, 7, 16, most, 7)
    for length in lengths:
        expected = bind(length).run(tokens(length))
        for result, known in zip(executor.run(tokens(length)), expected, strict=True):
            np.testing.assert_allclose(result, known, rtol=2e-4, atol=2e-4)
    [whole] = [result for result in executor.run(tokens(most))][:1]
    [original] = tessera.load(network(name)).bind(threads=1).run(tokens(most))[:1]
    np.testing.assert_allclose(whole, original, rtol=2e-3, atol=2e-3)
    shapes = executor.shapes()
    # The bound length, a family, and another one for the length at which tables are read as a whole.
    assert len(shapes.plans) <= 3
    assert shapes.arena_bytes >= max(plan.arena_bytes for plan in shapes.plans)
    # The plans share their packs; for few rows, a library may read all weights as they are.
    assert len({plan.pack_bytes for plan in shapes.plans} - {0}) <= 1

    def seconds(*turn):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for length in turn:
                executor.run(tokens(length))
            times.append(time.perf_counter() - start)
        return min(times)

    both = seconds(most, 7)
    alone = seconds(most, most) / 2 + seconds(7, 7) / 2
    planning = ", ".join(
        f"{plan.seconds * 1000:.1f} ms ({plan.reused_kernels} of {plan.kernels} kernels reused)"
        for plan in shapes.plans if plan.seconds)
    with capsys.disabled():
        print(f"\n{name}: planning other lengths took {planning}; a run of each by turns "
              f"{both * 1000:.2f} ms, without switching {alone * 1000:.2f} ms")


INTERRUPTED = """
    import sys
    import numpy as np
    import tessera

    executor = tessera.load(sys.argv[1]).bind(threads=1, backends=["reference"])
    x = np.zeros((192, 192), np.float32)
    print("ready", flush=True)
    try:
        while True:
            executor.run(x)
            print("done", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    executor.set_time_limit(0)
    print(tessera.Cancelled.__name__, flush=True)
"""


@pytest.fixture
def long_model(save_model):
    """Some seconds of matrix products on the reference."""
    size, steps = 192, 3000
    return save_model([node("MatMul", f"v{at} v0", f"v{at + 1}") for at in range(steps)],
                      {"v0": [size, size]}, {f"v{steps}": [size, size]})


@pytest.mark.alone
def test_ctrl_c_ends_a_run(tessera, long_model):
    process = start_python(tessera, INTERRUPTED, long_model)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    start = time.monotonic()
    output, _ = end_of(process, 0, signal.SIGINT)
    assert output.splitlines()[-2:] == ["interrupted", "Cancelled"]
    # It ends before its next step, not at the end of the run: a step takes milliseconds, a run
    # seconds.
    assert "done" not in output and time.monotonic() - start < 2
