"""Pools, convolutions, recurrent layers, reductions, normalisations."""

import numpy as np
from attribute_rows.row import CUBE, IMAGE, LINE, TIES, X, Row, combined, floats, ints


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


FAMILIES = (pool_rows, convolution_rows, recurrence_rows, reduction_rows, normalization_rows)
