"""Valid uses that onnx.reference, ONNX Runtime or OpenVINO compute otherwise than the standard says
(docs/rulings.md): the values of the standard."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from small_models import node


def floats(*numbers):
    return np.array(numbers, np.float32)


def run(tessera, made, feeds, opset, outputs="y", ml_opset=4):
    """The outputs of one node."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                            array.shape) for name, array in feeds.items()]
    graph = helper.make_graph([made], "g", inputs,
                              [onnx.ValueInfoProto(name=name) for name in outputs.split()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml_opset),
        helper.make_opsetid("com.microsoft", 1)])
    shapes = {name: array.shape for name, array in feeds.items()}
    return tessera.load(model.SerializeToString()).bind(shapes, optimize=False).run(feeds)


@pytest.mark.parametrize("opset", (23, 24, 25))
def test_scores_of_mode_0_are_neither_capped_nor_masked(tessera, opset):
    one = floats(2).reshape(1, 1, 1, 1)
    feeds = {"q": one, "k": one, "v": one, "m": floats(-1).reshape(1, 1)}
    attention = node("Attention", "q k v m", ["o", "", "", "y"], scale=1.0, softcap=2.0,
                     qk_matmul_output_mode=0)
    found, = run(tessera, attention, feeds, opset)
    assert found.item() == 4


def test_a_window_moves_with_the_valid_keys(tessera):
    feeds = {"q": np.zeros((1, 1, 2, 1), np.float32), "k": np.zeros((1, 1, 5, 1), np.float32),
             "v": floats(1, 10, 100, 1000, 10000).reshape(1, 1, 5, 1), "n": np.array([4])}
    attention = node("Attention", ["q", "k", "v", "", "", "", "n"], left_window_size=1)
    found, = run(tessera, attention, feeds, 25)
    np.testing.assert_allclose(found.ravel(), [370, 550])


@pytest.mark.parametrize(("mode", "expected"), (
    ("up", [2.0 ** 127, 2.0 ** -127, 4, 2]), ("down", [2.0 ** 127, 2.0 ** -127, 2, 1]),
    ("nearest", [2.0 ** 127, 2.0 ** -127, 4, 2])))
def test_powers_of_two_follow_the_table_of_cast(tessera, mode, expected):
    found, = run(tessera, node("Cast", to=24, round_mode=mode),
                 {"x": floats(np.inf, 2.0 ** -130, 3, 1.5)}, 25)
    assert found.dtype == ml_dtypes.float8_e8m0fnu
    np.testing.assert_array_equal(found.astype(np.float64), expected)


def test_floats_are_truncated_to_small_integers_as_to_others(tessera):
    x = floats(1.5, 2.5, -1.5, -2.6, 0.5, -0.5)
    small, = run(tessera, node("Cast", to=22), {"x": x}, 25)
    whole, = run(tessera, node("Cast", to=3), {"x": x}, 25)
    assert small.astype(np.int8).tolist() == whole.tolist() == [1, 2, -1, -2, 0, 0]


def test_products_of_halves_are_kept_in_a_wider_type(tessera):
    found, = run(tessera, node("CumProd", "x a"),
                 {"x": np.array([300, 300, 0.01], np.float16), "a": np.array(0)}, 26)
    assert found.tolist() == [300, np.inf, 900]


def test_the_smallest_of_numbers_and_nans(tessera):
    x = floats(1, np.nan, 3, np.nan, 3, -np.inf)
    found, indices = run(tessera, node("TopK", "x k", "y i", largest=0),
                         {"x": x, "k": np.array([4])}, 24, "y i")
    assert found.tolist() == [-np.inf, 1, 3, 3] and indices.tolist() == [5, 0, 2, 4]


def test_nans_are_one_element_of_a_set(tessera):
    found, counts = run(tessera, node("Unique", "x", ["y", "", "", "c"]),
                        {"x": floats(2, np.nan, 1, np.nan)}, 11, "y c")
    np.testing.assert_array_equal(found, [1, 2, np.nan])
    assert counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize(("p", "x", "expected"), (
    (1, [[1, -2], [0, 0], [1e-30, -1e-30]], [[1 / 3, -2 / 3], [0, 0], [0.5, -0.5]]),
    (2, [[3, -4], [0, 0], [1e-30, 0]], [[0.6, -0.8], [0, 0], [1, 0]])))
