"""Networks for images of any height and width: convolutions, pooling, upsampling, windows."""

import numpy as np
from onnx import TensorProto

from open_layers import (
    attention,
    finish,
    ints,
    list_of,
    normalized,
    number,
    places_of,
    shape_part,
    silu,
)
from self_made_models import Network


def sides_of(net, x):
    """The height and the width, a list of two numbers."""
    return net.node("Slice", net.node("Shape", x), ints(net, 2), ints(net, 4))


def unit(net, x, inputs, outputs, **attributes):
    """Convolution of 3x3, batch normalisation, Relu."""
    x = net.convolution(x, inputs, outputs, 3, pads=[1] * 4, bias=False, **attributes)
    return net.node("Relu", net.batch_normalization(x, outputs))


def classifier():
    """Convolutions of any height and width, of a batch of any size."""
    net = Network("classifier", 17)
    x = unit(net, net.input("image", ["batch", 3, "height", "width"]), 3, 8, strides=[2, 2])
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    shortcut = net.convolution(x, 8, 16, 1)
    x = net.node("Relu", net.convolution(x, 8, 16, 3, pads=[1] * 4))
    x = net.convolution(x, 16, 16, 3, group=16, pads=[1] * 4)
    x = net.node("Relu", net.node("Add", x, shortcut))
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    net.output(net.node("Softmax", net.linear(x, 16, 5)))
    return finish(net), {"batch": (1, 4), "height": (1, 70), "width": (1, 70)}


def separable():
    """Depthwise convolutions between pointwise ones, and channels that are scaled by their mean."""
    net = Network("separable", 18)
    x = net.input("image", ["batch", 3, "height", "width"])
    x = net.node("HardSwish", net.convolution(x, 3, 16, 3, pads=[1] * 4, strides=[2, 2]))
    inner = net.node("HardSwish", net.convolution(x, 16, 32, 1))
    inner = net.node("HardSwish", net.convolution(inner, 32, 32, 3, group=32, pads=[1] * 4))
    scale = net.node("Relu", net.convolution(net.node("GlobalAveragePool", inner), 32, 8, 1))
    scale = net.node("HardSigmoid", net.convolution(scale, 8, 32, 1))
    x = net.node("Add", x, net.convolution(net.node("Mul", inner, scale), 32, 16, 1))
    x = net.convolution(x, 16, 16, 5, group=16, pads=[2] * 4, strides=[2, 2])
    x = net.node("Clip", net.convolution(x, 16, 24, 1), number(net, 0), number(net, 6))
    net.output(x)
    net.output(net.linear(net.node("ReduceMean", x, ints(net, 2, 3), keepdims=0), 24, 5))
    return finish(net), {"batch": (1, 3), "height": (1, 60), "width": (1, 60)}


