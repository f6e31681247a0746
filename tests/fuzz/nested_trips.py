"""Conditions of If and Loop, and how often a Loop runs, for nested_graphs.py."""

import dataclasses

import numpy as np

from nested_ops import scalar
from nested_values import BOOL, INT64

MAX_TRIPS = 4
ENDLESS = 1 << 40


def condition(scope, may_have_axis=False):
    """A scalar from the input, computed, or constant; one with an axis of 1 if it may."""
    draft = scope.draft
    form = draft.random.choice(("visible", "input", "computed", "computed", "constant"))
    value = None
    if form == "visible":
        value = scope.pick(lambda value: value.is_tensor(BOOL) and value.dims == ())
    elif form == "input":
        dims = (1,) if may_have_axis and draft.chance(0.1) else ()
        value = draft.input(BOOL, dims, lambda shape: draft.array(BOOL, shape))
    elif form == "computed":
        value = scope.pick(lambda value: value.is_tensor())
        value = value and scalar(scope, value, BOOL)
    return value or scope.constant(np.array(draft.chance(0.5)))


@dataclasses.dataclass
class Trips:
    """How often a loop runs. `limit` is that of its body's condition; None: its input decides."""

    count: object  # a Value, or "" for none
    condition: object
    least: int
    most: int
    limit: int | None = None


def draw_trips(scope):
    draft = scope.draft
    random = draft.random
    form = random.choice(("constant", "constant", "input", "size", "length", "none", "endless"))
    count, least, most, limit = None, 0, MAX_TRIPS, None
    if form == "input":
        dims = (1,) if draft.chance(0.08) else ()
        count = draft.input(INT64, dims, lambda shape: np.array(
            random.randint(0, MAX_TRIPS), np.int64).reshape(shape))
    elif form == "size":
        found = scope.pick(lambda value: value.has_dims() and value.dims and any(
            isinstance(dim, str) and draft.most(dim) <= 6 for dim in value.dims))
        if found:
            axis = next(at for at, dim in enumerate(found.dims)
                        if isinstance(dim, str) and draft.most(dim) <= 6)
            sizes = scope.result("Shape", [found], INT64, (len(found.dims),), 20)
            index = scope.constant(np.array(axis, np.int64), is_listed=False)
            count = scope.result("Gather", [sizes, index], INT64, (), 6)
            least, most = draft.least(found.dims[axis]), draft.most(found.dims[axis])
    elif form == "length":
        found = scope.pick(lambda value: value.kind == "sequence" and value.longest <= 6)
        if found:
            count = scope.result("SequenceLength", [found], INT64, (), 6)
            least, most = found.length, found.longest
    elif form in ("none", "endless"):
        count = "" if form == "none" else scope.constant(np.array(ENDLESS, np.int64), False)
        limit = random.randint(0, 3)
        least, most = 1, limit + 1
    if count is None:
        least = most = random.choice((0, 1, 2, 3, MAX_TRIPS))
        count = scope.constant(np.array(least, np.int64), is_listed=False)
    start = random.choice(("none", "true", "drawn"))
    if start == "none" and count != "" and limit is None:
        return Trips(count, "", least, most, limit)
    if start != "drawn":
        return Trips(count, scope.constant(np.array(True), is_listed=False), least, most, limit)
    return Trips(count, condition(scope), 0, most, limit)


def body_condition(body, trips, iteration, goes_on):
    """What the body gives as the condition; corrects how often it runs at least."""
    draft = body.draft
    if trips.limit is not None:
        last = body.constant(np.array(trips.limit, np.int64), is_listed=False)
        stays = body.result("Less", [iteration, last], BOOL, ())
        if draft.chance(0.5):
            return stays
        other = body.pick(lambda value: value.is_tensor() and value.name != stays.name)
        trips.least = min(trips.least, 1)
        return body.result("And", [stays, scalar(body, other, BOOL)], BOOL, ())
    # Without a condition at the beginning, the standard ignores that of the body; ONNX Runtime
    # obeys.
    computed = ("computed",) if trips.condition else ()
    form = draft.random.choice(("same", "true", *computed))
    if form == "same":
        return goes_on
    if form == "true":
        return body.constant(np.array(True), is_listed=False)
    trips.least = min(trips.least, 1)
    return scalar(body, body.pick(lambda value: value.is_tensor()), BOOL)
