"""Ops of ai.onnx.ml: random nodes beside ONNX Runtime, what it does otherwise than the standard,
and maps as dicts."""

import numpy as np
import onnxruntime
import pytest
from machine_learning_cases import DOMAIN, FLOATS, GENERATORS, draw_case, explain_difference
from onnx import TensorProto, helper
from small_models import model_of, node, tensor_type

# Of each op: until so many uses were compared. ONNX Runtime refuses some, of TreeEnsemble most.
SEEDS = range(200)
ENOUGH = 20
LABELS = tensor_type(TensorProto.INT64, None)
TO_FLOAT = helper.make_map_type_proto(TensorProto.INT64, FLOATS)


def ml(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain=DOMAIN, **attributes)


def run(tessera, model, inputs):
    shapes = {name: value.shape for name, value in inputs.items() if not isinstance(value, dict)}
    return tessera.load(model.SerializeToString()).bind(shapes).run(inputs)


@pytest.mark.parametrize("name", GENERATORS)
def test_random_nodes_give_what_onnxruntime_gives(tessera, name):
    compared = 0
    for seed in SEEDS:
        if compared > ENOUGH:
            break
        case = draw_case(name, seed)
        try:
            session = onnxruntime.InferenceSession(case.model.SerializeToString())
            expected = session.run(None, case.inputs)
        except Exception:
            continue  # it has no kernel for the type, or fails for no rows
        found = run(tessera, case.model, case.inputs)
        differences = [explain_difference(*pair) for pair in zip(expected, found, strict=True)]
        assert not any(differences), (seed, case.attributes, differences)
        compared += 1
    assert compared > ENOUGH


def stump(votes, labels, **attributes):
    """A classifier with two leaves, 1 for rows that are not positive; votes are (leaf, class,
    weight)."""
    leaves, classes, weights = zip(*votes, strict=True)
    return model_of([ml(
        "TreeEnsembleClassifier", "x", "label scores", nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[0.0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0], class_treeids=[0] * len(votes), class_nodeids=leaves,
        class_ids=classes, class_weights=[float(weight) for weight in weights],
        classlabels_int64s=labels, **attributes)],
        {"x": [None, 1]}, {"label": LABELS, "scores": FLOATS}, domains={DOMAIN: 3})


BOTH = np.array([[-1], [1]], np.float32)
# Where ONNX Runtime does something else, the standard says: "Returns the top class for each of N
# inputs", "Base values for classification, added to final class score", "A leaf may have multiple
# votes", "Indicates the transform to apply to the score."
RULINGS = {
    "the top class of two": (
        stump([(1, 0, 0.75), (1, 1, 0.25), (2, 0, 0.25), (2, 1, 0.75)], [7, 9]),
        [[7, 9], [[0.75, 0.25], [0.25, 0.75]]]),
    "the top class is one without a vote": (
        stump([(1, 0, -0.5), (2, 2, 0.5)], [4, 5, 6]), [[5, 6], [[-0.5, 0, 0], [0, 0, 0.5]]]),
    "base values of both classes": (
        stump([(1, 0, 0.5), (1, 1, 0.25), (2, 0, 0.5), (2, 1, 0.5)], [7, 9],
              base_values=[0.0, 0.125]),
        [[7, 9], [[0.5, 0.375], [0.5, 0.625]]]),
}


@pytest.mark.parametrize("name", RULINGS)
def test_the_standard_decides(tessera, name):
    model, expected = RULINGS[name]
    labels, scores = run(tessera, model, {"x": BOTH})
    assert [labels.tolist(), scores.tolist()] == expected


@pytest.mark.parametrize("transform, expected", [("LOGISTIC", 0.8807971), ("SOFTMAX", 1)])
def test_a_single_score_is_transformed(tessera, transform, expected):
    model = model_of([ml("LinearRegressor", "x", "y", coefficients=[2.0],
                         post_transform=transform)], {"x": [1, 1]}, {"y": FLOATS},
                     domains={DOMAIN: 1})
    assert run(tessera, model, {"x": BOTH[1:]})[0].item() == pytest.approx(expected)


def zipped(**labels):
    key = TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, FLOATS))
    return model_of([ml("ZipMap", "x", "z", **labels)], {"x": [None, 2]}, {"z": maps},
                    domains={DOMAIN: 1})


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["b", "a"]},
                                    {"classlabels_int64s": [3, 1]}])
def test_maps_are_dicts_as_onnxruntime_gives_them(tessera, labels):
    model = zipped(**labels).SerializeToString()
    rows = np.array([[0.25, 0.75], [1, np.inf]], np.float32)
    expected = onnxruntime.InferenceSession(model).run(None, {"x": rows})
    session = tessera.onnxruntime.InferenceSession(model)
    for found in (tessera.load(model).bind({"x": [2, 2]}).run({"x": rows}),
                  session.run(None, {"x": rows})):
        assert found == expected
        assert [list(each.items()) for each in found[0]] == [
            list(each.items()) for each in expected[0]]
        assert {type(value) for each in found[0] for value in each.values()} == {float}
    assert session.get_outputs()[0].type == onnxruntime.InferenceSession(
        model).get_outputs()[0].type
    described = tessera.load(model).outputs[0]
    assert described.text.startswith("sequence(map(") and described.shape is None


def vectorizer():
    return model_of([ml("DictVectorizer", "x", "y", int64_vocabulary=[2, 5])], {"x": TO_FLOAT},
                    {"y": FLOATS}, domains={DOMAIN: 1})


def test_maps_are_inputs(tessera):
    model = vectorizer().SerializeToString()
    executor = tessera.load(model).bind()
    for given in ({5: 0.5, 7: 1.0}, {}):
        expected = onnxruntime.InferenceSession(model).run(None, {"x": given}) if given else [
            np.zeros((1, 2), np.float32)]
        assert executor.run({"x": given})[0].tolist() == expected[0].tolist()
        session = tessera.onnxruntime.InferenceSession(model)
        assert session.run(None, {"x": given})[0].tolist() == expected[0].tolist()


@pytest.mark.parametrize("given, message", [
    (np.ones(2, np.float32), "expected a dict, found"), ({"a": 1.0}, "keys of int64"),
    ({1: "a"}, "values of float32"), ({1: [1.0, 2.0]}, "single values")])
def test_other_maps_are_refused(tessera, given, message):
    executor = tessera.load(vectorizer().SerializeToString()).bind()
    with pytest.raises(tessera.InvalidArgument, match=message):
        executor.run({"x": given})


def test_maps_go_through_sequences(tessera):
    """Values that are maps are read, copied and given by other nodes."""
    model = model_of([
        ml("ZipMap", "x", "maps", classlabels_int64s=[2, 5]),
        node("SequenceAt", "maps one", "map"),
        ml("CastMap", "map", "y")],
        {"x": [None, 2]}, {"y": FLOATS, "map": TO_FLOAT}, {"one": np.array(1)},
        domains={DOMAIN: 1})
    rows = np.array([[1, 2], [3, 4]], np.float32)
    y, given = run(tessera, model, {"x": rows})
    assert y.tolist() == [[3, 4]] and given == {2: 3.0, 5: 4.0}