def detector():
    """Features of two scales, joined after an upsampling to the size of the larger ones."""
    net = Network("detector", 17)
    x = net.input("image", [1, 3, "height", "width"])
    large = net.node("LeakyRelu", net.convolution(x, 3, 8, 3, pads=[1] * 4), alpha=0.1)
    small = net.node("Sigmoid", net.convolution(large, 8, 8, 3, pads=[1] * 4, strides=[2, 2]))
    whole = net.node("Concat", ints(net, 1, 8), sides_of(net, large), axis=0)
    small = net.node("Resize", small, "", "", whole, mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = net.convolution(net.node("Concat", small, large, axis=1), 16, 6, 1)
    boxes = net.node("Reshape", x, ints(net, 1, 6, -1))
    net.output(net.node("Transpose", boxes, perm=[0, 2, 1]))
    return finish(net), {"height": (1, 48), "width": (1, 48)}


def segmenter():
    net = Network("segmenter", 17)
    x = net.input("image", [1, 4, "height", 20])
    skip = net.node("HardSwish", net.convolution(x, 4, 8, 3, pads=[1] * 4))
    x = net.node("InstanceNormalization", skip, net.positive(8), net.normal(8))
    x = net.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("ConvTranspose", x, net.normal(8, 8, 2, 2, deviation=0.2), strides=[2, 2])
    # An odd height loses its last row.
    x = net.node("Pad", x, ints(net, 0, 0, 1, 1, 0, 0, 1, 1))
    net.output(net.convolution(x, 8, 2, 3))
    return finish(net), {"height": (4, 60)}


def u_net():
    """Two levels down and up again. What is upsampled is padded to the size of its skip connection,
    or resized to it."""
    net = Network("u_net", 18)
    x = net.input("image", ["batch", 3, "height", "width"])
    large = unit(net, x, 3, 8)
    x = net.node("MaxPool", large, kernel_shape=[2, 2], strides=[2, 2])
    middle = unit(net, x, 8, 16)
    x = net.node("MaxPool", middle, kernel_shape=[2, 2], strides=[2, 2])
    x = unit(net, unit(net, x, 16, 16), 16, 16)
    whole = net.node("Concat", shape_part(net, x, 0), ints(net, 16), sides_of(net, middle), axis=0)
    x = net.node("Resize", x, "", "", whole, mode="linear",
                 coordinate_transformation_mode="align_corners")
    x = unit(net, net.node("Concat", middle, x, axis=1), 32, 16)
    x = net.node("ConvTranspose", x, net.normal(16, 8, 2, 2, deviation=0.2), net.normal(8),
                 strides=[2, 2])
    missing = net.node("Sub", sides_of(net, large), sides_of(net, x))
    x = net.node("Pad", x, net.node("Concat", ints(net, 0, 0, 0, 0, 0, 0), missing, axis=0))
    x = unit(net, net.node("Concat", large, x, axis=1), 16, 8)
    net.output(net.node("Sigmoid", net.convolution(x, 8, 2, 1)))
    return finish(net), {"batch": (1, 3), "height": (4, 45), "width": (4, 45)}


def box_selector():
    """Boxes of two scales with their places in the image, of which the best are selected.

    The rank of a box comes from an input by MaxPool, so rounding exchanges no boxes.
    """
    net = Network("box_selector", 18)
    image = net.input("image", [1, 4, "height", "width"])
    x = net.node("Relu", net.convolution(image, 4, 8, 3, pads=[1] * 4, strides=[2, 2]))
    boxes, classes, ranks = [], [], []
    for scale, (stride, inputs, outputs) in enumerate([(4, 8, 16), (8, 16, 16)]):
        x = silu(net, net.convolution(x, inputs, outputs, 3, pads=[1] * 4, strides=[2, 2]))
        height, width = shape_part(net, x, 2), shape_part(net, x, 3)
        rows = net.node("Expand", net.node("Unsqueeze", places_of(net, x, 2), ints(net, 1)),
                        list_of(net, height, width))
        columns = net.node("Expand", net.node("Unsqueeze", places_of(net, x, 3), ints(net, 0)),
                           list_of(net, height, width))
        grid = net.node("Concat", *(
            net.node("Reshape", net.node("Cast", one, to=TensorProto.FLOAT), ints(net, 1, 1, -1))
            for one in (columns, rows)), axis=1)
        head = net.node("Reshape", net.convolution(x, outputs, 7, 1), ints(net, 1, 7, -1))
        center, sides, kinds = net.node("Split", head, ints(net, 2, 2, 3), outputs=3, axis=1)
        center = net.node("Mul", net.node("Add", net.node("Sigmoid", center), grid),
                          number(net, stride))
        boxes.append(net.node("Concat", center, net.node("Exp", sides), axis=1))
        classes.append(kinds)
        channel = net.node("Slice", image, ints(net, scale), ints(net, scale + 1), ints(net, 1))
        rank = net.node("MaxPool", channel, kernel_shape=[stride, stride], strides=[stride, stride],
                        ceil_mode=1)
        ranks.append(net.node("Reshape", rank, ints(net, 1, -1)))
    boxes = net.node("Transpose", net.node("Concat", *boxes, axis=2), perm=[0, 2, 1])
    classes = net.node("Transpose", net.node("Concat", *classes, axis=2), perm=[0, 2, 1])
    ranks = net.node("Concat", *ranks, axis=1)
    count = net.node("Min", shape_part(net, boxes, 1), ints(net, 12))
    _, best = net.node("TopK", ranks, count, outputs=2, axis=1)
    net.output(net.node("GatherElements", boxes, net.node(
        "Expand", net.node("Unsqueeze", best, ints(net, 2)), ints(net, 1, 1, 4)), axis=1))
    net.output(net.node("Gather", net.node("Softmax", classes),
                        net.node("Squeeze", best, ints(net, 0)), axis=1))
    net.output(best, TensorProto.INT64)
    return finish(net), {"height": (8, 64), "width": (8, 64)}


def pools():
    """Windows whose padding, or whose last part, depends on the size."""
    net = Network("pools", 19)
    x = net.input("image", ["batch", 5, "height", "width"])
    net.output(net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1))
    net.output(net.node("MaxPool", x, kernel_shape=[4, 3], strides=[3, 1], auto_pad="SAME_LOWER"))
    net.output(net.node("MaxPool", x, kernel_shape=[2, 2], dilations=[2, 3], pads=[1] * 4))
    net.output(net.node("AveragePool", x, kernel_shape=[3, 2], strides=[2, 2],
                        auto_pad="SAME_UPPER"))
    net.output(net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1))
    net.output(net.node("AveragePool", x, kernel_shape=[4, 3], strides=[2, 1], ceil_mode=1))
    net.output(net.node("GlobalMaxPool", x))
    return finish(net), {"batch": (1, 3), "height": (4, 40), "width": (4, 40)}


