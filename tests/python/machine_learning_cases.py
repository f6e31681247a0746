"""Random nodes of ai.onnx.ml, with inputs. Numbers are multiples of 1/8, so that sums are exact in
any order, and equal scores are equal everywhere."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from small_models import model_of, node, tensor_type

DOMAIN = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
NUMBERS = (np.float32, np.float64, np.int64, np.int32)
ONNX_TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE,
              np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32,
              np.dtype(np.float16): TensorProto.FLOAT16, np.dtype(object): TensorProto.STRING}


class Case:
    """A node with its attributes, inputs by name, and the types of its outputs."""

    def __init__(self, op, inputs, outputs, attributes, version=1):
        self.op = op
        self.inputs = inputs
        kinds = {name: self.kind_of(array) for name, array in inputs.items()}
        self.model = model_of(
            [node(op, list(inputs), list(outputs), domain=DOMAIN, **attributes)], kinds, outputs,
            domains={DOMAIN: version}, ir_version=9)
        self.attributes = attributes
        self.version = version

    @staticmethod
    def kind_of(value):
        if not isinstance(value, dict):
            return tensor_type(ONNX_TYPES[value.dtype], [None] * value.ndim)
        key, element = next(iter(value.items()))
        kinds = {str: TensorProto.STRING, int: TensorProto.INT64, float: TensorProto.FLOAT}
        return helper.make_map_type_proto(kinds[type(key)],
                                          tensor_type(kinds[type(element)], None))


def tensor(kind):
    return tensor_type(kind, None)


FLOATS = tensor(TensorProto.FLOAT)


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def whole(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one_of(self, choices):
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, fraction=0.5):
        return bool(self.random.random() < fraction)

    def eighths(self, *shape, low=-16, high=16):
        return (self.random.integers(low, high + 1, shape) / 8).astype(np.float32)

    def floats(self, count, **limits):
        return [float(number) for number in self.eighths(count, **limits)]

    def rows(self, features, dtype=None, may_be_nan=False):
        dtype = dtype or self.one_of(NUMBERS)
        rows = self.eighths(self.one_of((0, 1, 2, 5, 9, 40)), features)
        if np.dtype(dtype).kind != "f":
            return (rows * 4).astype(dtype)
        if may_be_nan:
            rows[self.random.random(rows.shape) < 0.1] = self.one_of((np.nan, np.inf, -np.inf))
        return rows.astype(dtype)

    def labels(self, count, integers):
        """Attributes, and the type of the label."""
        if self.chance():
            return ({"classlabels_strings": [f"c{index * 7 % 5}{index}" for index in range(count)]},
                    tensor(TensorProto.STRING))
        return ({integers: [int(label) for label in self.random.permutation(50)[:count]]},
                tensor(TensorProto.INT64))


def trees_of(draw, features, wide):
    """Attributes of random trees, and the leaves by tree."""
    lists = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values",
                                 "truenodeids", "falsenodeids", "tracks")}
    modes = MODES if draw.chance() else (draw.one_of(MODES),)
    leaves = []

    def add(tree, depth):
        node_id = sum(each == tree for each in lists["treeids"])
        place = len(lists["treeids"])
        is_leaf = depth == 0 or draw.chance(0.15)
        values = {"treeids": tree, "nodeids": node_id, "truenodeids": 0, "falsenodeids": 0,
                  "featureids": 0 if is_leaf else draw.whole(0, features - 1),
                  "modes": "LEAF" if is_leaf else draw.one_of(modes),
                  "values": 0.0 if is_leaf else draw.floats(1)[0],
                  "tracks": draw.whole(0, 1)}
        for key, value in values.items():
            lists[key].append(value)
        if is_leaf:
            leaves.append((tree, node_id))
        else:
            lists["truenodeids"][place] = add(tree, depth - 1)
            lists["falsenodeids"][place] = add(tree, depth - 1)
        return node_id

    for tree in range(draw.whole(1, 9)):
        add(tree, draw.whole(0, 5))
    tracks = lists.pop("tracks")
    values = lists.pop("values")
    attributes = {f"nodes_{key}": value for key, value in lists.items()}
    if wide:
        attributes["nodes_values_as_tensor"] = doubles(values)
    else:
        attributes["nodes_values"] = values
    if draw.chance():
        attributes["nodes_missing_value_tracks_true"] = tracks
    return attributes, leaves


def doubles(values):
    return numpy_helper.from_array(np.array(values, np.float64), "t")


def votes_of(leaves, prefix, targets_of, weights_of, wide):
    """Attributes with the weights of leaves; targets_of() gives the targets of one."""
    votes = [(*leaf, target) for leaf in leaves for target in targets_of()]
    weights = weights_of(len(votes))
    attributes = {f"{prefix}_treeids": [vote[0] for vote in votes],
                  f"{prefix}_nodeids": [vote[1] for vote in votes],
                  f"{prefix}_ids": [vote[2] for vote in votes]}
    if wide:
        return {**attributes, f"{prefix}_weights_as_tensor": doubles(weights)}
    return {**attributes, f"{prefix}_weights": weights}


def numbers(name, values, wide):
    return {f"{name}_as_tensor": doubles(values)} if wide else {name: values}


def tree_regressor(draw):
    features, targets = draw.whole(1, 4), draw.whole(1, 3)
    rows = draw.rows(features, may_be_nan=True)
    version = draw.one_of((1, 3))
    wide = version == 3 and rows.dtype == np.float64
    attributes, leaves = trees_of(draw, features, wide)
    attributes |= votes_of(leaves, "target", lambda: range(targets), draw.floats, wide)
    attributes |= {"n_targets": targets,
                   "aggregate_function": draw.one_of(("SUM", "AVERAGE", "MIN", "MAX"))}
    # ONNX Runtime leaves a single score as it is.
    attributes["post_transform"] = draw.one_of(TRANSFORMS if targets > 1 else ("NONE", "PROBIT"))
    if draw.chance():
        attributes |= numbers("base_values", draw.floats(targets), wide)
    return Case("TreeEnsembleRegressor", {"x": rows}, {"y": FLOATS}, attributes, version)


def tree_classifier(draw):
    features, classes = draw.whole(1, 4), draw.whole(2, 4)
    rows = draw.rows(features, may_be_nan=True)
    version = draw.one_of((1, 3))
    wide = version == 3 and rows.dtype == np.float64
    attributes, leaves = trees_of(draw, features, wide)
    is_binary = classes == 2
    positive = {"low": 0} if draw.chance() else {}
    targets = (lambda: [0]) if is_binary else lambda: range(classes)
    attributes |= votes_of(leaves, "class", targets, lambda count: draw.floats(count, **positive),
                           wide)
    labels, kind = draw.labels(classes, "classlabels_int64s")
    attributes |= labels
    # ONNX Runtime sets only one of two scores to that of PROBIT.
    attributes["post_transform"] = draw.one_of(TRANSFORMS[:4] if is_binary else TRANSFORMS)
    if draw.chance():
        attributes |= numbers("base_values", draw.floats(1 if is_binary else classes), wide)
    return Case("TreeEnsembleClassifier", {"x": rows}, {"label": kind, "scores": FLOATS},
                attributes, version)


def tree_ensemble(draw):
    dtype = draw.one_of((np.float32, np.float64))
    features, targets = draw.whole(1, 4), draw.whole(1, 3)
    inner, leaves = [], []

    def leaf():
        leaves.append((draw.floats(1)[0], draw.whole(0, targets - 1)))
        return len(leaves) - 1, 1

    def add(depth):
        place = len(inner)
        inner.append(None)
        children = [leaf() if depth <= 1 or draw.chance(0.2) else (add(depth - 1), 0)
                    for _ in range(2)]
        inner[place] = (draw.whole(0, 6), draw.whole(0, features - 1), draw.floats(1)[0],
                        *children[0], *children[1], draw.whole(0, 1))
        return place

    roots = [add(draw.whole(1, 4)) for _ in range(draw.whole(1, 5))]
    columns = [list(column) for column in zip(*inner, strict=True)]
    modes, ids, splits, if_true, true_leafs, if_false, false_leafs, tracks = columns
    members = [draw.floats(draw.whole(1, 6)) + [np.nan] for mode in modes if mode == 6]
    attributes = {
        "tree_roots": roots, "nodes_featureids": ids, "nodes_truenodeids": if_true,
        "nodes_falsenodeids": if_false, "nodes_trueleafs": true_leafs,
        "nodes_falseleafs": false_leafs, "leaf_targetids": [each[1] for each in leaves],
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8), "m"),
        "nodes_splits": numpy_helper.from_array(np.array(splits, dtype), "s"),
        "leaf_weights": numpy_helper.from_array(np.array([each[0] for each in leaves], dtype), "w"),
        "n_targets": targets, "aggregate_function": draw.whole(0, 3)}
    if members:
        attributes["membership_values"] = numpy_helper.from_array(
            np.array(sum(members, []), dtype), "v")
    if draw.chance():
        attributes["nodes_missing_value_tracks_true"] = tracks
    rows = draw.rows(features, dtype)
    return Case("TreeEnsemble", {"x": rows}, {"y": tensor(ONNX_TYPES[np.dtype(dtype)])}, attributes,
                5)


def linear_classifier(draw):
    features, classes = draw.whole(1, 5), draw.whole(2, 4)
    sums = 1 if classes == 2 and draw.chance() else classes
    labels, kind = draw.labels(classes, "classlabels_ints")
    return Case("LinearClassifier", {"x": draw.rows(features)}, {"label": kind, "scores": FLOATS},
                {**labels, "coefficients": draw.floats(sums * features),
                 "intercepts": draw.floats(sums),
                 # Of two scores, ONNX Runtime sets only one to that of PROBIT.
                 "post_transform": draw.one_of(TRANSFORMS[:4] if sums == 1 else TRANSFORMS)})


def linear_regressor(draw):
    features, targets = draw.whole(1, 5), draw.whole(1, 3)
    attributes = {"coefficients": draw.floats(targets * features), "targets": targets,
                  "post_transform": draw.one_of(TRANSFORMS if targets > 1 else ("NONE", "PROBIT"))}
    if draw.chance():
        attributes["intercepts"] = draw.floats(targets)
    return Case("LinearRegressor", {"x": draw.rows(features, np.float32)}, {"y": FLOATS}, attributes)


def kernel_of(draw):
    return {"kernel_type": draw.one_of(("LINEAR", "POLY", "RBF", "SIGMOID")),
            "kernel_params": [draw.one_of((0.125, 0.5)), draw.one_of((0.0, 1.0)), 3.0]}


def svm_regressor(draw):
    features, vectors = draw.whole(1, 4), draw.whole(0, 5)
    attributes = {**kernel_of(draw), "rho": draw.floats(1), "n_supports": vectors,
                  "coefficients": draw.floats(vectors or features), "one_class": 0}
    if vectors:
        attributes["support_vectors"] = draw.floats(vectors * features)
    return Case("SVMRegressor", {"x": draw.rows(features, np.float32)}, {"y": FLOATS}, attributes)


def svm_classifier(draw):
    features, classes = draw.whole(1, 4), draw.whole(2, 4)
    labels, kind = draw.labels(classes, "classlabels_ints")
    attributes = {**kernel_of(draw), **labels}
    pairs = classes * (classes - 1) // 2
    has_vectors = draw.chance(0.8)
    if has_vectors:
        per_class = [draw.whole(1, 3) for _ in range(classes)]
        vectors = sum(per_class)
        attributes |= {"vectors_per_class": per_class, "rho": draw.floats(pairs),
                       "support_vectors": draw.floats(vectors * features),
                       "coefficients": draw.floats((classes - 1) * vectors)}
        if draw.chance():
            attributes |= {"prob_a": draw.floats(pairs, low=-16, high=-1),
                           "prob_b": draw.floats(pairs)}
    else:
        attributes |= {"coefficients": draw.floats(classes * features), "rho": draw.floats(1)}
    # PROBIT is steep near 0 and 1, so scores that are rounded differently would be far apart.
    attributes["post_transform"] = draw.one_of(TRANSFORMS[:4])
    return Case("SVMClassifier", {"x": draw.rows(features)}, {"label": kind, "scores": FLOATS},
                attributes)


def scaler(draw):
    features = draw.whole(1, 4)
    count = draw.one_of((1, features))
    return Case("Scaler", {"x": draw.rows(features)}, {"y": FLOATS},
                {"offset": draw.floats(count), "scale": draw.floats(count)})


def normalizer(draw):
    return Case("Normalizer", {"x": draw.rows(draw.whole(1, 4))}, {"y": FLOATS},
                {"norm": draw.one_of(("MAX", "L1", "L2"))})


def imputer(draw):
    features = draw.whole(1, 4)
    rows = draw.rows(features, draw.one_of((np.float32, np.int64)), may_be_nan=True)
    count = draw.one_of((1, features))
    if rows.dtype == np.int64:
        attributes = {"imputed_value_int64s": [draw.whole(-9, 9) for _ in range(count)],
                      "replaced_value_int64": draw.whole(-2, 2)}
    else:
        attributes = {"imputed_value_floats": draw.floats(count),
                      "replaced_value_float": draw.one_of((float("nan"), 0.0, 0.125))}
    return Case("Imputer", {"x": rows}, {"y": tensor(ONNX_TYPES[rows.dtype])}, attributes)


def binarizer(draw):
    rows = draw.rows(draw.whole(1, 4), np.float32)
    return Case("Binarizer", {"x": rows}, {"y": FLOATS}, {"threshold": draw.floats(1)[0]})


def feature_vectorizer(draw):
    dtype, count = draw.one_of(NUMBERS), draw.whole(1, 3)
    rows = draw.whole(1, 4)
    inputs = {f"x{index}": (draw.eighths(rows, draw.whole(1, 3)) * 8).astype(dtype)
              for index in range(count)}
    return Case("FeatureVectorizer", inputs, {"y": FLOATS},
                {"inputdimensions": [max(1, array.shape[1] + draw.whole(-1, 1))
                                     for array in inputs.values()]})


def array_feature_extractor(draw):
    shape = [draw.whole(1, 4) for _ in range(draw.whole(1, 3))]
    array = (draw.eighths(*shape) * 8).astype(draw.one_of(NUMBERS))
    if draw.chance(0.2):
        array = array.astype(str).astype(object)
    picked = np.array([draw.whole(0, shape[-1] - 1) for _ in range(draw.whole(1, 5))])
    return Case("ArrayFeatureExtractor", {"x": array, "y": picked.reshape(1, -1)},
                {"z": tensor(ONNX_TYPES[array.dtype])}, {})


def one_hot_encoder(draw):
    array = draw.random.integers(-3, 4, (draw.whole(1, 4), draw.whole(1, 3)))
    categories = [draw.whole(-3, 3) for _ in range(draw.whole(1, 5))]
    if draw.chance():
        array = array.astype(str).astype(object)
        attributes = {"cats_strings": [str(each) for each in categories]}
    else:
        array = array.astype(draw.one_of((np.int64, np.float32, np.float64)))
        attributes = {"cats_int64s": categories}
    return Case("OneHotEncoder", {"x": array}, {"y": FLOATS}, attributes)


def zip_map(draw):
    count = draw.whole(1, 4)
    labels, kind = draw.labels(count, "classlabels_int64s")
    key = kind.tensor_type.elem_type
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, FLOATS))
    rows = draw.rows(count, np.float32)
    return Case("ZipMap", {"x": rows if draw.chance(0.8) else draw.eighths(count)}, {"z": maps},
                labels)


def dict_vectorizer(draw):
    keys = [int(key) for key in draw.random.permutation(9)[:draw.whole(1, 5)]]
    vocabulary = [draw.whole(0, 9) for _ in range(draw.whole(1, 6))]
    kind, to = draw.one_of([(float, FLOATS), (str, tensor(TensorProto.STRING))])
    if draw.chance() or kind is str:
        attributes = {"int64_vocabulary": vocabulary}
    else:
        kind, to = draw.one_of([(float, FLOATS), (int, tensor(TensorProto.INT64))])
        keys = [f"k{key}" for key in keys]
        attributes = {"string_vocabulary": [f"k{key}" for key in vocabulary]}
    given = {key: kind(draw.whole(-9, 9)) for key in keys}
    return Case("DictVectorizer", {"x": given}, {"y": to}, attributes)


def cast_map(draw):
    kind = draw.one_of((float, str))
    keys = [int(key) for key in draw.random.permutation(9)[:draw.whole(1, 5)]]
    # Text of a float has six digits in ONNX Runtime.
    casts = {"TO_FLOAT": FLOATS, "TO_INT64": tensor(TensorProto.INT64)}
    if kind is str:
        casts["TO_STRING"] = tensor(TensorProto.STRING)
    to = draw.one_of(list(casts))
    attributes = {"cast_to": to, "map_form": draw.one_of(("DENSE", "SPARSE")), "max_map": 9}
    given = {key: kind(draw.whole(-9, 9)) for key in keys}
    return Case("CastMap", {"x": given}, {"y": casts[to]}, attributes)


GENERATORS = {each.__name__: each for each in (
    array_feature_extractor, binarizer, cast_map, dict_vectorizer, feature_vectorizer, imputer,
    linear_classifier, linear_regressor, normalizer, one_hot_encoder, scaler, svm_classifier,
    svm_regressor, tree_classifier, tree_ensemble, tree_regressor, zip_map)}


def draw_case(name, seed):
    return GENERATORS[name](Draw([seed, *name.encode()]))


def explain_difference(expected, found, tolerance=1e-5):
    """"" if results are the same but for rounding."""
    if isinstance(expected, list):
        pairs = [(wanted[key], each.get(key, np.nan)) for wanted, each in zip(expected, found)
                 for key in wanted]
        is_same = (len(expected) == len(found)
                   and all(list(wanted) == list(each) for wanted, each in zip(expected, found))
                   and all(wanted == each for wanted, each in pairs))
        return "" if is_same else f"expected {expected}, found {found}"
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return (f"expected {expected.dtype} {expected.shape}, found {found.dtype} {found.shape}")
    if expected.dtype.kind == "f":
        is_same = np.allclose(expected, found, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        is_same = np.array_equal(expected, found)
    return "" if is_same else f"expected {expected.tolist()}, found {found.tolist()}"


def save(case, path):
    onnx.save(case.model, path)
