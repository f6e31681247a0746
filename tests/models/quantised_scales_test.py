"""Scales that are 0, negative, infinite, NaN, or so large that sums overflow: ONNX allows them. Groups
of native leave them to the nodes, so a network gives what its nodes give alone."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

SCALES = [0, -0.5, np.nan, np.inf, 1e-40, 3e38]
GRAPHS = {
    "product": [("MatMul", "a b", "p")],
    "convolution": [("Conv", "a b", "p")],
    "sum": [("Add", "a a2", "p")],
    "function": [("Sigmoid", "a", "p")],
}


def model(graph, scales):
    random = np.random.default_rng(5)
    is_conv = graph == "convolution"
    weights = random.integers(-128, 128, (5, 3, 3, 3) if is_conv else (9, 17)).astype(np.int8)
    constants = {"w": weights, "z0": np.uint8(100), "z1": np.int8(0), "z2": np.uint8(120)}
    constants |= {f"s{index}": np.float32(scale) for index, scale in enumerate(scales)}
    rows = [("DequantizeLinear", "x s0 z0", "a"), ("DequantizeLinear", "w s1 z1", "b"),
            ("DequantizeLinear", "x s1 z0", "a2"), *GRAPHS[graph], ("QuantizeLinear", "p s2 z2", "y")]
    shape = [1, 3, 8, 9] if is_conv else [7, 9]
    made = helper.make_graph(
        [helper.make_node(op, inputs.split(), [output]) for op, inputs, output in rows], "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    x = random.integers(0, 256, shape).astype(np.uint8)
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(made, ir_version=10, opset_imports=opsets).SerializeToString(), x


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("which", range(3))
def test_unusual_scales_mean_what_the_nodes_say(tessera, graph, which):
    for scale in SCALES:
        scales = [0.02, 0.01, 0.3]
        scales[which] = scale
        text, x = model(graph, scales)
        expected, found = (
            tessera.load(text).bind(backends=names, optimize=False).run({"x": x})[0]
            for names in (["reference"], ["native", "reference"]))
        distance = np.abs(expected.astype(int) - found.astype(int)).max()
        assert distance <= 1, f"scale {scale}: off by {distance}"
