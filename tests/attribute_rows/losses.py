"""Losses: of scores for classes, with classes that are left out and weights of classes."""

import numpy as np
from attribute_rows.row import Row, combined, ints

# A generator of their own, so that these rows do not change the values of others.
SOURCE = np.random.default_rng(37)


def numbers(*shape):
    return np.round(SOURCE.standard_normal(shape) * 2, 2).astype(np.float32)


def loss_rows():
    names = {"NegativeLogLikelihoodLoss": ("input", "target", "weight"),
             "SoftmaxCrossEntropyLoss": ("scores", "labels", "weights")}
    for op, (scores, classes, weights) in names.items():
        of_classes = np.abs(numbers(3)) + np.float32(0.1)
        # Of one sample and of several positions of each; class 1 occurs, so it can be ignored.
        for size, labels in (((4, 3), ints(0, 1, 2, 1)),
                             ((2, 3, 2), ints(0, 1, 2, 1).reshape(2, 2))):
            yield Row(op, {scores: numbers(*size), classes: labels}, {
                "reduction": ["none", "sum"],
                "ignore_index": [1, combined("ignore_index", 1, reduction="none"),
                                 combined("ignore_index", 1, **{weights: of_classes})],
                weights: [of_classes, combined(weights, of_classes, reduction="none")]})


FAMILIES = (loss_rows,)
