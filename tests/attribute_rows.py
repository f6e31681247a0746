"""Uses of ops in every version: for each attribute and each optional input, values that change the
result. Inputs have the names of the newest version; an older version in which an input was an
attribute gets it as that. conformance/attributes_test.py compares all values on all backends, and
fuzz/random_models.py draws combinations of them."""

import dataclasses

import numpy as np
import onnx
from onnx import helper

SOURCE = np.random.default_rng(36)
NAMES_BEFORE = {"constant_value": "value", "K": "k", "input_mean": "mean", "input_var": "var"}


def floats(*shape):
    return np.round(SOURCE.standard_normal(shape) * 2, 2).astype(np.float32)


def ints(*numbers, dtype=np.int64):
    return np.array(numbers, dtype)


@dataclasses.dataclass
class Row:
    op: str
    inputs: dict  # by name, in the schema's order; a list for a variadic input
    # For each attribute or optional input the values to try. A dict sets others beside it.
    vary: dict
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    # Values that must not change the result, as the standard says.
    same: dict = dataclasses.field(default_factory=dict)
    versions: range = range(1, 1000)


class Inexpressible(Exception):
    """A version has no such attribute or input."""


def attribute(schema, name, value):
    kind = schema.attributes[name].type.name
    if kind == "TENSOR":
        return helper.make_attribute(name, onnx.numpy_helper.from_array(value))
    if isinstance(value, np.ndarray):
        value = value.tolist() if kind in ("INTS", "FLOATS") else value.item()
    elif isinstance(value, np.generic):
        value = value.item()
    if kind == "FLOAT":
        value = float(value)
    return helper.make_attribute(name, value, attr_type=int(schema.attributes[name].type))


def node_of(row, schema, settings):
    """The node "target" with `settings` beside or in place of the row's own values, and the arrays
    of its inputs, None for those that are left out."""
    given = {**row.inputs, **row.attributes, **settings}
    names = [parameter.name for parameter in schema.inputs]
    arrays, attributes = {}, []
    for index, (name, value) in enumerate(given.items()):
        before = NAMES_BEFORE.get(name)
        if name in names:
            arrays[name] = value
        elif name in schema.attributes:
            attributes.append(attribute(schema, name, value))
        elif before in names:
            arrays[before] = value
        elif before in schema.attributes:
            attributes.append(attribute(schema, before, value))
        elif name in row.inputs and index < len(names) and names[index] not in given:
            arrays[names[index]] = value  # the same input under an older name
        elif name not in row.inputs or np.size(value) != 0:
            raise Inexpressible(name)
    ordered = []
    for name in names:
        value = arrays.get(name)
        ordered += value if isinstance(value, list) else [value]
    while ordered and ordered[-1] is None:
        ordered.pop()
    ordered = [None if value is None else np.asarray(value) for value in ordered]
    inputs = ["" if value is None else f"i{index}" for index, value in enumerate(ordered)]
    outputs = [f"o{index}" for index in range(min(row.outputs, schema.max_output))]
    node = helper.make_node(row.op, inputs, outputs, name="target")
    node.attribute.extend(attributes)
    return node, ordered


def settings_of(subject, value):
    return value if isinstance(value, dict) else {subject: value}


X = floats(2, 3, 4, 5)
TIES = np.round(floats(3, 4, 5))
IMAGE = floats(1, 3, 9, 8)
LINE = floats(2, 3, 11)
CUBE = floats(1, 2, 5, 6, 7)


def combined(name, value, **others):
    return {name: value, **others}


