"""An installed copy of this build, which was moved to another folder afterwards."""

import numpy as np
import pytest
from onnx import TensorProto

from installed import run
from small_models import node, save_model, tensor_type


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
    return save_model(tmp_path_factory.mktemp("model") / "small.onnx",
                      [node("MatMul", "x w", "product"), node("Relu", "product", "relu"),
                       node("NonZero", "x", "positions")], {"x": ["batch", 2]},
                      {"relu": ["batch", 3],
                       "positions": tensor_type(TensorProto.INT64, [2, None])}, {"w": weights})


@pytest.fixture(scope="session")
def measured_model(tmp_path_factory):
    """Large enough that several kernels could be fastest by more than noise."""
    weights = np.ones((64, 64, 3, 3), np.float32)
    nodes = [node("Conv", "x w", "a", pads=[1] * 4), node("Relu", "a", "b"),
             node("Conv", "b w", "c", pads=[1] * 4), node("MaxPool", "c", "d", kernel_shape=[2, 2]),
             node("Softmax", "d", "y")]
    return save_model(tmp_path_factory.mktemp("measured") / "convolutions.onnx", nodes,
                      {"x": [1, 64, 56, 56]}, "y", {"w": weights})
