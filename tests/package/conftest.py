"""An installed copy of this build, which was moved to another folder afterwards."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from installed import run


@pytest.fixture(scope="session")
def build_dir(bin_dir):
    build = bin_dir.parent
    if "TESSERA_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text():
        pytest.skip("a sanitized library needs programs with the same sanitizer")
    assert (build / "lib" / "libtessera.so").exists(), f"it is not built: tools/build {build.name}"
    return build


@pytest.fixture(scope="session")
def prefix(build_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    run("cmake", "--install", build_dir, "--prefix", folder / "installed")
    (folder / "installed").rename(folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """relu = max(x * w, 0), in which the first dimension of x is open; positions = NonZero(x)."""
    weights = np.array([[1, -1, 0.5], [2, 1, 0.25]], np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["product"]),
         helper.make_node("Relu", ["product"], ["relu"]),
         helper.make_node("NonZero", ["x"], ["positions"])],
        "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("relu", TensorProto.FLOAT, ["batch", 3]),
         helper.make_tensor_value_info("positions", TensorProto.INT64, [2, None])],
        [numpy_helper.from_array(weights, "w")])
    file = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              file)
    return file


@pytest.fixture(scope="session")
def measured_model(tmp_path_factory):
    """Large enough that several kernels could be fastest by more than noise."""
    weights = np.ones((64, 64, 3, 3), np.float32)
    make = helper.make_node
    nodes = [make("Conv", ["x", "w"], ["a"], pads=[1] * 4), make("Relu", ["a"], ["b"]),
             make("Conv", ["b", "w"], ["c"], pads=[1] * 4),
             make("MaxPool", ["c"], ["d"], kernel_shape=[2, 2]), make("Softmax", ["d"], ["y"])]
    graph = helper.make_graph(
        nodes, "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 56, 56])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")])
    file = tmp_path_factory.mktemp("measured") / "convolutions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              file)
    return file