def pool_rows():
    for op in ("AveragePool", "MaxPool"):
        counts = {"count_include_pad": [
            combined("count_include_pad", 1, pads=[1, 0, 1, 1]),
            combined("count_include_pad", 1, pads=[0, 1, 2, 1], ceil_mode=1, strides=[2, 2]),
            combined("count_include_pad", 1, auto_pad="SAME_LOWER", strides=[2, 2]),
            combined("count_include_pad", 1, pads=[1, 1, 1, 1], dilations=[2, 1]),
        ]} if op == "AveragePool" else {}
        # Windows that reach beyond an input without padding.
        counted = {"count_include_pad": 1} if op == "AveragePool" else {}
        yield Row(op, {"X": IMAGE}, {
            "auto_pad": ["SAME_UPPER", "SAME_LOWER",
                         combined("auto_pad", "SAME_LOWER", strides=[2, 2]),
                         combined("auto_pad", "SAME_UPPER", strides=[2, 3])],
            "pads": [[1, 0, 1, 1], [0, 1, 0, 0], [2, 1, 0, 0]],
            "strides": [[2, 1], [1, 3], [2, 2]],
            "dilations": [[2, 1], [1, 3], combined("dilations", [2, 2], pads=[2, 1, 2, 1]),
                          combined("dilations", [2, 2], ceil_mode=1, strides=[2, 2])],
            "ceil_mode": [combined("ceil_mode", 1, strides=[4, 4]),
                          combined("ceil_mode", 1, strides=[4, 4], pads=[1, 0, 0, 1]),
                          combined("ceil_mode", 1, strides=[4, 4], auto_pad="VALID", **counted),
                          combined("ceil_mode", 1, strides=[4, 4], **counted)],
            "kernel_shape": [[2, 3], [1, 1], [9, 8]],
            **counts}, {"kernel_shape": [3, 2]},
            same={"auto_pad": ["VALID", "NOTSET"], "strides": [[1, 1]], "pads": [[0, 0, 0, 0]],
                  "dilations": [[1, 1]]})
        yield Row(op, {"X": LINE}, {"pads": [[1, 1], [2, 0]], "strides": [[2], [3]],
                                    "auto_pad": ["SAME_LOWER", combined(
                                        "auto_pad", "SAME_UPPER", strides=[2])],
                                    "dilations": [[2]],
                                    "ceil_mode": [combined("ceil_mode", 1, strides=[3])]},
                  {"kernel_shape": [3]})
        yield Row(op, {"X": CUBE}, {"pads": [[1, 0, 1, 0, 1, 1]], "strides": [[2, 1, 3]],
                                    "dilations": [[2, 1, 2]]}, {"kernel_shape": [2, 3, 2]})
    yield Row("MaxPool", {"X": IMAGE}, {
        "storage_order": [1, combined("storage_order", 1, pads=[1, 1, 1, 1], strides=[2, 1])],
        "pads": [[1, 1, 1, 1]], "dilations": [[2, 1]]}, {"kernel_shape": [3, 2]}, outputs=2,
        versions=range(8, 1000))


