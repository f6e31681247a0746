"""Runs models with nested graphs by onnx.reference, with some ops replaced. Its Loop makes no
iteration without a condition and stacks scalars wrongly, its Scan knows one axis and direction, its
SequenceMap sees no outer values, and its optionals are not told from lists."""

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Loop(OpRun):
    def need_context(self):
        return True

    def _run(self, count, condition, *carried, context=None, body=None, attributes=None,
             bindings=None):
        names = self.body.input_names
        size = len(names) - 2
        carried = list(carried) + [None] * (size - len(carried))
        goes_on = True if condition is None else bool(np.asarray(condition).item())
        collected = [[] for _ in self.body.output_names[1 + size:]]
        iteration = 0
        while goes_on and (count is None or iteration < np.asarray(count).item()):
            fed = dict(context or {})
            fed.update(zip(names, [np.array(iteration, np.int64), np.array(goes_on), *carried],
                           strict=True))
            goes_on, *results = self._run_body(fed, bindings=bindings)
            goes_on = bool(np.asarray(goes_on).item())
            carried = results[:size]
            for values, value in zip(collected, results[size:], strict=True):
                values.append(value)
            iteration += 1
        return (*carried, *(np.stack(values) if values else empty(self.body, 1 + size + at)
                            for at, values in enumerate(collected)))


def empty(body, output):
    """What no iterations collect."""
    kind = body.proto_.output[output].type.tensor_type
    dtype = {1: np.float32, 7: np.int64, 9: np.bool_}[kind.elem_type]
    return np.empty([0, *(dim.dim_value for dim in kind.shape.dim)], dtype)


class Scan(OpRun):
    def need_context(self):
        return True

    def _run(self, *values, context=None, body=None, num_scan_inputs=None, attributes=None,
             bindings=None, **of_axes):
        size = len(values) - num_scan_inputs
        states, scanned = list(values[:size]), values[size:]
        count = len(self.body.output_names) - size
        pieces = [elements_of(value, axis, goes_back) for value, axis, goes_back in zip(
            scanned, of_axes["scan_input_axes"] or [0] * len(scanned),
            of_axes["scan_input_directions"] or [0] * len(scanned), strict=True)]
        collected = [[] for _ in range(count)]
        for elements in zip(*pieces, strict=True):
            fed = dict(context or {})
            fed.update(zip(self.body.input_names, [*states, *elements], strict=True))
            results = self._run_body(fed, bindings=bindings)
            states = results[:size]
            for found, value in zip(collected, results[size:], strict=True):
                found.append(value)
        outputs = [np.stack(found[::-1] if goes_back else found, axis)
                   for found, axis, goes_back in zip(
                       collected, of_axes["scan_output_axes"] or [0] * count,
                       of_axes["scan_output_directions"] or [0] * count, strict=True)]
        return (*states, *outputs)


def elements_of(value, axis, goes_back):
    elements = list(np.moveaxis(value, axis, 0))
    return elements[::-1] if goes_back else elements


class SequenceMap(OpRun):
    def need_context(self):
        return True

    def _run(self, values, *others, context=None, body=None, attributes=None, bindings=None):
        results = [[] for _ in self.body.output_names]
        for at in range(len(values)):
            inputs = [each[at] if isinstance(each, list) else each for each in (values, *others)]
            fed = dict(context or {})
            fed.update(zip(self.body.input_names, inputs, strict=True))
            for found, value in zip(results, self._run_body(fed, bindings=bindings), strict=True):
                found.append(value)
        return tuple(results)


class Optional(OpRun):
    def _run(self, value=None, type=None):  # the name of an attribute
        return ([value],)  # an optional is a list of its content, or of None


class OptionalHasElement(OpRun):
    def _run(self, value=None):
        return (np.array(content(value) is not None),)


class OptionalGetElement(OpRun):
    def _run(self, value):
        return (content(value),)


def content(optional):
    """An optional that is fed is the content itself."""
    return optional[0] if isinstance(optional, list) else optional


class Evaluator:
    """Runs a model as ONNX Runtime does."""

    def __init__(self, model):
        ops = [Loop, Scan, SequenceMap, Optional, OptionalHasElement, OptionalGetElement]
        self.evaluator = ReferenceEvaluator(model, new_ops=ops)
        self.are_optional = [output.type.HasField("optional_type") for output in model.graph.output]

    def run(self, names, feeds):
        return [content(value) if is_optional else value for value, is_optional in zip(
            self.evaluator.run(names, feeds), self.are_optional, strict=True)]
