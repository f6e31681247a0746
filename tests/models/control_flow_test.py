"""Models that branch, loop and carry lists: what random ones (nested_graphs_test.py) do not reach."""

import importlib
import json
import pathlib
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from programs import json_of, run_program, run_python
from small_models import model_bytes, node, save_model, tensor_type

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "errors"))
from error_cases import nested_ifs  # noqa: E402

FLAG, NUMBER = tensor_type(TensorProto.BOOL, ()), tensor_type(TensorProto.INT64, ())
LIST = helper.make_sequence_type_proto(tensor_type(TensorProto.FLOAT, None))
OPTIONAL = helper.make_optional_type_proto(tensor_type(TensorProto.FLOAT, None))


def value(name, kind):
    if not isinstance(kind, onnx.TypeProto):
        kind = tensor_type(TensorProto.FLOAT, kind)
    return helper.make_value_info(name, kind)


def body(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [value(*each) for each in inputs.items()],
                             [value(*each) for each in outputs.items()])


def choice(then_branch, else_branch, output="y"):
    """An If on `c`."""
    branches = {name: body(nodes, {}, {nodes[-1].output[0]: None})
                for name, nodes in (("then_branch", then_branch), ("else_branch", else_branch))}
    return node("If", "c", output, "choice", **branches)


def loop(nodes, carried, outputs, collected=(), name="loop", first=("count", "")):
    """A Loop of `count` iterations. `carried`: name inside -> (next name, first value, type);
    `collected`: names, or a dictionary with their types."""
    inside = body([node("Identity", "go", "goes_on"), *nodes],
                  {"i": NUMBER, "go": FLAG, **{key: each[2] for key, each in carried.items()}},
                  {"goes_on": FLAG, **{each[0]: each[2] for each in carried.values()},
                   **(collected if isinstance(collected, dict) else dict.fromkeys(collected))})
    return node("Loop", [*first, *(each[1] for each in carried.values())], outputs, name, body=inside)


def load(tessera, *arguments, **options):
    return tessera.load(model_bytes(*arguments, **options), log=lambda message: None)


