"""Detectors, and what moves or samples the elements of images."""

import numpy as np
from attribute_rows.row import Row, combined, ints

SOURCE = np.random.default_rng(71)


def floats(*shape):
    return np.round(SOURCE.standard_normal(shape) * 2, 2).astype(np.float32)


def one(number):
    return np.array([number], np.float32)


def detection_rows():
    corners = np.round(SOURCE.uniform(0, 6, (2, 12, 4)), 1).astype(np.float32)
    all_boxes = {"max_output_boxes_per_class": ints(12)}
    yield Row("NonMaxSuppression", {"boxes": corners, "scores": floats(2, 2, 12)}, {
        "max_output_boxes_per_class": [ints(3), ints(1), ints(12)],
        "iou_threshold": [combined("iou_threshold", one(number), **all_boxes)
                          for number in (0.2, 0.6, 1)],
        "score_threshold": [combined("score_threshold", one(number), **all_boxes)
                            for number in (-1, 0, 1.5)],
        "center_point_box": [combined("center_point_box", 1, **all_boxes),
                             combined("center_point_box", 1, iou_threshold=one(0.3), **all_boxes)]},
        same={"center_point_box": [combined("center_point_box", 0, **all_boxes)],
              "iou_threshold": [combined("iou_threshold", one(0), **all_boxes)],
              "max_output_boxes_per_class": [ints(0)]})
    features = floats(2, 3, 9, 8)
    regions = np.array([[0.5, 1, 6.5, 5], [2, 2.5, 3, 9], [-1.5, -2, 4, 3.5]], np.float32)
    yield Row("RoiAlign", {"X": features, "rois": regions, "batch_indices": ints(1, 0, 1)}, {
        "coordinate_transformation_mode": ["output_half_pixel"],
        "mode": ["max", combined("mode", "max", sampling_ratio=2)],
        "output_height": [3, combined("output_height", 2, output_width=4)],
        "output_width": [2, combined("output_width", 5, sampling_ratio=1)],
        "sampling_ratio": [1, 3, combined("sampling_ratio", 2, output_height=2, output_width=2)],
        "spatial_scale": [0.5, 1.25]},
        same={"mode": ["avg"], "coordinate_transformation_mode": ["half_pixel"]})
    yield Row("MaxRoiPool", {"X": features, "rois": np.concatenate(
        [np.array([[1], [0], [1]], np.float32), regions], axis=1)}, {
        "spatial_scale": [0.5, 1.25], "pooled_shape": [[2, 3], [4, 1], [1, 1]]},
        {"pooled_shape": [2, 2]}, same={"spatial_scale": [1.0]})


def sampling_rows():
    plane = floats(2, 3, 5, 4)
    grid = SOURCE.uniform(-1.6, 1.6, (2, 3, 6, 2)).astype(np.float32)
    cube = floats(1, 2, 3, 4, 5)
    places = SOURCE.uniform(-1.6, 1.6, (1, 2, 3, 4, 3)).astype(np.float32)
    # Of cubes, ONNX Runtime has no cubic interpolation, and onnx.reference moves positions to the
    # border.
    for x, positions, versions, linear, cubic, bordered in (
            (plane, grid, range(16, 20), "bilinear", "bicubic", "bicubic"),
            (plane, grid, range(20, 1000), "linear", "cubic", "cubic"),
            (cube, places, range(20, 1000), "linear", "cubic", "nearest")):
        yield Row("GridSample", {"X": x, "grid": positions}, {
            "align_corners": [1, combined("align_corners", 1, mode=cubic),
                              combined("align_corners", 1, padding_mode="reflection")],
            "mode": ["nearest", cubic, combined("mode", bordered, padding_mode="border"),
                     combined("mode", "nearest", padding_mode="reflection")],
            "padding_mode": ["border", "reflection",
                             combined("padding_mode", "reflection", mode=cubic),
                             combined("padding_mode", "border", mode="nearest")]},
            same={"mode": [linear], "padding_mode": ["zeros"]}, versions=versions)
    for axes, size in ((2, ints(2, 1, 3, 4)), (3, ints(2, 1, 2, 3, 4))):
        yield Row("AffineGrid", {"theta": floats(2, axes, axes + 1), "size": size},
                  {"align_corners": [1]}, same={"align_corners": [0]})


def movement_rows():
    yield Row("CenterCropPad", {"input_data": floats(3, 6, 5), "shape": ints(4, 4)},
              {"axes": [[0, 1], [2, 0], [-1, -2]]}, {"axes": [1, 2]})
    yield Row("Col2Im", {"input": floats(1, 12, 20), "image_shape": ints(5, 7),
                         "block_shape": ints(2, 3)}, {
        "strides": [combined("strides", [2, 1], input=floats(1, 12, 10)),
                    combined("strides", [1, 3], input=floats(2, 6, 8))],
        "pads": [combined("pads", [1, 0, 1, 2], input=floats(1, 12, 42)),
                 combined("pads", [0, 2, 1, 0], input=floats(1, 12, 35))],
        "dilations": [combined("dilations", [2, 1], input=floats(1, 12, 15)),
                      combined("dilations", [1, 3], input=floats(1, 12, 4))]},
        same={"strides": [[1, 1]], "pads": [[0] * 4], "dilations": [[1, 1]]})
    places = SOURCE.permutation(24)[:18].reshape(1, 2, 3, 3)
    yield Row("MaxUnpool", {"X": floats(1, 2, 3, 3), "I": places}, {
        "output_shape": [ints(1, 2, 5, 6), combined("output_shape", ints(1, 2, 7, 6),
                                                    strides=[2, 2])],
        "strides": [[2, 2], [1, 2]], "pads": [[0, 0, 1, 0], combined("pads", [1, 0, 1, 1],
                                                                     strides=[2, 2])],
        "kernel_shape": [[3, 2], [2, 3]]}, {"kernel_shape": [2, 2]},
        same={"strides": [[1, 1]], "pads": [[0] * 4]})


def deformation_rows():
    inputs = {"X": floats(1, 4, 7, 6), "W": floats(6, 4, 3, 3), "offset": floats(1, 18, 5, 4)}
    yield Row("DeformConv", inputs, {
        "B": [floats(6)], "mask": [floats(1, 9, 5, 4), combined(
            "mask", floats(1, 18, 5, 4), offset_group=2, offset=floats(1, 36, 5, 4))],
        "group": [combined("group", 2, W=floats(6, 2, 3, 3)),
                  combined("group", 2, W=floats(4, 2, 3, 3), offset_group=2,
                           offset=floats(1, 36, 5, 4))],
        "offset_group": [combined("offset_group", 2, offset=floats(1, 36, 5, 4)),
                         combined("offset_group", 4, offset=floats(1, 72, 5, 4))],
        "strides": [combined("strides", [2, 1], offset=floats(1, 18, 3, 4)),
                    combined("strides", [1, 3], offset=floats(1, 18, 5, 2))],
        "dilations": [combined("dilations", [1, 2], offset=floats(1, 18, 5, 2)),
                      combined("dilations", [3, 1], offset=floats(1, 18, 1, 4))],
        "pads": [combined("pads", [1, 0, 0, 1], offset=floats(1, 18, 6, 5)),
                 combined("pads", [0, 2, 1, 1], offset=floats(1, 18, 6, 7))]},
        same={"kernel_shape": [[3, 3]], "group": [1], "offset_group": [1], "strides": [[1, 1]],
              "dilations": [[1, 1]], "pads": [[0] * 4]})


FAMILIES = (detection_rows, sampling_rows, movement_rows, deformation_rows)