def convolution_rows():
    for x, w, bias, one, zero, values in (
            (IMAGE, floats(6, 3, 3, 2), floats(6), [1, 1], [0] * 4, {
                "pads": [[1, 0, 1, 1], [0, 2, 1, 0]], "strides": [[2, 1], [1, 3], [2, 2]],
                "dilations": [[2, 1], [1, 3], [2, 2]]}),
            (LINE, floats(4, 3, 3), floats(4), [1], [0] * 2, {
                "pads": [[1, 0], [0, 2]], "strides": [[2], [3]], "dilations": [[2], [3]]}),
            (CUBE, floats(3, 2, 2, 3, 2), floats(3), [1] * 3, [0] * 6, {
                "pads": [[1, 0, 1, 0, 1, 1]], "strides": [[2, 1, 3]], "dilations": [[2, 1, 2]]})):
        axes = x.ndim - 2
        yield Row("Conv", {"X": x, "W": w}, {
            **values, "B": [bias],
            "auto_pad": ["SAME_UPPER", "SAME_LOWER", combined(
                "auto_pad", "SAME_LOWER", strides=[2] * axes), combined(
                "auto_pad", "SAME_UPPER", dilations=[2] * axes)]},
            same={"kernel_shape": [list(w.shape[2:])], "auto_pad": ["VALID"], "strides": [one],
                  "dilations": [one], "pads": [zero]})
        yield Row("ConvTranspose", {"X": x, "W": w.swapaxes(0, 1).copy()}, {
            **values, "B": [bias],
            "auto_pad": [combined("auto_pad", "SAME_UPPER", strides=[2] * axes),
                         combined("auto_pad", "SAME_LOWER", strides=[2] * axes),
                         combined("auto_pad", "SAME_LOWER", dilations=[2] * axes)],
            "output_padding": [combined("output_padding", [1] * axes, strides=[2] * axes),
                               combined("output_padding", [2] + [0] * (axes - 1),
                                        strides=[3] * axes)],
            "output_shape": [
                combined("output_shape", [2 * size for size in x.shape[2:]], strides=[2] * axes),
                combined("output_shape", [2 * size - 1 for size in x.shape[2:]],
                         strides=[2] * axes, auto_pad="SAME_LOWER"),
                combined("output_shape", [2 * size - 1 for size in x.shape[2:]],
                         strides=[2] * axes, auto_pad="SAME_UPPER")]},
            same={"kernel_shape": [list(w.shape[2:])], "auto_pad": ["VALID"], "strides": [one],
                  "dilations": [one], "pads": [zero], "output_padding": [[0] * axes]})
    wide = floats(1, 4, 7, 6)
    for groups in (2, 4):
        yield Row("Conv", {"X": wide, "W": floats(8, 4 // groups, 3, 3)}, {
            "group": [groups, combined("group", groups, pads=[1, 1, 1, 1])],
            "strides": [combined("strides", [2, 1], group=groups)],
            "B": [combined("B", floats(8), group=groups)],
            "dilations": [combined("dilations", [2, 1], group=groups)]})
        yield Row("ConvTranspose", {"X": wide, "W": floats(4, 3, 3, 2)}, {
            "group": [groups, combined("group", groups, strides=[2, 2])],
            "B": [combined("B", floats(3 * groups), group=groups)],
            "output_padding": [combined("output_padding", [1, 0], group=groups, strides=[2, 2])]})


def recurrence_rows():
    for op, gates, defaults, others in (("RNN", 1, ["Tanh"], ["Relu"]),
                                        ("GRU", 3, ["Sigmoid", "Tanh"], ["HardSigmoid", "Relu"]),
                                        ("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"],
                                         ["HardSigmoid", "Tanh", "Softsign"])):
        x, hidden = floats(5, 3, 4), 2
        for directions, attributes in ((1, {}), (2, {"direction": "bidirectional"})):
            biases = (1 if op == "RNN" else gates)
            optional = {"B": [floats(directions, 2 * biases * hidden)],
                        "sequence_lens": [ints(5, 2, 3, dtype=np.int32),
                                          combined("sequence_lens", ints(1, 5, 4, dtype=np.int32),
                                                   direction=attributes.get(
                                                       "direction", "reverse"))],
                        "initial_h": [floats(directions, 3, hidden)]}
            if op == "LSTM":
                optional["initial_c"] = [floats(directions, 3, hidden)]
                optional["P"] = [floats(directions, 3 * hidden)]
            special = {"GRU": {"linear_before_reset": [
                combined("linear_before_reset", 1, B=floats(directions, 6 * hidden))]},
                "LSTM": {"input_forget": [1]}}.get(op, {})
            first = "LeakyRelu" if op == "RNN" else "HardSigmoid"
            alone = [first] + defaults[1:]
            yield Row(op, {"X": x, "W": floats(directions, gates * hidden, 4),
                           "R": floats(directions, gates * hidden, hidden)}, {
                **optional, **special,
                **({"direction": ["reverse"]} if directions == 1 else {}),
                "activations": [others * directions, ["Softsign" if op == "RNN" else "HardSigmoid"] *
                                (len(defaults) * directions)],
                "activation_alpha": [combined("activation_alpha", [0.3] * directions,
                                              activations=alone * directions)],
                **({"activation_beta": [combined("activation_beta", [0.7] * directions,
                                                 activation_alpha=[0.3] * directions,
                                                 activations=alone * directions)]}
                   if op != "RNN" else {"activation_beta": [combined(
                       "activation_beta", [0.7] * directions, activation_alpha=[0.3] * directions,
                       activations=["Affine"] * directions)]}),
                "clip": [0.3],
            }, {"hidden_size": hidden, **attributes}, outputs=3 if op == "LSTM" else 2,
                same={"activations": [defaults * directions], "hidden_size": [hidden]})
            batch_first = {"X": floats(3, 5, 4), "W": floats(directions, gates * hidden, 4),
                           "R": floats(directions, gates * hidden, hidden)}
            yield Row(op, batch_first, {
                "layout": [1, combined("layout", 1, initial_h=floats(3, directions, hidden)),
                           combined("layout", 1, sequence_lens=ints(5, 2, 3, dtype=np.int32))]},
                {"hidden_size": hidden, **attributes}, outputs=3 if op == "LSTM" else 2)
        yield Row(op, {"X": x, "W": floats(2, gates * hidden, 4),
                       "R": floats(2, gates * hidden, hidden)}, {"direction": ["bidirectional"]},
                  {"hidden_size": hidden}, outputs=2)


