"""Loading a large model needs little more memory than its 400 MB of weights, inline and external.
"""

import sys

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

WIDTH = 5000
COUNT = 4
FILE_BYTES = COUNT * WIDTH * WIDTH * 4


def save_products(path, weight_count, is_external=False):
    weights = {f"w{index}": np.zeros((WIDTH, WIDTH), np.float32) for index in range(weight_count)}
    nodes = [node("MatMul", f"h{index} w{index}", f"h{index + 1}")
             for index in range(weight_count)] or [node("Relu", "h0", "h1")]
    return save_model(path, nodes, {"h0": [1, WIDTH]}, {nodes[-1].output[0]: [1, WIDTH]}, weights,
                      is_external=is_external)


# A process's peak memory includes that of the process that forked it, so a small process starts it.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_bytes(binary, model):
    command = [sys.executable, "-S", "-c", MEASURE, binary, "inspect", model]
    return int(run_program(*command).stdout)


@pytest.mark.parametrize(("is_external", "limit"), [(False, 1.2), (True, 0.1)])
def test_peak_of_inspect(tessera_binary, bin_dir, tmp_path, is_external, limit):
    if "release" not in str(bin_dir):
        pytest.skip("sanitizers need memory of their own")
    tiny = peak_bytes(tessera_binary, save_products(tmp_path / "tiny.onnx", 0))
    model = save_products(tmp_path / "large.onnx", COUNT, is_external)
    extra = peak_bytes(tessera_binary, model) - tiny
    print(f"{extra / FILE_BYTES:.3f} of the file above a tiny model")
    assert extra < limit * FILE_BYTES
