#!/usr/bin/env python3
"""Creates the network of `make demo` and its input: squeezenet.onnx and picture.npy.

In the onnx package's copy of SqueezeNet, all elements of a weight are equal, which would hide most
mistakes. This program replaces them by seeded random weights. So the network does the same work as
the real one, but its classes have no meaning, and no names are printed."""

import argparse
import pathlib
import tempfile

import numpy
import onnx

SEED = 20240229


def make_weights(shape, generator):
    """He's initialisation, which keeps activations at one scale from layer to layer: "Delving Deep
    into Rectifiers", section 2.2. Biases (rank 1) are small."""
    values = generator.standard_normal(shape, dtype=numpy.float32)
    if len(shape) < 2:
        return values * numpy.float32(0.1)
    fan_in = int(numpy.prod(shape[1:]))
    return values * numpy.float32((2.0 / fan_in) ** 0.5)


def make_model():
    """SqueezeNet with seeded tensors in place of the ConstantOfShape nodes that make the equal
    weights."""
    light = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(light / "light_squeezenet.onnx")
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    generator = numpy.random.Generator(numpy.random.PCG64(SEED))
    nodes, added_inputs, replaced = [], [], set()
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = [int(dim) for dim in onnx.numpy_helper.to_array(tensors[node.input[0]])]
        weights = make_weights(shape, generator)
        graph.initializer.append(onnx.numpy_helper.from_array(weights, node.output[0]))
        # In this old format (IR version 3), every initializer must also be a graph input.
        added_inputs.append(onnx.helper.make_tensor_value_info(
            node.output[0], onnx.TensorProto.FLOAT, shape))
        replaced.add(node.input[0])
    kept = [tensor for tensor in graph.initializer if tensor.name not in replaced]
    inputs = [value for value in graph.input if value.name not in replaced] + added_inputs
    for field, values in (("node", nodes), ("initializer", kept), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    onnx.checker.check_model(model)
    return model


def make_picture():
    """224 x 224, RGB: a disc in front of a gradient with stripes; scaled as ImageNet networks
    expect it."""
    row, column = numpy.mgrid[0:224, 0:224].astype(numpy.float32) / 224
    red = row
    green = 0.5 + 0.5 * numpy.sin(40 * (row + column))
    blue = ((row - 0.5) ** 2 + (column - 0.4) ** 2 < 0.09).astype(numpy.float32)
    picture = numpy.stack([red, green, blue]).astype(numpy.float32)
    mean = numpy.array([0.485, 0.456, 0.406], numpy.float32).reshape(3, 1, 1)
    deviation = numpy.array([0.229, 0.224, 0.225], numpy.float32).reshape(3, 1, 1)
    return ((picture - mean) / deviation)[None]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: .venv/bin/python tools/demo_network.py build/demo",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="made where it is missing")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    # The files appear completely or not at all, and the network last: if it exists, so does the
    # image.
    with tempfile.TemporaryDirectory(dir=folder) as made:
        picture, model = pathlib.Path(made) / "picture.npy", pathlib.Path(made) / "squeezenet.onnx"
        numpy.save(picture, make_picture())
        onnx.save(make_model(), model)
        for path in (picture, model):
            path.replace(folder / path.name)


if __name__ == "__main__":
    main()
