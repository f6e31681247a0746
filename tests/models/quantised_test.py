"""Quantised models, as tools make them, beside ONNX Runtime: right to the quantum, but where a sum
of float32 numbers between a DequantizeLinear and a QuantizeLinear lies at the border of two."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from small_models import model_of, node, normal, save_model, tensor_type

SHAPE = (2, 3, 16, 16)


class Samples(CalibrationDataReader):
    def __init__(self):
        random = np.random.default_rng(3)
        self._samples = iter([{"x": normal(random, *SHAPE)} for _ in range(4)])

    def get_next(self):
        return next(self._samples, None)


def network(path):
    """Convolutions, one of them depthwise, a pooling, and a product."""
    random = np.random.default_rng(1)
    weights = {"w1": normal(random, 8, 3, 3, 3) / 5, "b1": normal(random, 8),
               "w2": normal(random, 8, 1, 3, 3) / 3, "w3": normal(random, 8, 10) / 3}
    nodes = [node("Conv", "x w1 b1", "c1", "first", pads=[1, 1, 1, 1]), node("Relu", "c1", "r1"),
             node("Conv", "r1 w2", "c2", "depthwise", group=8, strides=[2, 2]),
             node("Relu", "c2", "r2"), node("GlobalAveragePool", "r2", "p"),
             node("Flatten", "p", "f"), node("MatMul", "f w3", "y", "product")]
    return save_model(path, nodes, {"x": list(SHAPE)}, {"y": [2, 10]}, weights, opset=17)


def quantised(folder, kind):
    source, target = network(folder / "float.onnx"), folder / "quantised.onnx"
    if kind == "dynamic":
        quantize_dynamic(source, target, weight_type=QuantType.QUInt8)
    else:
        form = QuantFormat.QOperator if kind == "operators" else QuantFormat.QDQ
        quantize_static(source, target, Samples(), quant_format=form,
                        per_channel=kind == "per channel", weight_type=QuantType.QInt8,
                        activation_type=QuantType.QUInt8,
                        op_types_to_quantize=["Conv", "MatMul"])
    return target


@pytest.mark.parametrize("kind", ["dynamic", "static", "per channel", "operators"])
@pytest.mark.filterwarnings("ignore")
def test_results_are_those_of_onnx_runtime(tessera, tmp_path, kind):
    file = quantised(tmp_path, kind)
    ops = {each.op_type for each in onnx.load(file).graph.node}
    assert ops & {"QuantizeLinear", "DynamicQuantizeLinear"}
    options = onnxruntime.SessionOptions()
    # Fused, its kernels round at other places.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    executor = tessera.load(file).bind({"x": SHAPE}, optimize=False)
    for seed in range(5):
        x = normal(np.random.default_rng(seed), *SHAPE)
        (mine,), (theirs,) = executor.run({"x": x}), session.run(None, {"x": x})
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, atol=scale / 100, rtol=0)
        assert np.mean(np.abs(mine - theirs)) < scale / 500


def test_convolutions_of_bytes_are_exact(tessera):
    random = np.random.default_rng(5)
    byte = tensor_type(TensorProto.UINT8, [1, 4, 9, 9])
    weights = {"xs": np.float32(0.02), "xz": np.uint8(117),
               "w": random.integers(-128, 128, (6, 2, 3, 3), np.int8),
               "ws": random.uniform(0.01, 0.05, 6).astype(np.float32), "wz": np.zeros(6, np.int8),
               "ys": np.float32(0.3), "yz": np.uint8(90),
               "b": random.integers(-1000, 1000, 6, np.int32)}
    model = model_of([node("QLinearConv", "x xs xz w ws wz ys yz b", "y", group=2,
                           strides=[2, 1], pads=[1, 0, 1, 2])],
                     {"x": byte}, {"y": tensor_type(TensorProto.UINT8, None)}, weights, opset=17)
    # ONNX Runtime's sums of uint8 times int8 saturate on processors without VNNI.
    session = ReferenceEvaluator(model)
    executor = tessera.load(model.SerializeToString()).bind(optimize=False)
    for _ in range(10):
        x = random.integers(0, 256, (1, 4, 9, 9), np.uint8)
        (mine,), (theirs,) = executor.run({"x": x}), session.run(None, {"x": x})
        np.testing.assert_array_equal(mine, theirs)


def test_a_product_of_bytes_is_measured_and_stays_exact(tessera, tmp_path):
    random = np.random.default_rng(7)
    model = model_of([node("MatMulInteger", "a b az", "y")],
                     {"a": tensor_type(TensorProto.UINT8, [33, 65]),
                      "b": tensor_type(TensorProto.INT8, [65, 17])},
                     {"y": tensor_type(TensorProto.INT32, None)}, {"az": np.uint8(7)}, opset=17)
    executor = tessera.load(model.SerializeToString()).bind(
        optimize=True, cache_dir=str(tmp_path))
    a = random.integers(0, 256, (33, 65), np.uint8)
    b = random.integers(-128, 128, (65, 17), np.int8)
    y, = executor.run({"a": a, "b": b})
    np.testing.assert_array_equal(y, (a.astype(np.int32) - 7) @ b.astype(np.int32))


def mixed_network(path):
    """Ops for which ONNX Runtime's quantiser has operators of com.microsoft, and an LSTM."""
    random = np.random.default_rng(2)
    weights = {"w1": normal(random, 8, 3, 3, 3) / 5, "w2": normal(random, 8, 8, 1, 1) / 3,
               "wg": normal(random, 16, 10) / 4, "bg": normal(random, 10),
               "sizes": np.array([2, 16], np.int64)}
    nodes = [node("Conv", "x w1", "c1"), node("LeakyRelu", "c1", "r", alpha=0.1),
             node("Sigmoid", "r", "s"), node("Mul", "r s", "m"), node("Conv", "m w2", "c2"),
             node("Add", "c2 m", "a"), node("Concat", "a m", "j", axis=1),
             node("AveragePool", "j", "p", kernel_shape=[2, 2], strides=[2, 2]),
             node("GlobalAveragePool", "p", "g"), node("Reshape", "g sizes", "f"),
             node("Gemm", "f wg bg", "h"), node("Softmax", "h", "y", axis=1)]
    return save_model(path, nodes, {"x": list(SHAPE)}, {"y": [2, 10]}, weights, opset=17)


