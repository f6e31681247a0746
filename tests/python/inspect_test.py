"""tessera.inspect() and the errors of load() name everything that a model needs and this build lacks.
"""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from programs import run_program
from small_models import model_bytes, model_of, node, tensor_type

FLOAT6 = TensorProto.FLOAT6E2M3


def of_two(element):
    return tensor_type(element, (2,))


def make_model(nodes, inputs=None, weights=None, opset=20, domains=None, **options):
    return model_bytes(nodes, {"x": [2], **(inputs or {})}, {"y": [2]}, weights, opset=opset,
                       domains={"com.microsoft": 1} if domains is None else domains, **options)


def longformer(*arguments, **options):
    """A node of an operator that this build lacks."""
    return node("LongformerAttention", *arguments, domain="com.microsoft", **options)


def branch(*nodes):
    return model_of(nodes, {}, {nodes[-1].output[0]: [2]}).graph


def lacking(count):
    """`count` pairs of operators that this build lacks."""
    nodes = []
    for index in range(count):
        nodes.append(node("Affine", "x scale", f"q{index}", f"align{index}"))
        nodes.append(node("ImageDecoder", f"q{index}", f"d{index}", f"decode{index}"))
    return make_model([*nodes, node("Relu")], weights={"scale": np.float32(1)})


