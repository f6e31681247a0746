"""Models of ai.onnx.ml: ensembles of trees, and one node of each op that large tables meet."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FEATURES = 30
CLASSES = 5
DOMAIN = "ai.onnx.ml"
WORDS = [f"word{index}" for index in range(1000)]


def model_of(nodes, inputs, outputs, version=3):
    """`inputs` and `outputs`: name -> element type and dimensions."""
    values = [[helper.make_tensor_value_info(name, kind, dims)
               for name, (kind, dims) in each.items()] for each in (inputs, outputs)]
    return helper.make_model(
        helper.make_graph(nodes, "model", *values), ir_version=9,
        opset_imports=[helper.make_opsetid("", 19), helper.make_opsetid(DOMAIN, version)])


def ml(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain=DOMAIN, **attributes)


FLOAT_ROWS = (TensorProto.FLOAT, [None, None])
LABELS = (TensorProto.INT64, [None])


class Trees:
    """Random trees: lists with an entry for each node, of which the children follow it. Thresholds
    are among `bins` numbers for each feature, as those of LightGBM are."""

    def __init__(self, trees, depth, leaves=None, bins=255, seed=0):
        random = np.random.default_rng(seed)
        edges = np.sort(random.standard_normal((FEATURES, bins)).astype(np.float32), axis=1)
        shapes = [self.shape_of(random, depth, leaves) for _ in range(trees)]
        self.tree = np.concatenate([np.full(len(left), tree) for tree, (left, _) in
                                    enumerate(shapes)])
        self.node = np.concatenate([np.arange(len(left)) for left, _ in shapes])
        self.left = np.concatenate([left for left, _ in shapes])
        self.right = np.concatenate([right for _, right in shapes])
        self.is_leaf = self.left == 0
        self.feature = np.where(self.is_leaf, 0, random.integers(0, FEATURES, len(self.left)))
        self.threshold = edges[self.feature, random.integers(0, bins, len(self.left))]
        self.random = random

    @staticmethod
    def shape_of(random, depth, leaves):
        """The children of each node, 0 for leaves: of a complete tree, or of one in which random
        leaves were split until there are `leaves`."""
        if leaves is None:
            inner = 2**depth - 1
            left = np.zeros(2 * inner + 1, int)
            left[:inner] = 2 * np.arange(inner) + 1
            return left, np.where(left, left + 1, 0)
        left, right, depths = [0], [0], [0]
        while len(left) < 2 * leaves - 1:
            open_leaves = [at for at, child in enumerate(left) if not child and depths[at] < depth]
            at = int(random.choice(open_leaves))
            left[at], right[at] = len(left), len(left) + 1
            left += [0, 0]
            right += [0, 0]
            depths += [depths[at] + 1] * 2
        return np.array(left), np.array(right)

    def listed(self):
        """The attributes of the older ops."""
        return {"nodes_treeids": self.tree.tolist(), "nodes_nodeids": self.node.tolist(),
                "nodes_featureids": self.feature.tolist(),
                "nodes_values": self.threshold.tolist(),
                "nodes_truenodeids": self.left.tolist(), "nodes_falsenodeids": self.right.tolist(),
                "nodes_modes": np.where(self.is_leaf, "LEAF", "BRANCH_LEQ").tolist()}

    def votes(self, prefix, targets):
        """One vote of each leaf, or one for each of several targets."""
        tree, node = (np.repeat(each[self.is_leaf], targets) for each in (self.tree, self.node))
        weights = self.random.random(len(tree)).astype(np.float32) / (tree[-1] + 1)
        return {f"{prefix}_treeids": tree.tolist(), f"{prefix}_nodeids": node.tolist(),
                f"{prefix}_ids": np.tile(np.arange(targets), len(tree) // targets).tolist(),
                f"{prefix}_weights": weights.tolist()}

    def regressor(self):
        return model_of([ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **self.listed(),
                            **self.votes("target", 1))], {"x": FLOAT_ROWS}, {"y": FLOAT_ROWS})

    def classifier(self, classes):
        """Two classes have one score."""
        votes = self.votes("class", 1 if classes == 2 else classes)
        return model_of([ml("TreeEnsembleClassifier", ["x"], ["label", "scores"],
                            classlabels_int64s=list(range(classes)), **self.listed(), **votes)],
                        {"x": FLOAT_ROWS}, {"label": LABELS, "scores": FLOAT_ROWS})

    def ensemble(self):
        """Of version 5, in which leaves have lists of their own."""
        place = np.where(self.is_leaf, np.cumsum(self.is_leaf), np.cumsum(~self.is_leaf)) - 1
        first = np.searchsorted(self.tree, self.tree)  # the root of each node's tree
        inner = np.flatnonzero(~self.is_leaf)
        lists = {"nodes_featureids": self.feature[inner].tolist(),
                 "tree_roots": place[np.unique(first)].tolist(),
                 "leaf_targetids": [0] * int(self.is_leaf.sum())}
        for side, children in (("true", self.left), ("false", self.right)):
            child = (first + children)[inner]
            lists[f"nodes_{side}nodeids"] = place[child].tolist()
            lists[f"nodes_{side}leafs"] = self.is_leaf[child].astype(int).tolist()
        weights = self.random.random(int(self.is_leaf.sum())).astype(np.float32)
        tensors = {"nodes_splits": self.threshold[inner], "leaf_weights": weights,
                   "nodes_modes": np.zeros(len(inner), np.uint8)}
        return model_of([ml("TreeEnsemble", ["x"], ["y"], n_targets=1, **lists,
                            **{name: numpy_helper.from_array(array, name)
                               for name, array in tensors.items()})],
                        {"x": FLOAT_ROWS}, {"y": FLOAT_ROWS}, version=5)


# Name: what makes the model of so many trees of that depth.
ENSEMBLES = {
    "regressor": lambda trees, depth: Trees(trees, depth).regressor(),
    "classifier": lambda trees, depth: Trees(trees, depth).classifier(2),
    "classes": lambda trees, depth: Trees(trees, depth).classifier(CLASSES),
    "ensemble": lambda trees, depth: Trees(trees, depth).ensemble(),
    "leaf_wise": lambda trees, depth: Trees(trees, 3 * depth, leaves=31).regressor(),
    "fine": lambda trees, depth: Trees(trees, depth, bins=100000).regressor(),
}


def floats(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def table_of(random, rows):
    return {"x": floats(random, rows, FEATURES)}


def one_node(op, outputs, inputs=None, **attributes):
    return model_of([ml(op, list(inputs or {"x": FLOAT_ROWS}), list(outputs), **attributes)],
                    inputs or {"x": FLOAT_ROWS}, outputs, attributes.pop("version", 3))


def support_vectors(random, op, outputs, **attributes):
    vectors, per_class = 200, 100
    return one_node(op, outputs, kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0],
                    **{"support_vectors": floats(random, vectors * FEATURES).tolist(),
                       "coefficients": floats(random, vectors).tolist(), "rho": [0.5],
                       **({"vectors_per_class": [per_class] * 2} if "label" in outputs else
                          {"n_supports": vectors}), **attributes})


def linear(random, count):
    return {"coefficients": floats(random, count * FEATURES).tolist(),
            "intercepts": floats(random, count).tolist()}


Y = {"y": FLOAT_ROWS}
CLASSIFIED = {"label": LABELS, "scores": FLOAT_ROWS}
INT_COLUMN = (TensorProto.INT64, [None, None])
TEXT_COLUMN = (TensorProto.STRING, [None, None])


def tf_idf():
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1,
                            max_gram_length=2, max_skip_count=0, ngram_counts=[0, 1000],
                            ngram_indexes=list(range(1500)),
                            pool_int64s=[*range(1000), *(i % 1000 for i in range(1000))])
    return model_of([node], {"x": INT_COLUMN}, Y)


# Name: the model, from a generator of random numbers; its inputs, from one and a number of rows.
OPS = {
    "scaler": (lambda random: one_node("Scaler", Y, offset=floats(random, FEATURES).tolist(),
                                       scale=floats(random, FEATURES).tolist()), table_of),
    **{f"normalizer_{norm.lower()}": (
        lambda random, norm=norm: one_node("Normalizer", Y, norm=norm), table_of)
        for norm in ("MAX", "L1", "L2")},
    "imputer": (lambda random: one_node("Imputer", Y, imputed_value_floats=[0.5] * FEATURES,
                                        replaced_value_float=float("nan")), table_of),
    "binarizer": (lambda random: one_node("Binarizer", Y, threshold=0.5), table_of),
    "one_hot": (lambda random: one_node(
        "OneHotEncoder", {"y": (TensorProto.FLOAT, [None, None, None])}, {"x": INT_COLUMN},
        cats_int64s=list(range(20))),
        lambda random, rows: {"x": random.integers(0, 22, (rows, 3))}),
    "labels_of_ints": (lambda random: one_node(
        "LabelEncoder", Y, {"x": INT_COLUMN}, keys_int64s=list(range(0, 2000, 2)),
        values_floats=floats(random, 1000).tolist()),
        lambda random, rows: {"x": random.integers(0, 2000, (rows, 3))}),
    "labels_of_texts": (lambda random: one_node(
        "LabelEncoder", {"y": INT_COLUMN}, {"x": TEXT_COLUMN}, keys_strings=WORDS,
        values_int64s=list(range(1000))),
        lambda random, rows: {"x": random.choice(np.array(WORDS, object), (rows, 3))}),
    "linear_regressor": (lambda random: one_node("LinearRegressor", Y, targets=1,
                                                 **linear(random, 1)), table_of),
    "linear_classifier": (lambda random: one_node(
        "LinearClassifier", CLASSIFIED, classlabels_ints=list(range(CLASSES)),
        post_transform="SOFTMAX", **linear(random, CLASSES)), table_of),
    "svm_regressor": (lambda random: support_vectors(random, "SVMRegressor", Y), table_of),
    "svm_classifier": (lambda random: support_vectors(
        random, "SVMClassifier", CLASSIFIED, classlabels_ints=[0, 1]), table_of),
    "tf_idf": (lambda random: tf_idf(),
               lambda random, rows: {"x": random.integers(0, 1200, (rows, 20))}),
}