def reduction_rows():
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                 "SumSquare"):
        data = np.abs(X) + 0.5
        yield Row(f"Reduce{kind}", {"data": data}, {
            "axes": [ints(1), ints(-1), ints(0, 2), ints(3, 1), ints(-2, 0), ints(0, 1, 2)],
            "keepdims": [0, combined("keepdims", 0, axes=ints(1)),
                         combined("keepdims", 0, axes=ints(-1, 1))],
            "noop_with_empty_axes": [1]}, same={"axes": [ints(0, 1, 2, 3)]})
    for op in ("ArgMax", "ArgMin"):
        yield Row(op, {"data": TIES}, {
            "axis": [1, 2, -1, -2], "keepdims": [0, combined("keepdims", 0, axis=-1)],
            "select_last_index": [1, combined("select_last_index", 1, axis=-1),
                                  combined("select_last_index", 1, axis=1, keepdims=0)]},
            same={"axis": [-3]})


def normalization_rows():
    yield Row("BatchNormalization", {"X": X, "scale": floats(3), "B": floats(3),
                                     "input_mean": floats(3), "input_var": np.abs(floats(3))},
              {"epsilon": [0.5]}, same={"momentum": [0.5]})
    yield Row("BatchNormalization", {"X": X, "scale": floats(3), "B": floats(3),
                                     "mean": floats(3), "var": np.abs(floats(3))},
              {"is_test": [1], "epsilon": [combined("epsilon", 0.5, is_test=1)]},
              versions=range(1, 7))
    yield Row("BatchNormalization", {"X": X, "scale": floats(3), "B": floats(3),
                                     "input_mean": floats(3), "input_var": np.abs(floats(3))},
              {"training_mode": [1], "epsilon": [combined("epsilon", 0.5, training_mode=1)],
               "momentum": [combined("momentum", 0.5, training_mode=1)]}, outputs=3,
              versions=range(14, 1000))
    yield Row("BatchNormalization", {"X": X, "scale": floats(3, 4, 5), "B": floats(3, 4, 5),
                                     "input_mean": floats(3, 4, 5),
                                     "input_var": np.abs(floats(3, 4, 5))},
              {"spatial": [0, combined("spatial", 0, epsilon=0.5)]}, versions=range(6, 9))
    yield Row("InstanceNormalization", {"input": X, "scale": floats(3), "B": floats(3)},
              {"epsilon": [0.5, 2.0]})
    for dims in ((2, 8, 3, 5), (2, 8, 3), (2, 8)):
        yield Row("GroupNormalization", {"X": floats(*dims), "scale": floats(8), "bias": floats(8)},
                  {"epsilon": [0.5], "num_groups": [1, 2] + [4, 8] * (len(dims) > 2)},
                  {"num_groups": 2}, same={"stash_type": [1]})
    yield Row("LayerNormalization", {"X": X, "Scale": floats(5)},
              {"epsilon": [0.5], "B": [floats(5)]}, outputs=3, same={"stash_type": [1]})
    yield Row("LayerNormalization", {"X": floats(3, 5, 5), "Scale": floats(5)},
              {"axis": [1, -2], "epsilon": [combined("epsilon", 0.5, axis=-2)]}, outputs=1,
              same={"axis": [2, -1]})
    yield Row("LRN", {"X": floats(2, 7, 3, 4)},
              {"alpha": [0.5], "beta": [combined("beta", 0.3, alpha=0.5)], "bias": [2.0, 1.5],
               "size": [combined("size", 5, alpha=0.5), combined("size", 4, alpha=0.5),
                        combined("size", 1, alpha=0.5), combined("size", 2, alpha=0.5)]},
              {"size": 3})
    for op in ("Softmax", "LogSoftmax"):
        yield Row(op, {"input": X}, {"axis": [0, 2, -2, -4]})
        yield Row(op, {"input": X}, {"axis": [1, -3]}, same={"axis": [3, -1]},
                  versions=range(13, 1000))
        yield Row(op, {"input": X}, {"axis": [3, -1]}, same={"axis": [1, -3]},
                  versions=range(1, 13))


def activation_rows():
    x = np.concatenate([floats(30), np.linspace(-3, 3, 30, dtype=np.float32)])
    for op, name, values in (
            ("Celu", "alpha", [2.0, 0.5]), ("Elu", "alpha", [2.0, -0.5, 0.0]),
            ("LeakyRelu", "alpha", [0.5, -0.5, 0.0, 2.0]), ("Selu", "alpha", [0.5]),
            ("Selu", "gamma", [0.5]), ("HardSigmoid", "alpha", [0.5, -0.5]),
            ("HardSigmoid", "beta", [0.1]), ("Shrink", "lambd", [1.5]), ("Shrink", "bias", [0.5]),
            ("ThresholdedRelu", "alpha", [0.0, 2.0, -1.0]), ("Swish", "alpha", [0.5, -1.0]),
            ("Gelu", "approximate", ["tanh"])):
        yield Row(op, {"input": x}, {name: values})
    yield Row("Clip", {"input": x}, {"min": [np.float32(-1)], "max": [np.float32(0.5)]})
    yield Row("Clip", {"input": np.round(x).astype(np.int32)},
              {"min": [np.int32(-1)], "max": [np.int32(1)]}, versions=range(12, 1000))
    special = np.array([1, np.inf, -np.inf, np.nan, 0], np.float32)
    yield Row("IsInf", {"X": special}, {"detect_negative": [0], "detect_positive": [0]})