def test_operators_of_microsoft_give_the_same_bytes(tessera, tmp_path):
    target = tmp_path / "operators.onnx"
    quantize_static(mixed_network(tmp_path / "float.onnx"), target, Samples(),
                    quant_format=QuantFormat.QOperator, weight_type=QuantType.QUInt8,
                    activation_type=QuantType.QUInt8)
    ops = {each.op_type for each in onnx.load(target).graph.node}
    assert ops >= {"QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid", "QGemm",
                   "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool",
                   "QLinearSoftmax"}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(target), options,
                                           providers=["CPUExecutionProvider"])
    executor = tessera.load(target).bind({"x": SHAPE}, optimize=False)
    for seed in range(5):
        x = normal(np.random.default_rng(seed), *SHAPE)
        (mine,), (theirs,) = executor.run({"x": x}), session.run(None, {"x": x})
        # Its softmax and its means are up to one quantum from the numbers that they stand for.
        np.testing.assert_allclose(mine, theirs, atol=3 / 256, rtol=0)


def test_an_lstm_of_bytes_rounds_where_onnx_runtime_does(tessera, tmp_path):
    random = np.random.default_rng(4)
    weights = {"w": normal(random, 2, 32, 6) / 3, "r": normal(random, 2, 32, 8) / 3,
               "b": normal(random, 2, 64) / 3}
    nodes = [node("LSTM", "x w r b", ["y"], hidden_size=8, direction="bidirectional")]
    source = save_model(tmp_path / "float.onnx", nodes, {"x": [5, 3, 6]}, {"y": [5, 2, 3, 8]},
                        weights, opset=17)
    target = tmp_path / "quantised.onnx"
    # Without VNNI, sums of weights of 8 bits saturate in ONNX Runtime.
    quantize_dynamic(source, target, reduce_range=True)
    assert "DynamicQuantizeLSTM" in {each.op_type for each in onnx.load(target).graph.node}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(target), options,
                                           providers=["CPUExecutionProvider"])
    executor = tessera.load(target).bind({"x": (5, 3, 6)}, optimize=False)
    x = normal(random, 5, 3, 6)
    np.testing.assert_allclose(executor.run({"x": x})[0], session.run(None, {"x": x})[0], atol=1e-5)
