"""Activations, and ops that move, choose or repeat elements."""

import numpy as np
from attribute_rows.row import X, Row, combined, floats, ints


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
    # Before version 11, an index below 0 is outside, which ONNX Runtime does not know.
    for last, versions in ((-1, range(11, 1000)), (5, range(1, 11))):
        yield Row("OneHot", {"indices": np.array([[0, 2, last], [1, 1, 4]]), "depth": np.array(3),
                             "values": np.array([2, 5], np.float32)}, {"axis": [0, 1, -2, -3]},
                  same={"axis": [2]}, versions=versions)
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


FAMILIES = (activation_rows, movement_rows, resize_rows)
