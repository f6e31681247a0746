"""Kernels of oneDNN that are wrong must not be chosen, even if nothing is measured."""

import numpy as np
import pytest
from small_models import model_bytes, node

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
