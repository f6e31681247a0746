"""Models that compute on strings, beside ONNX Runtime, and in nested graphs and lists."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from programs import json_of, run_program
from small_models import model_of, node, tensor_type

WORDS = np.array(["the", "Cat", "sat", "on", "the", "mat"], dtype=object)
LIST = helper.make_sequence_type_proto(tensor_type(TensorProto.STRING, None))
OPTIONAL = helper.make_optional_type_proto(tensor_type(TensorProto.STRING, [None]))


def words(*shape):
    return tensor_type(TensorProto.STRING, shape or [None])


def value(name, kind):
    return helper.make_value_info(name, kind)


def body(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [value(*each) for each in inputs.items()],
                             [value(*each) for each in outputs.items()])


def strings(*values):
    return np.array(values, dtype=object)


def ml(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def tf_idf(inputs, outputs):
    return node("TfIdfVectorizer", inputs, outputs, mode="TF", min_gram_length=1,
                max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3],
                ngram_indexes=[0, 1, 2, 3], pool_strings=["the", "cat", "mat", "the", "cat"])


def classifier():
    """From words to the name of a class, as exported text classifiers do."""
    weights = {"w": np.arange(12, dtype=np.float32).reshape(4, 3) % 5}
    return model_of([
        node("StringNormalizer", "x", "clean", case_change_action="LOWER", stopwords=["on"],
             locale="C"),
        tf_idf("clean", "counts"), node("Unsqueeze", "counts zero", "row"),
        node("MatMul", "row w", "scores"), node("ArgMax", "scores", "best", axis=1, keepdims=0),
        ml("LabelEncoder", "best", "y", keys_int64s=[0, 1, 2], values_strings=["a", "b", "c"])],
        {"x": words()}, {"y": words()}, {**weights, "zero": np.array([0])}, opset=17,
        domains={"ai.onnx.ml": 2})


MODELS = {
    "a classifier": (classifier(), {"x": WORDS}),
    "constants of strings": (model_of(
        [node("Equal", "x the", "is_the"), node("Where", "is_the other x", "y")],
        {"x": words()}, {"y": words()}, {"the": strings("the")[0:1], "other": strings("a")},
        opset=19), {"x": WORDS}),
    "a look-up": (model_of([node("Gather", "names x", "y")], {"x": tensor_type(TensorProto.INT64, None)},
                           {"y": words()}, {"names": strings("zero", "one", "zwei, ü")}, opset=17),
                  {"x": np.array([2, 0, -2])}),
    "numbers as text": (model_of(
        [node("Cast", "x", "text", to=TensorProto.STRING), node("Cast", "text", "y", to=1)],
        {"x": tensor_type(TensorProto.INT64, None)}, "y", opset=17), {"x": np.array([12, -7, 0])}),
    "text as numbers": (model_of([node("Cast", "x", "y", to=11)], {"x": words()},
                                 {"y": tensor_type(TensorProto.DOUBLE, None)}, opset=17),
                        {"x": strings("0.1", "-1e5", "INF", " 7 ")}),
    "sizes that strings decide": (model_of(
        [node("StringSplit", "x", ["pieces", "count"], delimiter=" "),
         node("Reshape", "pieces flat", "y")],
        {"x": words()}, {"y": words(), "count": tensor_type(TensorProto.INT64, None)},
        {"flat": np.array([-1])}, opset=20), {"x": strings("a b c", "d", " ")}),
    "a list": (model_of(
        [node("SplitToSequence", "x", "list", axis=0, keepdims=0),
         node("SequenceInsert", "list last at", "longer"),
         node("ConcatFromSequence", "longer", "y", axis=0, new_axis=1)],
        {"x": words()}, {"y": words()}, {"last": np.array("end", object), "at": np.array(0)},
        opset=17), {"x": WORDS}),
}


@pytest.mark.parametrize("optimize", [False, True], ids=["as it is", "measured"])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(tessera, name, optimize):
    model, feeds = MODELS[name]
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    executor = tessera.load(model.SerializeToString()).bind(
        {key: each.shape for key, each in feeds.items()}, optimize=optimize)
    for _ in range(2):  # what kernels prepared is kept
        for mine, theirs in zip(executor.run(feeds), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape


def test_other_sizes_follow_without_a_bind(tessera):
    executor = tessera.load(classifier().SerializeToString()).bind({"x": (6,)}, optimize=False)
    for feed in (WORDS, WORDS[:2], strings("mat"), strings("on"), WORDS):
        assert executor.run({"x": feed})[0].shape == (1,)


def loop_of_strings():
    """`text` grows by "a" in each of n iterations; all of its values are a scan output."""
    inside = body([node("Identity", "go", "goes_on"), node("StringConcat", "text letter", "next"),
                   node("Identity", "next", "seen")],
                  {"i": tensor_type(TensorProto.INT64, ()), "go": tensor_type(TensorProto.BOOL, ()),
                   "text": words(2)},
                  {"goes_on": tensor_type(TensorProto.BOOL, ()), "next": words(2),
                   "seen": words(2)})
    return model_of([node("Loop", ["n", "", "x"], ["y", "all"], body=inside)],
                    {"n": tensor_type(TensorProto.INT64, ()), "x": words(2)},
                    {"y": words(2), "all": words(None, 2)}, {"letter": np.array("a", object)},
                    opset=20)


def test_a_loop_carries_and_collects_strings(tessera):
    executor = tessera.load(loop_of_strings().SerializeToString()).bind(optimize=False)
    for count in (3, 0, 1, 12):
        y, seen = executor.run({"n": np.array(count), "x": strings("", "ü")})
        assert y.tolist() == ["a" * count, "ü" + "a" * count]
        assert seen.shape == (count, 2)
        assert seen[:, 1].tolist() == ["ü" + "a" * (k + 1) for k in range(count)]


def test_a_branch_chooses_strings(tessera):
    def branch(constant):
        return body([node("StringConcat", ["x", constant], "t")], {}, {"t": words()})

    model = model_of([node("If", "c", "y", then_branch=branch("yes"), else_branch=branch("no"))],
                     {"c": tensor_type(TensorProto.BOOL, ()), "x": words()}, {"y": words()},
                     {"yes": np.array("!", object), "no": np.array("?", object)}, opset=20)
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    for condition, end in ((True, "!"), (False, "?")):
        y, = executor.run({"c": np.array(condition), "x": strings("a", "b")})
        assert y.tolist() == ["a" + end, "b" + end]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_goes_along_strings(tessera, axis):
    inside = body([node("StringConcat", "state element", "next"), node("Identity", "next", "out")],
                  {"state": words(2), "element": words(2)}, {"next": words(2), "out": words(2)})
    model = model_of([node("Scan", "first x", "last all", body=inside, num_scan_inputs=1,
                           scan_input_axes=[axis])],
                     {"first": words(2), "x": words(2, 2)},
                     {"last": words(2), "all": words(2, 2)}, opset=20)
    x = np.array([["a", "b"], ["c", "d"]], dtype=object)
    feeds = {"first": strings("", ">"), "x": x}
    last, collected = tessera.load(model.SerializeToString()).bind(optimize=False).run(feeds)
    expected = ReferenceEvaluator(model).run(None, feeds) if axis == 0 else None
    rows = x if axis == 0 else x.T
    assert last.tolist() == [rows[0, 0] + rows[1, 0], ">" + rows[0, 1] + rows[1, 1]]
    assert collected[0].tolist() == [rows[0, 0], ">" + rows[0, 1]]
    if expected is not None:
        np.testing.assert_array_equal(collected, expected[1])


def test_lists_and_optionals_of_strings_are_inputs_and_outputs(tessera):
    model = model_of([node("SequenceInsert", "list x", "y")],
                     {"list": LIST, "x": words()}, {"y": LIST}, opset=17)
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    given = [strings("a", "b"), strings()]
    y, = executor.run({"list": given, "x": WORDS})
    assert [each.tolist() for each in y] == [["a", "b"], [], WORDS.tolist()]
    model = model_of([node("OptionalHasElement", "x", "y")], {"x": OPTIONAL},
                     {"y": tensor_type(TensorProto.BOOL, ())}, opset=18)
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    assert executor.run({"x": None})[0] == np.False_
    assert executor.run({"x": WORDS})[0] == np.True_


@pytest.mark.parametrize("given", [
    ["a", "ü"], ("a", "ü"), np.array(["a", "ü"]), np.array(["a", "ü"], dtype=object),
    np.array(["a".encode(), "ü".encode()], dtype=object),
    np.array(["a", "ü"], dtype=np.dtypes.StringDType())], ids=lambda given: type(given).__name__)
def test_strings_come_in_every_form_that_numpy_has(tessera, given):
    model = model_of([node("Identity", "x", "y")], {"x": words()}, {"y": words()}, opset=17)
    executor = tessera.load(model.SerializeToString()).bind({"x": (2,)}, optimize=False)
    y, = executor.run({"x": given})
    assert y.dtype == object and y.tolist() == ["a", "ü"]


def test_bytes_that_are_not_text_are_kept(tessera):
    model = model_of([node("Identity", "x", "y")], {"x": words()}, {"y": words()}, opset=17)
    executor = tessera.load(model.SerializeToString()).bind({"x": (1,)}, optimize=False)
    y, = executor.run({"x": np.array([b"\xff\x00a"], dtype=object)})
    assert y[0].encode(errors="surrogateescape") == b"\xff\x00a"
    again, = executor.run({"x": y})
    assert again.tolist() == y.tolist()


def test_other_objects_and_types_are_errors(tessera):
    model = model_of([node("Identity", "x", "y")], {"x": words()}, {"y": words()}, opset=17)
    executor = tessera.load(model.SerializeToString()).bind({"x": (2,)}, optimize=False)
    with pytest.raises(tessera.InvalidArgument, match="input 'x': expected an array of numbers, "
                                                      "bools or strings, found .* dtype object"):
        executor.run({"x": np.array(["a", None], dtype=object)})
    with pytest.raises(tessera.InvalidArgument, match="input 'x'.*expected string 2, found float"):
        executor.run({"x": np.zeros(2, np.float32)})
    with pytest.raises(tessera.InvalidArgument, match="expected memory for string 2"):
        executor.bind_output("y", np.zeros(2, np.float32))


def test_text_that_is_no_number_names_its_element(tessera):
    model = model_of([node("Cast", "x", "y", name="parse", to=1)], {"x": words()}, "y", opset=17)
    executor = tessera.load(model.SerializeToString()).bind({"x": (2,)}, optimize=False)
    with pytest.raises(tessera.InvalidArgument,
                       match=r"node 'parse' \(Cast\).*float32, found 'two' as element 1"):
        executor.run({"x": strings("1", "two")})
    assert executor.run({"x": strings("1", "2")})[0].tolist() == [1, 2]


def test_models_that_differ_in_strings_have_different_plans(tessera, tmp_path):
    """Nothing that caches keep is found for other strings."""
    for text in ("a", "b"):
        model = model_of([node("StringConcat", "x text", "y"), node("Relu", "z", "r")],
                         {"x": words(2), "z": tensor_type(TensorProto.FLOAT, (4,))},
                         {"y": words(2), "r": tensor_type(TensorProto.FLOAT, (4,))},
                         {"text": np.array(text, object)}, opset=20)
        file = tmp_path / f"{text}.onnx"
        onnx.save(model, file)
        for _ in range(2):
            executor = tessera.load(file).bind(optimize=True, cache_dir=str(tmp_path / "cache"))
            y, _ = executor.run({"x": strings("1", "2"), "z": np.ones(4, np.float32)})
            assert y.tolist() == ["1" + text, "2" + text]


def test_the_command_line_runs_and_compares_strings(bin_dir, tmp_path):
    file = tmp_path / "m.onnx"
    onnx.save(MODELS["constants of strings"][0], file)
    np.save(tmp_path / "x.npy", WORDS.astype(str))
    np.save(tmp_path / "right.npy", np.array(["a", "Cat", "sat", "on", "a", "mat"]))
    np.save(tmp_path / "wrong.npy", np.array(["a", "Cat", "sat", "off", "a", "mat"]))

    def run(expected, code=0, *options):
        return run_program(bin_dir / "tessera", "run", file, "--input", f"x={tmp_path / 'x.npy'}",
                           "--expect", f"y={tmp_path / expected}", *options, code=code)

    assert '"a" "Cat" "sat" "on" "a" and 1 more' in run(
        "right.npy", 0, "--output", tmp_path / "out").stdout
    assert np.load(tmp_path / "out" / "output_0.npy").tolist() == [
        "a", "Cat", "sat", "on", "a", "mat"]
    wrong = run("wrong.npy", 1)
    assert 'element (3): expected "off", found "on"' in wrong.stdout + wrong.stderr
    assert json_of(bin_dir / "tessera", "bench", file, "--random", 1, "--shape", "x=5",
                   "--seconds", 0.05, "--json")