def in_function():
    inner = helper.make_function("local", "f", ["a"], ["b"], [longformer("a", "b", name="inner")],
                                 [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    nodes = [node("f", domain="local", name="call"), node("ImageDecoder", outputs="z", name="decode")]
    return make_model(nodes, functions=[inner], domains={"local": 1, "com.microsoft": 1})


# Models, and the (name, count) of the parts that they need.
MODELS = {
    "operators": (lacking(3), {"Affine": 3, "ImageDecoder": 3}),
    "an If": (make_model([
        node("If", "c", name="choose", then_branch=branch(node("ImageDecoder", outputs="t", name="d")),
             else_branch=branch(longformer(outputs="e", name="l")))],
        {"c": tensor_type(TensorProto.BOOL, ())}), {"ImageDecoder": 1, "LongformerAttention": 1}),
    "a function": (in_function(), {"LongformerAttention": 1, "ImageDecoder": 1}),
    "element types": (make_model([node("Relu")], {"a": of_two(FLOAT6), "b": of_two(FLOAT6),
                                                  "c": of_two(TensorProto.COMPLEX64)}),
                      {"float6e2m3": 2, "complex64": 1}),
    "strings": (make_model([node("Identity", "s"), node("ImageDecoder", outputs="z", name="decode")],
                           {"s": of_two(TensorProto.STRING)}), {"ImageDecoder": 1}),
    "a sequence": (make_model([
        node("SequenceConstruct", "x x", "s", "make"),
        node("SequenceAt", "s zero", "a", name="take"), longformer("a", name="last")],
        weights={"zero": 0}),
        {"LongformerAttention": 1}),
    "other domains": (make_model([longformer(name="product"),
                                  node("Gradient", outputs="z", name="step",
                                        domain="ai.onnx.preview.training")]),
                      {"LongformerAttention": 1, "Gradient": 1}),
    "mistyped": (make_model([node("Reluu"), node("ImageDecoder", outputs="z")]),
                 {"Reluu": 1, "ImageDecoder": 1}),
    "a version": (make_model([node("ImageDecoder")], opset=99),
                  {"version 99": 1, "ImageDecoder": 1}),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def lacking(request):
    return request.param


def counts(missing):
    return {part.name: part.count for part in missing}


def test_everything_is_listed(tessera, lacking, tmp_path):
    model, expected = lacking
    found = counts(tessera.inspect(model, log=lambda message: None).missing)
    assert expected.items() <= found.items()
    path = tmp_path / "model.onnx"
    path.write_bytes(model)
    inspection = tessera.inspect(path, log=lambda message: None)
    assert counts(inspection.missing) == found and inspection.model.file == str(path)
    assert inspection.model.nodes and inspection.model.ir_version == 8
    for part in inspection.missing:
        assert part.reason and part.places and part.kind


def test_load_names_everything_at_once(tessera, lacking):
    model, expected = lacking
    for load in (tessera.load, tessera.onnxruntime.InferenceSession):
        with pytest.raises(tessera.Unsupported) as refused:
            load(model)
        for name in expected:
            assert name in str(refused.value), refused.value


def test_the_program_lists_the_same(tessera, tessera_binary, lacking, tmp_path):
    model, expected = lacking
    (tmp_path / "model.onnx").write_bytes(model)
    for source, given in (("model.onnx", b""), ("-", model)):
        done = run_program(tessera_binary, "inspect", source, "--json", code=2, input=given,
                           cwd=tmp_path, text=False)
        printed = json.loads(done.stdout)
        assert {part["name"]: part["use_count"] for part in printed["missing"]} == counts(
            tessera.inspect(model, log=lambda message: None).missing)
        assert printed["error"]["kind"] == "unsupported" and printed["nodes"]
        assert b"tessera: Unsupported: " in done.stderr
    done = run_program(tessera_binary, "inspect", "model.onnx", code=2, cwd=tmp_path)
    assert done.stderr.count("Unsupported") == 1
    for name in expected:
        assert name in done.stdout, done.stdout


def test_texts(tessera):
    for opset in (20, 21, 28):
        model = make_model([node("ImageDecoder", name="one")], opset=opset)
        with pytest.raises(tessera.Unsupported) as refused:
            tessera.load(model)
        assert str(refused.value) == ("node 'one' (ImageDecoder): ImageDecoder of ai.onnx is not "
                                      "in this build")
    [part] = tessera.inspect(model).missing
    assert part.kind == "operator" and part.domain == "" and part.count == 1
    assert part.places == ["node 'one' (ImageDecoder)"]


def test_no_other_name_is_suggested_for_one_that_onnx_has(tessera):
    for made in (node("ImageDecoder"), node("Affine"), longformer()):
        [part] = tessera.inspect(make_model([made])).missing
        assert "did you mean" not in part.reason and made.op_type in part.reason


@pytest.mark.parametrize("wrong, right", (("Reluu", "Relu"), ("Softmaxx", "Softmax"),
                                          ("ReverseSequense", "ReverseSequence"),
                                          ("matmul", "MatMul"), ("Hardmx", "Hardmax")))
def test_a_name_that_onnx_does_not_have_gets_a_suggestion(tessera, wrong, right):
    with pytest.raises(tessera.Unsupported, match=f"did you mean '{right}'"):
        tessera.load(make_model([node(wrong)]))


def lost_weight(name="w", read=True):
    """A model whose weight's file does not exist, and that needs an operator that this build lacks."""
    model = onnx.load_from_string(make_model([node("ImageDecoder", name="h"),
                                              *([node("Neg", [name], ["z"])] if read else [])]))
    tensor = model.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=[2],
                                         data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="lost.bin")
    return model.SerializeToString()


def test_what_else_is_wrong_does_not_hide_what_is_missing(tessera, tessera_binary):
    """The file of a weight may be lost; a node's domain may not be imported."""
    strange = make_model([node("Own", domain="com.example"), node("ImageDecoder", outputs="h")])
    for model, words in ((lost_weight(), "lost.bin"), (strange, "'com.example' is not among")):
        with pytest.raises(tessera.InvalidModel) as refused:
            tessera.load(model)
        assert words in str(refused.value)
        assert "besides" in str(refused.value) and "ImageDecoder of ai.onnx" in str(refused.value)
        assert "ImageDecoder" in counts(tessera.inspect(model).missing)
        done = run_program(tessera_binary, "inspect", "-", code=2, input=model)
        assert b"InvalidModel" in done.stderr, done.stderr
        assert b"ImageDecoder" in done.stdout


def test_what_nothing_reads_is_not_needed(tessera):
    [part] = tessera.inspect(lost_weight(read=False)).missing
    assert part.name == "ImageDecoder"


def test_many_missing_operators_fit_a_terminal(tessera):
    nodes = [node(f"Own{index}", outputs=[f"y{index}"], domain="com.example") for index in range(60)]
    model = make_model([*nodes, node("Relu")], domains={"com.example": 1})
    with pytest.raises(tessera.Unsupported) as refused:
        tessera.load(model)
    assert len(str(refused.value)) < 1500 and "and 52 more" in str(refused.value)
    assert len(tessera.inspect(model).missing) == 60


def test_a_model_that_can_be_loaded_lacks_nothing(tessera, doubling_model):
    inspection = tessera.inspect(doubling_model)
    assert inspection.missing == [] and inspection.model.nodes[0].op == "Add"
    assert inspection.model.inputs[0].text == "float32 rowsx3"
    assert inspection.model.nodes == tessera.load(doubling_model).describe().nodes
    with open(doubling_model, "rb") as file:
        assert tessera.inspect(file).missing == []


def test_what_is_no_model_is_still_an_error(tessera, tmp_path):
    for model, kind in ((b"no model", tessera.InvalidModel), (b"", tessera.InvalidModel),
                        (tmp_path / "none.onnx", tessera.InvalidArgument),
                        (make_model([node("Relu", "nothing")]), tessera.InvalidModel)):
        with pytest.raises(kind):
            tessera.inspect(model)
    with pytest.raises(TypeError, match=r"inspect\(\): model: expected"):
        tessera.inspect(3)
    with pytest.raises(TypeError, match="did you mean 'backends'"):
        tessera.inspect(b"", backend=None)


def test_implied_domains_warn_once(tessera):
    """NNCF writes such nodes without an import of their domain."""
    messages = []
    model = make_model([node("LongformerAttention", domain="com.microsoft", outputs=[f"y{index}"])
                        for index in range(3)] + [node("Relu")], domains={})
    expected = "LongformerAttention of com.microsoft is not in this build"
    with pytest.raises(tessera.Unsupported, match=expected):
        tessera.load(model, log=messages.append)
    assert len([message for message in messages if "com.microsoft" in message]) == 1
    with pytest.raises(tessera.InvalidModel, match="'com.example' is not among the imported"):
        tessera.load(make_model([node("Own", domain="com.example")]))


def test_bundles_are_described(tessera, doubling_model, tmp_path):
    bundle = tmp_path / "model.bundle"
    tessera.load(doubling_model).save_bundle(bundle, {"x": (2, 3)}, optimize=False)
    assert tessera.inspect(bundle).missing == []
