"""Cases of the ops of ai.onnx.ml."""

import numpy as np
from networks.operator_cases.case import ML, Either, case, f, i, v, words

SMALL, LARGE = (16, 16), (4096, 64)
SOURCE = np.random.default_rng(17)
KEYS = list(range(500))


def numbers(*dims):
    return SOURCE.standard_normal(dims).round(3).ravel().tolist()


def learned(op, small=None, large=None, **more):
    return case(op, small or [f(*SMALL)], large or [f(*LARGE)], domain=ML, **more)


def features():
    yield learned("ArrayFeatureExtractor", [f(16, 16), v([[1, 5, 9]])],
                  [f(4096, 64), v([list(range(0, 64, 2))])])
    yield learned("Binarizer", threshold=0.3)
    yield learned("FeatureVectorizer", [f(16, 16), f(16, 4)], [f(4096, 64), f(4096, 16)],
                  inputdimensions=Either([16, 4], [64, 16]))
    yield learned("Imputer", imputed_value_floats=[0.5], replaced_value_float=0.0)
    yield learned("Scaler", offset=Either(numbers(16), numbers(64)),
                  scale=Either(numbers(16), numbers(64)))
    for norm in ("MAX", "L1", "L2"):
        yield learned("Normalizer", norm=norm, note=norm)
    yield learned("OneHotEncoder", [i(9, 16)], [i(9, 4096)], cats_int64s=list(range(9)))
    yield learned("CategoryMapper", [i(500, 16)], [i(500, 4096)], cats_int64s=KEYS,
                  cats_strings=[f"word{key}" for key in KEYS])
    yield learned("LabelEncoder", [i(500, 16)], [i(500, 65536)], keys_int64s=KEYS,
                  values_int64s=KEYS[::-1], opset=4)
    yield learned("LabelEncoder", [words(50, 16)], [words(50, 16384)], note="strings", opset=4,
                  keys_strings=[f"word{key}" for key in KEYS], values_int64s=KEYS)


def models():
    yield learned("LinearRegressor", coefficients=Either(numbers(16), numbers(64)),
                  intercepts=[0.5])
    yield learned("LinearClassifier", coefficients=Either(numbers(4, 16), numbers(4, 64)),
                  intercepts=[0.5, 0.1, 0.0, -0.3], classlabels_ints=[0, 1, 2, 3],
                  post_transform="SOFTMAX", outputs=2)
    kernel = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0]}
    yield learned("SVMRegressor", large=[f(256, 64)], n_supports=100, coefficients=numbers(100),
                  support_vectors=Either(numbers(100, 16), numbers(100, 64)), rho=[0.5], **kernel)
    yield learned("SVMClassifier", large=[f(256, 64)], vectors_per_class=[40, 60],
                  classlabels_ints=[0, 1], coefficients=numbers(100),
                  support_vectors=Either(numbers(100, 16), numbers(100, 64)), rho=[0.5], outputs=2,
                  **kernel)


def _trees(count, depth, features):
    """Full trees: attributes that classifiers and regressors share."""
    inner, nodes = 2**depth - 1, 2**(depth + 1) - 1
    ids = np.tile(np.arange(nodes), count)
    is_leaf = ids >= inner
    return {
        "nodes_treeids": np.repeat(np.arange(count), nodes).tolist(),
        "nodes_nodeids": ids.tolist(),
        "nodes_featureids": np.where(is_leaf, 0, SOURCE.integers(0, features, len(ids))).tolist(),
        "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        "nodes_values": SOURCE.standard_normal(len(ids)).round(3).tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, 2 * ids + 1).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, 2 * ids + 2).tolist(),
    }, np.flatnonzero(is_leaf)


def trees():
    both = {size: _trees(*shape) for size, shape in (("small", (5, 3, 16)), ("large", (100, 6, 64)))}
    for op, prefix, more in (
            ("TreeEnsembleRegressor", "target", {"n_targets": 1, "outputs": 1}),
            ("TreeEnsembleClassifier", "class", {"classlabels_int64s": [0, 1], "outputs": 2})):
        tables = {}
        for size, (nodes, leaves) in both.items():
            targets = {"treeids": np.array(nodes["nodes_treeids"])[leaves].tolist(),
                       "nodeids": np.array(nodes["nodes_nodeids"])[leaves].tolist(),
                       "ids": [0] * len(leaves), "weights": numbers(len(leaves))}
            tables[size] = {**nodes, **{f"{prefix}_{name}": value
                                        for name, value in targets.items()}}
        attributes = {name: Either(tables["small"][name], tables["large"][name])
                      for name in tables["small"]}
        yield learned(op, opset=3, **attributes, **more)


FAMILIES = (features, models, trees)