def arange(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def conditional(tessera):
    """x * x or x + x, by c."""
    return load(tessera, [choice([node("Mul", "x x", "t")], [node("Add", "x x", "e")])],
                {"c": FLAG, "x": ["rows", 3]}, "y")


def test_a_branch_is_taken_for_each_size(conditional):
    executor = conditional.bind({"x": (2, 3)}, optimize=False)
    for rows in (2, 5, 1, 0, 5):
        x = arange(rows, 3)
        for condition, expected in ((True, x * x), (False, x + x)):
            y, = executor.run({"c": np.array(condition), "x": x})
            np.testing.assert_array_equal(y, expected)


def test_a_branch_whose_condition_a_shape_decides_is_inlined(tessera):
    nodes = [node("Shape", "x", "shape"), node("Size", "shape", "rank"),
             node("Equal", "rank three", "c"),
             choice([node("Squeeze", "x first", "t")], [node("Identity", "x", "e")]),
             node("Relu", "y", "z")]
    model = load(tessera, nodes, "x", "z", {"three": 3, "first": np.array([0])})
    for shape, expected in (((1, 2, 3), (2, 3)), ((2, 3), (2, 3))):
        executor = model.bind({"x": shape}, optimize=False)
        assert "If" not in {step.op for step in executor.plan().steps}
        z, = executor.run({"x": arange(*shape)})
        assert z.shape == expected


def test_a_branch_that_fits_no_shape_fails_only_if_it_is_taken(tessera):
    model = load(tessera, [choice([node("Reshape", "x five", "t")], [node("Neg", "x", "e")])],
                 {"c": FLAG, "x": [2, 3]}, "y", {"five": np.array([5])})
    executor = model.bind(optimize=False)
    y, = executor.run({"c": np.array(False), "x": arange(2, 3)})
    np.testing.assert_array_equal(y, -arange(2, 3))
    with pytest.raises(tessera.InvalidArgument, match=r"'choice' \(If\), then_branch, .*Reshape"):
        executor.run({"c": np.array(True), "x": arange(2, 3)})
    np.testing.assert_array_equal(
        executor.run({"c": np.array(False), "x": arange(2, 3)})[0], -arange(2, 3))


def test_carried_values_may_grow(tessera):
    nodes = [loop([node("Concat", "all x", "longer", axis=0)], {"all": ("longer", "x", None)}, "y")]
    model = load(tessera, nodes, {"count": NUMBER, "x": ["n", 2]}, "y")
    executor = model.bind({"x": (1, 2)}, optimize=False)
    for rows, count in ((1, 3), (2, 0), (2, 7), (1, 100)):
        x = arange(rows, 2)
        y, = executor.run({"count": np.array(count), "x": x})
        np.testing.assert_array_equal(y, np.concatenate([x] * (count + 1)))


@pytest.mark.parametrize("optimize", [False, True])
def test_many_iterations_give_what_numpy_gives(tessera, optimize):
    """With outputs that are collected, and values that nothing copies while sizes stay."""
    nodes = [loop([node("Mul", "v half", "scaled"), node("Add", "scaled x", "next"),
                   node("Neg", "next", "seen")],
                  {"v": ("next", "x", [3])}, "y all", ["seen"])]
    model = load(tessera, nodes, {"count": NUMBER, "x": [3]}, {"y": [3], "all": ["n", 3]},
                 {"half": np.float32(0.5)})
    executor = model.bind(optimize=optimize, threads=2)
    x = arange(3)
    for count in (0, 1, 2, 1000):
        v, seen = x, []
        for _ in range(count):
            v = v * np.float32(0.5) + x
            seen.append(-v)
        y, collected = executor.run({"count": np.array(count), "x": x})
        np.testing.assert_array_equal(y, v)
        np.testing.assert_array_equal(collected, np.reshape(seen, (count, 3)))


@pytest.mark.parametrize("count", [1, 3, 16, 17])
def test_a_loop_of_a_few_iterations_is_unrolled(tessera, count):
    """With a value that grows, one that depends on the number of the iteration, and a list."""
    nodes = [node("SequenceEmpty", "", "none"),
             loop([node("Concat", "v x", "longer", axis=0), node("Cast", "i", "number", to=1),
                   node("Add", "x number", "seen"), node("SequenceInsert", "list seen", "list2")],
                  {"v": ("longer", "x", None), "list": ("list2", "none", LIST)}, "y listed all",
                  ["seen"])]
    given = {"count": np.array(count)}
    outputs = {"y": None, "listed": LIST, "all": None}
    executor = load(tessera, nodes, "x", outputs, given).bind({"x": (2, 3)}, optimize=False)
    is_unrolled = "Loop" not in {step.op for step in executor.plan().steps}
    assert is_unrolled == (count <= 16 and 6 * count <= 64)
    x = arange(2, 3)
    seen = [x + number for number in range(count)]
    y, listed, collected = executor.run({"x": x})
    np.testing.assert_array_equal(y, np.concatenate([x] * (count + 1)))
    np.testing.assert_array_equal(listed, seen)
    np.testing.assert_array_equal(collected, seen)


def test_a_scan_of_a_few_iterations_is_unrolled(tessera):
    """As is each size of which the number of iterations is known; others are scans."""
    inside = body([node("Add", "s e", "sum"), node("Neg", "sum", "seen")],
                  {"s": [2], "e": [2]}, {"sum": [2], "seen": [2]})
    scan = node("Scan", "x0 x", "y all", "scan", body=inside, num_scan_inputs=1,
                scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[-1])
    model = load(tessera, [scan], {"x0": [2], "x": [2, "n"]}, "y all")
    for count in (1, 5, 32, 33):
        executor = model.bind({"x0": (2,), "x": (2, count)}, optimize=False, threads=1)
        steps = {step.op for step in executor.plan().steps}
        assert ("Scan" not in steps) == (count <= 16)
        for size in (count, 7):
            x0, x = arange(2), arange(2, size)
            y, collected = executor.run({"x0": x0, "x": x})
            sums = x0[:, None] + np.cumsum(x[:, ::-1], axis=1)
            np.testing.assert_array_equal(y, sums[:, -1])
            np.testing.assert_array_equal(collected, -sums)


@pytest.mark.parametrize("op, inputs, expected", [
    ("Identity", "x", "a"), ("Identity", "v", "a"), ("StringConcat", "v x", "aa")])
def test_strings_are_collected(tessera, op, inputs, expected):
    """ONNX Runtime loses those that a body passes on (findings/onnxruntime_loop_collects_strings.sh)."""
    word = tensor_type(TensorProto.STRING, [])
    nodes = [loop([node("Identity", "v", "next"), node(op, inputs, "seen")],
                  {"v": ("next", "x", word)}, "y all", {"seen": word})]
    model = load(tessera, nodes, {"count": NUMBER, "x": word}, {"y": word, "all": tensor_type(
        TensorProto.STRING, ["n"])}, opset=20)
    y, collected = model.bind().run({"count": np.array(3), "x": np.array("a")})
    assert (y.item(), collected.tolist()) == ("a", [expected] * 3)


def test_no_iterations_have_the_sizes_that_the_model_declares(tessera):
    repeated = loop([node("Reshape", "x shape", "each")], {}, ["all"], {"each": [2, 3]})
    inputs = {"x": ["n"], "shape": tensor_type(TensorProto.INT64, [2]), "count": NUMBER}
    executor = load(tessera, [repeated], inputs, "all").bind({"x": (6,)}, threads=1)
    for count in (0, 2, 0):
        [found] = executor.run({"x": arange(6), "shape": np.array([2, 3]),
                                "count": np.array(count)})
        np.testing.assert_array_equal(found, np.stack([arange(2, 3)] * count) if count else
                                      np.empty((0, 2, 3), np.float32))


def test_lists_go_in_and_out(tessera):
    nodes = [node("SequenceInsert", "s x", "t"), node("SequenceLength", "s", "n")]
    executor = load(tessera, nodes, {"s": LIST, "x": [2]}, {"t": LIST, "n": NUMBER}).bind(
        optimize=False)
    for given in ([], [arange(2)], [arange(1), arange(2, 2), arange(0)]):
        longer, length = executor.run({"s": given, "x": arange(2)})
        assert length == len(given) and len(longer) == len(given) + 1
        for one, other in zip(longer, [*given, arange(2)], strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(tessera.InvalidArgument, match="input 's': expected a list of arrays"):
        executor.run({"s": arange(2), "x": arange(2)})
    with pytest.raises(tessera.InvalidArgument, match="found an element of int64"):
        executor.run({"s": [np.array([1])], "x": arange(2)})


def test_a_session_takes_lists_and_none(tessera):
    session_module = importlib.import_module("tessera.onnxruntime")
    lists = model_bytes([node("SequenceInsert", "s x", "t")], {"s": LIST, "x": ["n"]}, {"t": LIST})
    longer, = session_module.InferenceSession(lists).run(None, {"s": [arange(2)], "x": arange(3)})
    assert [array.shape for array in longer] == [(2,), (3,)]
    has = model_bytes([node("OptionalHasElement", "o", "y")], {"o": OPTIONAL}, {"y": FLAG}, opset=18)
    session = session_module.InferenceSession(has)
    for given in (arange(2), None):
        assert session.run(None, {"o": given})[0] == (given is not None)


def test_what_the_caller_writes_later_changes_no_result(tessera):
    executor = load(tessera, [node("SequenceInsert", "s x", "t")], {"s": LIST, "x": [2]},
                    {"t": LIST}).bind(optimize=False)
    first, x = arange(2), arange(2)
    longer, = executor.run({"s": [first], "x": x})
    first[:], x[:] = 7, 7
    np.testing.assert_array_equal(longer, [arange(2), arange(2)])


def test_an_optional_may_be_left_out(tessera):
    nodes = [node("OptionalHasElement", "o", "c"),
             choice([node("OptionalGetElement", "o", "t")], [node("Identity", "x", "e")])]
    executor = load(tessera, nodes, {"o": OPTIONAL, "x": [2]}, {"y": None}, opset=18).bind(
        optimize=False)
    for given in ({"o": arange(3)}, {"o": None}, {}):
        y, = executor.run({"x": arange(2), **given})
        np.testing.assert_array_equal(y, arange(2) if given.get("o") is None else given["o"])


def test_the_program_takes_and_gives_lists_and_optionals(tessera_binary, tmp_path):
    nodes = [node("OptionalHasElement", "o", "c"),
             choice([node("OptionalGetElement", "o", "t")], [node("Identity", "x", "e")], "added"),
             node("SequenceInsert", "list added", "longer")]
    path = save_model(tmp_path / "model.onnx", nodes, {"list": LIST, "o": OPTIONAL, "x": [2]},
                      {"longer": LIST}, opset=18)
    for name, array in (("x", arange(2)), ("three", arange(3)), ("four", arange(2, 2))):
        np.save(tmp_path / f"{name}.npy", array)

    def run(*given):
        inputs = (each for name, file in given for each in (
            "--input", f"{name}={file if file == '[]' else tmp_path / f'{file}.npy'}"))
        done = run_program(tessera_binary, "run", path, *inputs, "--output", tmp_path / "out")
        listed = json.loads((tmp_path / "out" / "outputs.json").read_text())
        assert [each["name"] for each in listed] == [f"longer[{at}]" for at in range(len(listed))]
        assert "longer[0]" in done.stdout
        return [np.load(tmp_path / "out" / each["file"]) for each in listed]

    for found, expected in (
            (run(("list", "three"), ("list", "four"), ("x", "x")),
             [arange(3), arange(2, 2), arange(2)]),
            (run(("list", "[]"), ("x", "x"), ("o", "three")), [arange(3)])):
        assert len(found) == len(expected)
        for each, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(each, wanted)


def test_pins_reach_nested_nodes(tessera, conditional):
    inner = [node("Mul", "x x", "t", "deep")]
    model = load(tessera, [choice(inner, [node("Add", "x x", "e", "other")])],
                 {"c": FLAG, "x": [2, 3]}, "y")
    model.bind(pins=[tessera.Pin("deep", "reference")], optimize=False)
    with pytest.raises(tessera.InvalidArgument, match="did you mean 'deep'"):
        model.bind(pins=[tessera.Pin("dep", "reference")], optimize=False)
    with pytest.raises(tessera.Unsupported, match="'choice' .*then_branch.*deep"):
        model.bind(backends=["onednn"], pins=[tessera.Pin("deep", "onednn", "no such")],
                   optimize=False)


def test_a_limit_ends_a_loop(tessera):
    nodes = [loop([node("Add", "v one", "next")], {"v": ("next", "x", [1])}, "y", first=("", "go_on"))]
    model = load(tessera, nodes, {"x": [1]}, "y", {"one": np.float32(1), "go_on": np.array(True)})
    executor = model.bind(max_iterations=10, optimize=False)
    with pytest.raises(tessera.InvalidArgument, match=r"'loop' \(Loop\): expected at most 10"):
        executor.run({"x": arange(1)})
    endless = model.bind(optimize=False)
    endless.set_time_limit(0.2)
    with pytest.raises(tessera.Cancelled):
        endless.run({"x": arange(1)})


@pytest.mark.parametrize(("nodes", "message"), [
    ([loop([node("Add", "v v", "next")], {"v": ("next", "x", [3])}, "y", first=("", ""))],
     "it would not end"),
    ([node("If", "c", "y", "n", then_branch=body([node("Neg", "x", "t")], {}, {"t": None}),
           else_branch=body([node("Shape", "x", "e")], {}, {"e": tensor_type(TensorProto.INT64, None)}))],
     "branches that give the same type"),
    ([node("If", "c", "y z", "n", then_branch=body([node("Neg", "x", "t")], {}, {"t": None}),
           else_branch=body([node("Neg", "x", "e")], {}, {"e": None}))], "2 outputs"),
    ([node("SequenceConstruct", "x c", "s", "n"), node("SequenceAt", "s zero", "y")],
     "as the list has"),
    ([node("SequenceAt", "x zero", "y", "n")], "expected a sequence"),
], ids=["endless", "types", "outputs", "mixed list", "no list"])
def test_wrong_models_are_refused(tessera, nodes, message):
    with pytest.raises(tessera.InvalidModel, match=message):
        load(tessera, nodes, {"c": FLAG, "x": [3]}, "y", {"zero": 0})


@pytest.mark.parametrize(("position", "message"), [(2, "from -2 to 1 in a list of 2, found 2"),
                                                   (-3, "found -3")])
def test_a_position_outside_of_a_list_is_an_error(tessera, position, message):
    nodes = [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s at", "y", "n")]
    executor = load(tessera, nodes, {"at": NUMBER, "x": [3]}, {"y": None}).bind(optimize=False)
    with pytest.raises(tessera.InvalidArgument, match=rf"node 'n' \(SequenceAt\): .*{message}"):
        executor.run({"at": np.array(position), "x": arange(3)})


def test_elements_of_an_output_have_one_size(tessera):
    nodes = [loop([node("Concat", "v x", "next", axis=0), node("Neg", "next", "seen")],
                  {"v": ("next", "x", None)}, "y all", ["seen"])]
    executor = load(tessera, nodes, {"count": NUMBER, "x": [2]}, {"all": None}).bind(optimize=False)
    with pytest.raises(tessera.InvalidArgument, match="as in earlier iterations, found 6"):
        executor.run({"count": np.array(2), "x": arange(2)})


# Measures in one process; then another one may not.
SECOND_START = """
import sys
import numpy as np
import tessera
executor = tessera.load(sys.argv[1]).bind(threads=1, frozen=sys.argv[2] == "frozen")
y, = executor.run({"count": np.array(50), "x": np.ones((4, 64), np.float32)})
print(y.sum())
"""


def test_a_second_process_measures_nothing(tessera, tmp_path, monkeypatch):
    for name in ("XDG_CACHE_HOME", "TESSERA_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("TESSERA_OPTIMIZE", raising=False)
    nodes = [loop([node("MatMul", "v w", "p"), node("Tanh", "p", "next")],
                  {"v": ("next", "x", [4, 64])}, "y")]
    path = save_model(tmp_path / "model.onnx", nodes, {"count": NUMBER, "x": [4, 64]},
                      {"y": [4, 64]}, {"w": np.eye(64, dtype=np.float32)})
    missing = run_python(tessera, SECOND_START, path, "frozen", code=None)
    assert missing.returncode != 0 and "CacheMiss" in missing.stderr
    first = run_python(tessera, SECOND_START, path, "measures").stdout
    assert run_python(tessera, SECOND_START, path, "frozen").stdout == first


NESTED_FROM_FILE = """
import sys
import tessera
source, cache = sys.argv[1:3]
model = tessera.load(source)
if cache:
    model.load_cache(cache)
executor = model.bind(frozen=True)
assert [step for step in executor.plan().nested_steps if "MatMul" in step.op]
print(executor.cache_report().is_hit)
"""


@pytest.mark.parametrize("kind", ["bundle", "cache", "executor's cache"])
def test_files_have_the_plans_of_nested_graphs(tessera, tmp_path, monkeypatch, kind):
    """An If in a Loop; another process, with empty folders, may not measure."""
    monkeypatch.delenv("TESSERA_OPTIMIZE", raising=False)
    nodes = [loop([node("Less", "i two", "c"),
                   choice([node("MatMul", "v w", "t")], [node("Tanh", "v", "e")], "next")],
                  {"v": ("next", "x", [4, 64])}, "y")]
    path = save_model(tmp_path / "model.onnx", nodes, {"count": NUMBER, "x": [4, 64]},
                      {"y": [4, 64]}, {"w": np.eye(64, dtype=np.float32), "two": np.array(2)})
    model = tessera.load(path)
    source, cache = path, ""
    if kind == "bundle":
        source = tmp_path / "model.bundle"
        model.save_bundle(source)
    else:
        cache = tmp_path / "model.cache"
        executor = model.bind(optimize=True)
        (executor if kind == "executor's cache" else model).save_cache(cache)
    for name in ("XDG_CACHE_HOME", "TESSERA_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert run_python(tessera, NESTED_FROM_FILE, source, cache).stdout == "True\n"


def test_the_steps_of_nested_graphs_are_described(tessera, bin_dir, tmp_path):
    arguments = ([choice([node("Mul", "x x", "t")], [node("Add", "x x", "e")])],
                 {"c": FLAG, "x": [2, 3]}, "y")
    executor = load(tessera, *arguments).bind(optimize=False)
    inner = {(step.graph, step.op) for step in executor.plan().nested_steps}
    assert inner == {("node 'choice' (If), then_branch", "Mul"),
                     ("node 'choice' (If), else_branch", "Add")}
    file = save_model(tmp_path / "m.onnx", *arguments)
    explain = (bin_dir / "tessera", "explain", file, "--random", "1", "--runs", "1")
    shown = run_program(*explain).stdout
    assert "then_branch: " in shown and "else_branch: " in shown
    nested = {step["op"]: step for step in json_of(*explain, "--json")["nested_steps"]}
    assert nested.keys() == {"Mul", "Add"}
    taken, other = sorted(nested.values(), key=lambda step: -step["run_count"])
    assert (taken["run_count"], other["run_count"], other["median_us"]) == (1, 0, None)
    assert taken["median_us"] > 0 and 0 < taken["share"] < 1


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_the_steps_of_nested_graphs_are_recorded(tessera, count):
    """An If in a Loop; beyond the first iteration the loop runs on addresses."""
    nodes = [node("Less", "i two", "c"),
             choice([node("Mul", "v v", "t")], [node("Add", "v v", "e")], "chosen"),
             node("Sub", "chosen x", "next")]
    model = load(tessera, [loop(nodes, {"v": ("next", "x", [3])}, "y"), node("Neg", "y", "z")],
                 {"count": NUMBER, "x": [3]}, "z", {"two": np.array(2)})
    executor = model.bind(backends=["reference"], optimize=False)
    executor.record_steps(True)
    for _ in range(2):
        executor.run({"count": np.array(count), "x": arange(3)})
        outer = [step for step in executor.steps if not step.graph]
        inner = [step for step in executor.steps if step.graph]
        assert [step.op for step in outer] == ["Loop", "Neg"]
        assert all(step.runs == 1 for step in outer)
        place = "node 'loop' (Loop), body"
        expected = {(place, op): count for op in ("Less", "If", "Sub")} | {
            (f"{place}, node 'choice' (If), then_branch", "Mul"): min(count, 2),
            (f"{place}, node 'choice' (If), else_branch", "Add"): max(count - 2, 0)}
        ran = {key: runs for key, runs in expected.items() if runs}
        assert {(step.graph, step.op): step.runs for step in inner if step.op != "Identity"} == ran
        own = [step for step in inner if step.graph == place]
        assert sum(step.duration_ns for step in own) <= outer[0].duration_ns
        for step in inner:
            assert outer[0].start_ns <= step.start_ns
            assert step.start_ns + step.duration_ns <= outer[0].start_ns + outer[0].duration_ns
    executor.record_steps(False)
    executor.run({"count": np.array(count), "x": arange(3)})


def test_binding_takes_as_long_for_each_level_of_branches(tessera):
    """8 times as many take 8 times as long; copies of what is nested would be 64 times as many."""
    def seconds(depth):
        model = tessera.load(nested_ifs(depth), log=lambda message: None)
        times = []
        for _ in range(3):
            begin = time.process_time()
            model.bind(optimize=False, threads=1)
            times.append(time.process_time() - begin)
        return min(times)

    assert seconds(120) < 24 * seconds(15)


def test_what_does_not_vary_in_a_loop_is_computed_before_it(tessera):
    model = load(tessera, [loop([node("MatMul", "x w", "step"), node("Add", "v step", "next")],
                                {"v": ("next", "first", [2, 3])}, "y")],
                 {"count": NUMBER, "x": [2, 3], "w": [3, 3], "first": [2, 3]}, "y")
    executor = model.bind(optimize=False)
    assert [step.op for step in executor.plan().steps].count("MatMul") == 1
    assert "MatMul" not in {step.op for step in executor.plan().nested_steps}
    x, w = arange(2, 3), arange(3, 3)
    for count in (0, 1, 4):
        y, = executor.run({"count": np.array(count), "x": x, "w": w, "first": np.ones((2, 3), np.float32)})
        np.testing.assert_array_equal(y, 1 + count * (x @ w))
