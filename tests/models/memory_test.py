"""Loading a large model needs little more memory than its 400 MB of weights, inline and external.
"""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WIDTH = 5000
COUNT = 4
FILE_BYTES = COUNT * WIDTH * WIDTH * 4


def save_products(path, weight_count, is_external=False):
    weights = [
        numpy_helper.from_array(np.zeros((WIDTH, WIDTH), np.float32), f"w{index}")
        for index in range(weight_count)
    ]
    names = ["x"] + [f"h{index}" for index in range(weight_count)]
    nodes = [
        helper.make_node("MatMul", [names[index], f"w{index}"], [names[index + 1]])
        for index in range(weight_count)
    ] or [helper.make_node("Relu", ["x"], ["h"])]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH])
        for name in ("x", nodes[-1].output[0])
    ]
    graph = helper.make_graph(nodes, "products", values[:1], values[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    external = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    onnx.save(model, path, **(external if is_external else {}))
    return path


# A process's peak memory includes that of the process that forked it, so a small process starts it.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_bytes(binary, model):
    command = [sys.executable, "-S", "-c", MEASURE, binary, "inspect", model]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.parametrize(("is_external", "limit"), [(False, 1.2), (True, 0.1)])
def test_peak_of_inspect(tessera_binary, bin_dir, tmp_path, is_external, limit):
    if "release" not in str(bin_dir):
        pytest.skip("sanitizers need memory of their own")
    tiny = peak_bytes(tessera_binary, save_products(tmp_path / "tiny.onnx", 0))
    model = save_products(tmp_path / "large.onnx", COUNT, is_external)
    extra = peak_bytes(tessera_binary, model) - tiny
    print(f"{extra / FILE_BYTES:.3f} of the file above a tiny model")
    assert extra < limit * FILE_BYTES