def same_sizes():
    """Convolutions with padding that depends on the size."""
    net = Network("same_sizes", 17)
    x = net.input("image", [2, 4, "height", "width"])
    upper = net.node("Relu", net.convolution(x, 4, 16, 3, auto_pad="SAME_UPPER", strides=[2, 2]))
    lower = net.node("Tanh", net.convolution(x, 4, 16, 4, auto_pad="SAME_LOWER", strides=[2, 2]))
    x = net.node("Add", upper, lower)
    x = net.convolution(x, 16, 16, 3, group=16, auto_pad="SAME_UPPER", strides=[3, 2])
    net.output(x)
    net.output(net.node("ConvTranspose", x, net.normal(16, 3, 3, 3, deviation=0.2),
                        auto_pad="SAME_UPPER", strides=[3, 2]))
    return finish(net), {"height": (1, 50), "width": (1, 50)}


def super_resolution():
    """Channels that become pixels, beside cubic interpolation."""
    net = Network("super_resolution", 18)
    image = net.input("image", ["batch", 1, "height", "width"])
    x = net.node("Pad", image, ints(net, 0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
    x = net.node("PRelu", net.convolution(x, 1, 8, 3), net.positive(8, 1, 1))
    x = net.convolution(x, 8, 4, 3, pads=[1] * 4)
    x = net.node("DepthToSpace", x, blocksize=2, mode="CRD")
    smooth = net.node("Resize", image, "", net.constant(np.array([1, 1, 2, 2], np.float32)),
                      mode="cubic")
    x = net.node("Add", x, smooth)
    net.output(x)
    net.output(net.node("SpaceToDepth", x, blocksize=2))
    return finish(net), {"batch": (1, 3), "height": (2, 40), "width": (2, 40)}


def resizer():
    """Scales that few sizes can be multiplied by without rounding."""
    net = Network("resizer", 19)
    x = net.input("image", [1, 3, "height", "width"])
    scales = net.constant(np.array([1, 1, 1.25, 0.75], np.float32))
    for attributes in ({"mode": "linear"}, {"mode": "nearest"},
                       {"mode": "cubic", "coordinate_transformation_mode": "asymmetric"},
                       {"mode": "linear", "antialias": 1},
                       {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}):
        net.output(net.node("Resize", x, "", scales, **attributes))
    # ONNX Runtime interpolates no axis that keeps its size, as heights below 4 do, with antialias.
    return finish(net), {"height": (4, 45), "width": (2, 45)}


def windows():
    """Attention within windows of 4x4, which padding makes whole; the image is rolled before."""
    net = Network("windows", 18)
    width, side = 16, 4
    image = net.input("image", ["batch", width, "height", "width"])
    batch = shape_part(net, image, 0)
    sides = sides_of(net, image)
    missing = net.node("Mod", net.node("Neg", sides), ints(net, side))
    x = net.node("Pad", image, net.node("Concat", ints(net, 0, 0, 0, 0, 0, 0), missing, axis=0))
    rolled = [net.node("Slice", x, ints(net, start), ints(net, end), ints(net, 3))
              for start, end in ((2, 2**62), (0, 2))]
    x = net.node("Concat", *rolled, axis=3)
    rows, columns = (net.node("Div", shape_part(net, x, axis), ints(net, side)) for axis in (2, 3))
    x = net.node("Reshape", x, list_of(net, batch, width, rows, side, columns, side))
    x = net.node("Transpose", x, perm=[0, 2, 4, 3, 5, 1])
    x = net.node("Reshape", x, ints(net, -1, side * side, width))
    x = normalized(net, net.node("Add", x, attention(net, x, width, 2)), width)
    x = net.node("Reshape", x, list_of(net, batch, rows, columns, side, side, width))
    x = net.node("Transpose", x, perm=[0, 5, 1, 3, 2, 4])
    whole = net.node("Mul", net.node("Concat", rows, columns, axis=0), ints(net, side))
    x = net.node("Reshape", x, net.node("Concat", batch, ints(net, width), whole, axis=0))
    net.output(net.node("Slice", x, ints(net, 0, 0), sides, ints(net, 2, 3)))
    return finish(net), {"batch": (1, 3), "height": (1, 30), "width": (1, 30)}


def patches():
    """A transformer over patches, whose learned positions are resized to their number."""
    net = Network("patches", 18)
    image = net.input("image", ["batch", 3, "height", "width"])
    x = net.convolution(image, 3, 16, 4, strides=[4, 4])
    whole = net.node("Concat", ints(net, 1, 16), sides_of(net, x), axis=0)
    positions = net.node("Resize", net.normal(1, 16, 7, 7), "", "", whole, mode="cubic",
                         cubic_coeff_a=-0.75)
    x = net.node("Reshape", net.node("Add", x, positions), ints(net, 0, 16, -1))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    first = net.node("Expand", net.normal(1, 1, 16), list_of(net, shape_part(net, x, 0), 1, 16))
    x = net.node("Concat", first, x, axis=1)
    x = normalized(net, net.node("Add", x, attention(net, x, 16, 2)), 16)
    net.output(net.linear(net.node("Gather", x, net.constant(np.int64(0)), axis=1), 16, 5))
    return finish(net), {"batch": (1, 3), "height": (4, 50), "width": (4, 50)}


def diffusion_block():
    """Group normalisation as exporters write it and as a node, and an embedded time, which is added
    to each pixel."""
    net = Network("diffusion_block", 21)
    x = net.input("image", ["batch", 16, "height", "width"])
    time = net.input("time", ["batch", 8])
    inner = net.node("Reshape", x, ints(net, 0, 4, -1))
    inner = net.node("InstanceNormalization", inner, net.constant(np.ones(4, np.float32)),
                     net.constant(np.zeros(4, np.float32)))
    inner = net.node("Reshape", inner, net.node("Shape", x))
    inner = net.node("Add", net.node("Mul", inner, net.positive(16, 1, 1)), net.normal(16, 1, 1))
    inner = net.convolution(silu(net, inner), 16, 16, 3, pads=[1] * 4)
    time = net.linear(silu(net, time), 8, 16)
    inner = net.node("Add", inner, net.node("Unsqueeze", time, ints(net, 2, 3)))
    inner = net.node("GroupNormalization", inner, net.positive(16), net.normal(16), num_groups=4)
    x = net.node("Add", x, net.convolution(silu(net, inner), 16, 16, 3, pads=[1] * 4))
    # Attention over the pixels.
    pixels = net.node("Reshape", x, list_of(net, shape_part(net, x, 0), 16, -1))
    pixels = attention(net, net.node("Transpose", pixels, perm=[0, 2, 1]), 16, 2)
    pixels = net.node("Transpose", pixels, perm=[0, 2, 1])
    pixels = net.node("Reshape", pixels, net.node("Shape", x))
    net.output(net.node("Add", x, pixels))
    return finish(net), {"batch": (1, 3), "height": (1, 16), "width": (1, 16)}


def pixel_norms():
    """Normalisation over open axes: of each image, of each channel, and of each pixel."""
    net = Network("pixel_norms", 17)
    x = net.input("image", ["batch", 16, "height", "width"])
    mean = net.node("ReduceMean", x, axes=[1, 2, 3])
    centered = net.node("Sub", x, mean)
    variance = net.node("ReduceMean", net.node("Mul", centered, centered), axes=[1, 2, 3])
    deviation = net.node("Sqrt", net.node("Add", variance, number(net, 1e-5)))
    net.output(net.node("Div", centered, deviation))
    of_channel = net.node("Sub", x, net.node("ReduceMean", x, axes=[0, 2, 3]))
    variance = net.node("ReduceMean", net.node("Pow", of_channel, number(net, 2)), axes=[0, 2, 3])
    net.output(net.node("Mul", of_channel, net.node("Reciprocal", net.node("Sqrt", net.node(
        "Add", variance, number(net, 1e-5))))))
    net.output(net.node("Relu", net.node("InstanceNormalization", x, net.positive(16),
                                         net.normal(16))))
    last = normalized(net, net.node("Transpose", x, perm=[0, 2, 3, 1]), 16)
    net.output(net.node("Transpose", last, perm=[0, 3, 1, 2]))
    net.output(net.node("LRN", x, size=5))
    return finish(net), {"batch": (1, 3), "height": (2, 30), "width": (2, 30)}


IMAGE_MODELS = (classifier, separable, detector, segmenter, u_net, box_selector, pools, same_sizes,
                super_resolution, resizer, windows, patches, diffusion_block, pixel_norms)