def movement_rows():
    yield Row("Compress", {"input": floats(4, 3, 3), "condition": np.array([True, False, True])},
              {"axis": [0, 1, 2, -1, -2, -3]})
    yield Row("Concat", {"inputs": [floats(2, 2, 2), floats(2, 2, 2)]}, {"axis": [0, 1, 2, -1, -3]})
    yield Row("CumSum", {"x": X, "axis": np.array(1)}, {
        "reverse": [1], "exclusive": [1, combined("exclusive", 1, reverse=1)],
        "axis": [np.array(-1), np.array(0), np.array(-3), np.array(2, np.int32)]})
    yield Row("DepthToSpace", {"input": floats(2, 32, 2, 3)}, {
        "mode": ["CRD", combined("mode", "CRD", blocksize=4)], "blocksize": [4, 2]},
        {"blocksize": 2}, same={"mode": ["DCR"]})
    yield Row("SpaceToDepth", {"input": floats(2, 3, 4, 8)}, {
        "mode": ["CRD", combined("mode", "CRD", blocksize=4)], "blocksize": [4, 2]},
        {"blocksize": 2}, same={"mode": ["DCR"]})
    yield Row("Flatten", {"input": X}, {"axis": [0, 2, 3, 4, -1, -4]}, same={"axis": [1]})
    yield Row("Gather", {"data": floats(3, 3, 3), "indices": ints(2, 0, 1)},
              {"axis": [1, 2, -1, -2]})
    yield Row("GatherElements", {"data": floats(3, 3, 3), "indices": np.array(
        [[[0, 2, 1], [1, 1, 0], [2, 0, 0]]] * 3)}, {"axis": [1, 2, -1, -2]})
    yield Row("GatherND", {"data": floats(2, 2, 2, 3), "indices": np.array([[[0, 1]], [[1, 0]]])},
              {"batch_dims": [1]})
    yield Row("GatherND", {"data": floats(2, 2, 3, 3), "indices": np.array([[[2], [1]], [[0], [2]]])},
              {"batch_dims": [2]})
    yield Row("OneHot", {"indices": np.array([[0, 2, -1], [1, 1, 4]]), "depth": np.array(3),
                         "values": np.array([2, 5], np.float32)}, {"axis": [0, 1, -2, -3]},
              same={"axis": [2]})
    pads = ints(0, 0, 1, 2, 0, 0, 2, 1)
    modes = [combined("mode", mode, pads=pads) for mode in ("reflect", "edge")]
    yield Row("Pad", {"data": X, "pads": pads}, {
        "mode": modes, "pads": [ints(0, 1, 0, 0, 0, 0, 1, 0), ints(0, 0, -1, 2, 0, 0, 1, -2),
                                combined("pads", ints(0, 0, 0, 3, 0, 0, 0, 0), mode="edge"),
                                combined("pads", ints(0, 0, 0, 3, 0, 0, 3, 0), mode="reflect"),
                                combined("pads", ints(0, 0, -1, 3, 0, 0, 3, -1), mode="edge")],
        "constant_value": [np.float32(7)]}, same={"mode": ["constant"]})
    yield Row("Pad", {"data": X, "pads": pads}, {"mode": ["wrap"]}, versions=range(19, 1000))
    yield Row("Pad", {"data": X, "pads": ints(1, 2, 2, 1)}, {
        "axes": [combined("axes", ints(2, 3), mode=mode, constant_value=np.float32(3))
                 for mode in ("constant", "edge", "reflect")] + [ints(3, 1), ints(-1, 0)]},
        versions=range(18, 1000))
    yield Row("Reshape", {"data": np.zeros((0, 3), np.float32), "shape": ints(3, 0)},
              {"allowzero": [1]})
    yield Row("ScatterElements", {"data": floats(3, 3, 3), "indices": np.array([[[0, 2, 1]]]),
                                  "updates": np.array([[[3, -3, 0.5]]], np.float32)}, {
        "axis": [2, 1, -1, -2], "reduction": ["add", "mul", combined(
            "reduction", "add", axis=-1)]}, same={"reduction": ["none"]})
    yield Row("ScatterElements", {"data": floats(3, 3, 3), "indices": np.array([[[0, 2, 1]]]),
                                  "updates": np.array([[[3, -3, 0.5]]], np.float32)}, {
        "reduction": ["max", "min"]}, versions=range(18, 1000))
    scattered = {"data": floats(4, 3), "indices": np.array([[0], [2], [0]]), "updates": floats(3, 3)}
    yield Row("ScatterND", scattered, {"reduction": ["add", "mul"]}, same={"reduction": ["none"]})
    yield Row("ScatterND", scattered, {"reduction": ["max", "min"]}, versions=range(18, 1000))
    yield Row("Shape", {"data": X}, {"start": [1, 2, -1, -3, 9], "end": [
        1, 3, -1, -9, combined("end", -1, start=1)]})
    yield Row("Slice", {"data": X, "starts": ints(1, 0), "ends": ints(2, 2)}, {
        "axes": [ints(1, 3), ints(-1, 2), ints(-1, -2)],
        "starts": [ints(0, 1), ints(-1, -2), combined("starts", ints(-9, 1), ends=ints(9, 9))],
        "ends": [ints(9, 9), ints(-1, 1), ints(2**31 - 1, 2**31 - 1)]})
    yield Row("Slice", {"data": X, "starts": ints(1, 0), "ends": ints(9, 9)}, {
        "steps": [combined("steps", ints(2, 3), axes=ints(2, 3)),
                  combined("steps", ints(-1, -2), axes=ints(2, 3), starts=ints(-1, 9),
                           ends=ints(-9, -9)),
                  combined("steps", ints(-(2**63), 1), axes=ints(3, 0), starts=ints(3, 0))]},
        versions=range(10, 1000))
    yield Row("Split", {"input": floats(6, 6, 6)}, {"axis": [1, 2, -1, -2]}, outputs=2,
              versions=range(1, 18))
    yield Row("Split", {"input": floats(6, 6, 6)}, {
        "split": [ints(2, 4), combined("split", ints(1, 5), axis=-1)]}, outputs=2)
    # The number of outputs has the same effect.
    yield Row("Split", {"input": floats(6, 7, 6)}, {"axis": [
        combined("axis", 1, num_outputs=2), combined("axis", -1, num_outputs=2)]}, outputs=2,
        same={"num_outputs": [2]}, versions=range(18, 1000))
    yield Row("Squeeze", {"data": floats(1, 3, 1, 5, 1)}, {
        "axes": [ints(0), ints(-1, 2), ints(2, 0)]}, same={"axes": [ints(0, 2, 4)]})
    yield Row("Unsqueeze", {"data": floats(3, 4)}, {
        "axes": [ints(0), ints(1, 3), ints(-1, 0), ints(-2)]}, {})
    for k in (2, 3):
        yield Row("TopK", {"X": floats(4, 4, 4), "K": ints(k)}, {
            "axis": [0, 1, -2, combined("axis", 0, largest=0)],
            "largest": [0, combined("largest", 0, axis=1)], "K": [ints(1), ints(4)]}, outputs=2,
            same={"axis": [2], "sorted": [1]})
    yield Row("Transpose", {"data": X}, {"perm": [[0, 1, 3, 2], [1, 0, 2, 3], [2, 3, 0, 1],
                                                  [0, 2, 3, 1], [0, 3, 1, 2]]},
              same={"perm": [[3, 2, 1, 0]]})
    yield Row("Trilu", {"input": floats(2, 4, 5)}, {
        "upper": [0, combined("upper", 0, k=np.array(-1))],
        "k": [np.array(1), np.array(-2), np.array(9), combined("k", np.array(1), upper=0)]})