def test_norms_are_of_magnitudes_and_nothing_is_added(tessera, p, x, expected):
    found, = run(tessera, node("LpNormalization", p=p, axis=1), {"x": np.array(x, np.float32)}, 22)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_nan_is_a_key_and_both_zeros_are_one(tessera):
    encoder = node("LabelEncoder", domain="ai.onnx.ml", keys_floats=[np.nan, 0.0, 1.0],
                   values_int64s=[5, 6, 7])
    found, = run(tessera, encoder, {"x": floats(np.nan, -0.0, 1, 2)}, 20)
    assert found.tolist() == [5, 6, 7, -1]


@pytest.mark.parametrize("opset", (18, 28))
def test_the_logarithm_of_no_magnitude(tessera, opset):
    found, = run(tessera, node("ReduceLogSumExp", keepdims=0), {"x": floats(-np.inf, -np.inf)},
                 opset)
    assert found == -np.inf


@pytest.mark.parametrize("opset", (11, 27))
def test_a_range_counts_in_the_arithmetic_of_its_type(tessera, opset):
    feeds = {name: np.array(number, np.float32) for name, number in zip("abc", (0, 0.3, 0.1))}
    found, = run(tessera, node("Range", "a b c"), feeds, opset)
    assert len(found) == 4


@pytest.mark.parametrize(("opset", "expected"), ((9, [0, 0, 0]), (11, [0, 0, 1])))
def test_indices_below_0_wrap_since_version_11(tessera, opset, expected):
    feeds = {"i": np.array([-1]), "d": np.array(3), "v": floats(0, 1)}
    found, = run(tessera, node("OneHot", "i d v"), feeds, opset)
    assert found.ravel().tolist() == expected


def test_blocks_by_columns_first(tessera):
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    found, = run(tessera, node("SpaceToDepth", blocksize=2, mode="CRD"), {"x": x}, 28)
    assert found.ravel().tolist() == list(range(8))


def test_capitals_come_first_in_the_result(tessera):
    a, b = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    found, = run(tessera, node("Einsum", "a b", equation="Ab,bC"), {"a": a, "b": b}, 12)
    np.testing.assert_allclose(found, a @ b)


def test_whole_numbers_stay_exact(tessera):
    large = np.array([2 ** 40 + 1, -7])
    found, = run(tessera, node("Identity"), {"x": large}, 14)
    assert found.tolist() == large.tolist()
    found, = run(tessera, node("Div", "x d"), {"x": large, "d": np.array([2, 2])}, 14)
    assert found.tolist() == [2 ** 39, -3]


def test_padding_before_a_pool_is_what_it_says(tessera):
    x = np.full((1, 1, 4, 4), -1, np.float32)
    graph = helper.make_graph(
        [node("Pad", "x p", "q"), node("MaxPool", "q", kernel_shape=[3, 3])], "g",
        [helper.make_tensor_value_info("x", 1, x.shape)], [onnx.ValueInfoProto(name="y")],
        [onnx.numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "p")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = tessera.load(model.SerializeToString()).bind(optimize=False).run({"x": x})[0]
    expected = np.zeros((4, 4), np.float32)
    expected[1:3, 1:3] = -1
    np.testing.assert_array_equal(found[0, 0], expected)


def test_all_votes_of_a_leaf_for_one_target_count(tessera):
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0, 0.0, 0.0],
            "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}
    votes = {"treeids": [0, 0, 0, 0], "nodeids": [1, 1, 2, 2], "ids": [0, 0, 1, 1],
             "weights": [1.0, 2.0, 4.0, 8.0]}

    def named(prefix):
        return {f"{prefix}_{name}": values for name, values in votes.items()}

    x = floats([-1], [1])
    sums, = run(tessera, node("TreeEnsembleRegressor", domain="ai.onnx.ml", n_targets=2, **tree,
                              **named("target")), {"x": x}, 17, ml_opset=3)
    assert sums.tolist() == [[3, 0], [0, 12]]
    classes, scores = run(tessera, node(
        "TreeEnsembleClassifier", "x", "c y", domain="ai.onnx.ml", classlabels_int64s=[5, 6, 7],
        **tree, **named("class")), {"x": x}, 17, "c y", ml_opset=3)
    assert classes.tolist() == [5, 6] and scores.tolist() == [[3, 0, 0], [0, 12, 0]]


def test_each_channel_has_its_own_mask(tessera):
    x = np.array([[[1, 9, 2, 3], [1, 9, 2, 3]]], np.float32)
    mask = np.array([[[1, 0, 1, 1], [1, 1, 1, 0]]], np.int32)
    found, = run(tessera, node("MaxpoolWithMask", "x m", domain="com.microsoft", kernel_shape=[2],
                               strides=[2]), {"x": x, "m": mask}, 13)
    assert found.tolist() == [[[1, 3], [9, 2]]]
