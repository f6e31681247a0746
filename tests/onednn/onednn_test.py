"""Kernels of oneDNN that are wrong must not be chosen, even if nothing is measured."""

import numpy as np
import pytest
from small_models import model_bytes, node, normal

# With the pixels along each axis of its input.
FIRSTS = {"Relu": 1, "Sigmoid": 1, "Add": 1, "Mul": 1, "Div": 1, "GlobalAveragePool": 5}


@pytest.mark.parametrize("tails", [("Add", "Mul"), ("Mul", "Add"), ("Sub", "Relu", "Add")])
@pytest.mark.parametrize("first", FIRSTS)
def test_elements_of_channels_fit_images_of_one_pixel(tessera, needs_onednn, first, tails):
    """findings/onednn_one_pixel.sh: with several images of one pixel, oneDNN 3.2 takes a
    post-operation's elements from wrong places."""
    random = np.random.default_rng(1)
    side = FIRSTS[first]
    for images, channels, rank in ((4, 16, 4), (33, 23, 3), (2, 7, 4), (5, 64, 5), (1, 23, 4)):
        pixels = (rank - 2) * (1,)
        shape = (images, channels, *(rank - 2) * (side,))
        constant = random.standard_normal((1, channels, *pixels)).astype(np.float32) + 2
        nodes, value = [], "x"
        for index, operator in enumerate((first, *tails)):
            has_operand = operator in ("Add", "Mul", "Sub", "Div")
            nodes.append(node(operator, [value, "k"] if has_operand else [value], f"v{index}"))
            value = f"v{index}"
        model = tessera.load(model_bytes(nodes, {"x": shape}, {value: (images, channels, *pixels)},
                                         {"k": constant}))
        x = random.standard_normal(shape).astype(np.float32)
        expected = model.bind(backends=["reference"]).run({"x": x})[0].copy()
        for backends in (["onednn", "reference"], None):
            chosen = {} if backends is None else {"backends": backends}
            found = model.bind(**chosen).run({"x": x})[0]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("alpha, bias", [(1e30, 1.5), (1e-4, 1e30), (0.5, 2.0)])
@pytest.mark.parametrize("backend", ["onednn", "native", "openvino"])
def test_lrn_of_large_factors_keeps_its_small_results(tessera, need_backend, backend, alpha, bias):
    """oneDNN computes the power 0.75 by the power 1.5, which leaves float32."""
    need_backend(backend)
    shape = (2, 7, 3, 4)
    model = tessera.load(model_bytes([node("LRN", size=5, alpha=alpha, bias=bias)], {"x": shape},
                                     {"y": shape}, opset=13))
    x = normal(np.random.default_rng(1), *shape)
    expected = model.bind(backends=["reference"]).run({"x": x})[0].copy()
    found = model.bind(backends=[backend, "reference"]).run({"x": x})[0]
    assert np.all(expected != 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