def resize_rows():
    image = floats(1, 2, 5, 6)
    larger = np.array([1, 1, 1.7, 2.3], np.float32)
    smaller = np.array([1, 1, 0.6, 0.51], np.float32)
    none = np.zeros(0, np.float32)
    coordinates = ["align_corners", "asymmetric", "pytorch_half_pixel"]
    for scales in (larger, smaller):
        yield Row("Resize", {"X": image, "scales": scales}, {
            "mode": ["linear"]}, versions=range(10, 11))
        start = {"X": image, "roi": none, "scales": scales}
        modes = ("nearest", "linear", "cubic")
        yield Row("Resize", start, {
            "mode": ["linear", "cubic"],
            "coordinate_transformation_mode": [
                combined("coordinate_transformation_mode", name, mode=mode)
                for name in coordinates for mode in modes
                if name != "pytorch_half_pixel"],
            "scales": [np.array([1, 1, 2, 3], np.float32)],
            "nearest_mode": ["floor", "ceil"] + [
                combined("nearest_mode", "round_prefer_ceil",
                         coordinate_transformation_mode="asymmetric", scales=np.array(
                             [1, 1, 2, 2], np.float32))],
            "cubic_coeff_a": [combined("cubic_coeff_a", -0.5, mode="cubic")],
            "exclude_outside": [combined("exclude_outside", 1, mode="cubic")],
        }, versions=range(11, 1000), same={
            "mode": ["nearest"], "coordinate_transformation_mode": ["half_pixel"],
            "nearest_mode": ["round_prefer_floor"]})
        yield Row("Resize", start, {
            "antialias": [combined("antialias", 1, mode=mode) for mode in ("linear", "cubic")]
        }, versions=range(18, 1000) if scales is smaller else range(0))
        yield Row("Resize", {"X": image, "roi": ints(0, 0, 0, 0, 1, 1, 1, 1).astype(np.float32) * (
            np.array([0, 0, 0, 0, 1, 1, 0.7, 0.8], np.float32)) + np.array(
            [0, 0, 0.2, 0.3, 0, 0, 0, 0], np.float32), "scales": scales}, {
            "coordinate_transformation_mode": [
                combined("coordinate_transformation_mode", "tf_crop_and_resize", mode=mode)
                for mode in ("nearest", "linear", "cubic")],
            "roi": [combined("roi", np.array([0, 0, -0.5, 0, 1, 1, 1.5, 0.9], np.float32),
                             mode=mode, coordinate_transformation_mode="tf_crop_and_resize")
                    for mode in ("linear", "nearest")],
            "extrapolation_value": [combined(
                "extrapolation_value", 9.0, mode=mode, roi=np.array(
                    [0, 0, -0.5, 0, 1, 1, 1.5, 0.9], np.float32),
                coordinate_transformation_mode="tf_crop_and_resize")
                for mode in ("linear", "nearest", "cubic")]}, versions=range(11, 1000))
    sizes = ints(1, 2, 7, 13)
    yield Row("Resize", {"X": image, "roi": none, "scales": none, "sizes": sizes}, {
        "mode": ["linear", "cubic"],
        "coordinate_transformation_mode": [combined(
            "coordinate_transformation_mode", name, mode="linear") for name in coordinates[:2]],
        "sizes": [ints(1, 2, 3, 4)]}, versions=range(11, 1000))
    one = ints(1, 2, 1, 1)
    yield Row("Resize", {"X": image, "roi": none, "scales": none, "sizes": one}, {
        "coordinate_transformation_mode": [combined(
            "coordinate_transformation_mode", "pytorch_half_pixel", mode="linear")]},
        versions=range(11, 1000))
    yield Row("Resize", {"X": image, "scales": np.array([1.7, 0.6], np.float32)}, {
        "axes": [[2, 3], [3, 2], [-1, -2], combined("axes", [2, 3], mode="linear")]},
        versions=range(18, 1000))
    yield Row("Resize", {"X": image, "sizes": ints(7, 13)}, {
        "keep_aspect_ratio_policy": [
            combined("keep_aspect_ratio_policy", policy, axes=[2, 3], mode=mode)
            for policy in ("not_larger", "not_smaller") for mode in ("nearest", "linear")],
        "axes": [[2, 3], [3, 2]]}, {}, versions=range(18, 1000))
    yield Row("Resize", {"X": image, "scales": np.array([1, 1, 1.7, 0.6], np.float32)}, {
        "coordinate_transformation_mode": [combined(
            "coordinate_transformation_mode", "half_pixel_symmetric", mode=mode)
            for mode in ("linear", "nearest", "cubic")]}, versions=range(19, 1000))
    yield Row("Upsample", {"X": image, "scales": np.array([1, 1, 2, 3], np.float32)},
              {"mode": ["linear"], "scales": [np.array([1, 1, 3, 2], np.float32)]},
              versions=range(7, 10))
    yield Row("Upsample", {"X": image}, {
        "mode": ["bilinear"], "height_scale": [3.0], "width_scale": [2.0]},
        {"height_scale": 2.0, "width_scale": 3.0}, versions=range(1, 7))


