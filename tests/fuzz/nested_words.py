"""Ops on strings, for nested_graphs.py. As in nested_ops.py, each function adds nodes to a scope and
returns the value, or None if no visible value is fit for it.

A tensor of strings is of the kind "words", so that no op on numbers takes it."""

import math

import numpy as np
from onnx import TensorProto, numpy_helper

from nested_ops import broadcast
from nested_values import BOOL, INT64, Value

STRING = TensorProto.STRING
WORDS = ("", "a", "b", "e4", "Zug", "zwei Worte", "ä", "日本")
MOST_WORDS = 60  # of a tensor


def are_words(value):
    return value.kind == "words" and value.dims is not None


def drawn_words(draft, shape):
    drawn = [draft.random.choice(WORDS) for _ in range(math.prod(shape))]
    return np.array(drawn, object).reshape(shape)


def result(scope, op, inputs, dims, **attributes):
    return scope.result(op, inputs, STRING, dims, kind="words", attributes=attributes)


def constant_words(scope, shape=None):
    draft = scope.draft
    if shape is None:
        shape = [draft.random.randint(1, 3) for _ in range(draft.random.randint(0, 2))]
    value = Value(draft.name("c"), STRING, tuple(shape), kind="words")
    scope.initializers.append(numpy_helper.from_array(drawn_words(draft, shape), value.name))
    scope.values.append(value)
    return value


def any_words(scope):
    return scope.pick(are_words) or constant_words(scope)


def words_beside(scope, one):
    """Other strings of the same dimensions, or a scalar."""
    other = scope.pick(lambda value: are_words(value) and value.dims == one.dims and value != one)
    return other or constant_words(scope, ())


def chosen(scope, one):
    """One of two tensors of strings, by a scalar."""
    condition = scope.pick(lambda value: value.is_tensor(BOOL) and value.dims == ())
    condition = condition or scope.constant(np.array(scope.draft.chance(0.5)))
    return result(scope, "Where", [condition, one, words_beside(scope, one)], one.dims)


def chosen_words(scope):
    return chosen(scope, any_words(scope))


def joined_words(scope):
    one = any_words(scope)
    other = scope.pick(lambda value: are_words(value) and (
        dims := broadcast(one.dims, value.dims)) is not None
        and scope.draft.most_elements(dims) <= MOST_WORDS)
    if scope.draft.opset < 20 or other is None:
        return None
    return result(scope, "StringConcat", [one, other], broadcast(one.dims, other.dims))


def longer_words(scope):
    """Strings behind each other along the first axis."""
    draft = scope.draft
    one = scope.pick(lambda value: are_words(value) and value.dims
                     and draft.most_elements(value.dims) <= MOST_WORDS // 2)
    if one is None:
        return None
    other = scope.pick(lambda value: are_words(value) and value.dims[1:] == one.dims[1:]
                       and len(value.dims) == len(one.dims)
                       and draft.most_elements(value.dims) <= MOST_WORDS // 2)
    size = scope.symbol(draft.least(one.dims[0]) + draft.least(other.dims[0]),
                        draft.most(one.dims[0]) + draft.most(other.dims[0]))
    return result(scope, "Concat", [one, other], (size, *one.dims[1:]), axis=0)


def gathered_words(scope):
    one = scope.pick(lambda value: are_words(value) and value.dims
                     and scope.draft.least(value.dims[0]) > 0)
    if one is None:
        return None
    last = scope.constant(np.array(-1, np.int64), is_listed=False)
    return result(scope, "Gather", [one, last], one.dims[1:], axis=0)


def equal_words(scope):
    if scope.draft.opset < 19:
        return None
    one = any_words(scope)
    return scope.result("Equal", [one, words_beside(scope, one)], BOOL, one.dims)


def counted_words(scope):
    return scope.result("Size", [any_words(scope)], INT64, (), 8 * MOST_WORDS)


def numbers_as_words(scope):
    value = scope.pick(lambda value: value.has_dims(INT64)
                       and scope.draft.most_elements(value.dims) <= MOST_WORDS)
    return value and result(scope, "Cast", [value], value.dims, to=STRING)


def next_words(scope, value):
    """What a body gives for the next iteration: strings of the same dimensions."""
    if scope.draft.opset >= 20 and scope.draft.chance(0.6):
        return result(scope, "StringConcat", [value, constant_words(scope, ())], value.dims)
    return chosen(scope, value)


WORD_OPS = (any_words, chosen_words, joined_words, joined_words, longer_words, gathered_words,
            equal_words, counted_words, numbers_as_words)