def product_rows():
    a, square = floats(3, 3), floats(3, 3)
    yield Row("Gemm", {"A": a, "B": square}, {
        "C": [floats(3, 3), floats(3), floats(3, 1)],
        "alpha": [0.5, -2.0], "beta": [combined("beta", 0.5, C=floats(3)), combined(
            "beta", -1.0, C=floats(3, 3))],
        "transA": [1, combined("transA", 1, transB=1)], "transB": [1]}, versions=range(11, 1000))
    yield Row("Gemm", {"A": a, "B": square, "C": floats(3, 3)}, {
        "alpha": [0.5], "beta": [0.5], "transA": [1], "transB": [1]}, versions=range(1, 11))
    yield Row("Gemm", {"A": a, "B": square, "C": floats(3)}, {"broadcast": [1]},
              versions=range(6, 7))
    yield Row("Einsum", {"Inputs": [floats(3, 3), floats(3, 3)]}, {
        "equation": ["ij,jk->ik", "ij,kj->ik", "ij,ij->i", "ij,jk", "ij,ij->", "ij,jk->ki"]})
    x, y = np.array([-7, 7, -7, 7, 5, -5], np.int32), np.array([3, 3, -3, -3, 2, 2], np.int32)
    yield Row("Mod", {"A": x, "B": y}, {"fmod": [1]})
    yield Row("Mod", {"A": x.astype(np.int64), "B": y.astype(np.int64)}, {"fmod": [1]})
    yield Row("Mod", {"A": x.astype(np.float32) / 2, "B": y.astype(np.float32)}, {"fmod": [1]})
    for dtype in (np.uint8, np.uint32, np.uint64):
        yield Row("BitShift", {"X": ints(1, 200, 77, dtype=dtype), "Y": ints(3, 1, 2, dtype=dtype)},
                  {"direction": ["LEFT", "RIGHT"]})
    numbers = np.array([-2.7, -0.5, 0, 0.5, 1, 1.5, 3.3, 100], np.float32)
    yield Row("Cast", {"input": numbers}, {"to": [1, 10, 11, 16, 6, 7, 3, 5, 9]},
              same={})
    yield Row("Cast", {"input": np.abs(numbers)}, {"to": [2, 4, 12, 13, 9]})
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less", "Equal"):
        left, right = np.abs(floats(3, 3, 3)) + 1, np.abs(floats(3)) + 1
        if op == "Equal":
            left, right = np.round(left).astype(np.int32), np.round(right).astype(np.int32)
        yield Row(op, {"A": left, "B": right}, {
            "broadcast": [1], "axis": [combined("axis", 0, broadcast=1),
                                       combined("axis", 1, broadcast=1)]},
            same={"axis": [combined("axis", 2, broadcast=1)]}, versions=range(1, 7))
    for op in ("And", "Or", "Xor"):
        left, right = floats(3, 3, 3) > 0, np.array([True, False, True])
        yield Row(op, {"A": left, "B": right}, {
            "broadcast": [1], "axis": [combined("axis", 0, broadcast=1),
                                       combined("axis", 1, broadcast=1)]}, versions=range(1, 7))


def creation_rows():
    yield Row("ConstantOfShape", {"input": ints(2, 3)},
              {"value": [np.array([5], np.int32), np.array([0.5], np.float32),
                         np.array([1], bool)]})
    values = {"value_float": [2.5], "value_floats": [[1.5, 2.5]], "value_int": [3],
              "value_ints": [[3, 4]]}
    yield Row("Constant", {}, {"value": [floats(2, 2), ints(3)]})
    yield Row("Constant", {}, values, versions=range(12, 1000))
    yield Row("Range", {"start": np.float32(1), "limit": np.float32(7), "delta": np.float32(1.5)},
              {}, same={"stash_type": [1]}, versions=range(27, 1000))
    yield Row("Dropout", {"data": X}, {}, same={"ratio": [0.3], "seed": [3], "is_test": [1]},
              versions=range(6, 12))
    yield Row("Dropout", {"data": X}, {}, outputs=2, same={
        "ratio": [np.float32(0.3)], "seed": [3], "training_mode": [combined(
            "training_mode", np.array(False), ratio=np.float32(0.3))]}, versions=range(12, 1000))


def all_rows():
    for rows in (pool_rows, convolution_rows, recurrence_rows, reduction_rows, normalization_rows,
                 activation_rows, movement_rows, resize_rows, product_rows, creation_rows):
        yield from rows()


def rows_by_op():
    rows = {}
    for row in all_rows():
        rows.setdefault(row.op, []).append(row)
    return rows
