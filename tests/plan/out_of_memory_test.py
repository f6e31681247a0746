"""More memory than the machine has, with a real limit in a separate process."""

import numpy as np
import pytest
from programs import run_python
from small_models import node, save_model

LOAD = """
    import resource
    import sys
    import numpy as np
    import tessera

    def address_space():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()

    model = tessera.load(sys.argv[1])
"""
PROGRAM = LOAD + """
    small = np.ones((2, 1024), np.float32)
    executor = model.bind({"x": small.shape}, threads=1)
    executor.run(small)
    large = np.ones((50_000, 1024), np.float32)
    limit = address_space() + (100 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for attempt in range(3):
        try:
            model.bind({"x": large.shape}, threads=1)
        except tessera.OutOfMemory as error:
            print(error)
        try:
            executor.run(large)
        except tessera.OutOfMemory as error:
            print(error)
        [y] = executor.run(small)
        assert (y == 1).all() and executor.outputs[0].shape == (2, 1024)
    [y] = model.bind({"x": (3, 1024)}, threads=1).run(np.ones((3, 1024), np.float32))
    print("goes on", y.shape)
"""


@pytest.fixture
def model(tmp_path):
    """Its inner values need the memory of four rows of x at the same time, in addition to the
    output."""
    nodes = [node("Neg", "x", "down"), node("Abs", "down", "up"),
             node("Concat", "up down", "both", axis=1), node("ReduceMax", "both", "most", axes=[1]),
             node("Mul", "up most", "y")]
    return save_model(tmp_path / "model.onnx", nodes, {"x": ["rows", 1024]}, {"y": ["rows", 1024]},
                      opset=13)


def test_a_bind_beyond_the_limit_says_so_and_leaves_the_process_fit(tessera, model):
    done = run_python(tessera, PROGRAM, model)
    *errors, last = done.stdout.splitlines()
    assert last == "goes on (3, 1024)" and len(errors) == 6
    bytes_of_a_value = 50_000 * 1024 * 4
    for error in errors:
        assert "expected to need at most the" in error and "bytes that are available" in error
        assert f"with {bytes_of_a_value} bytes" in error
        need = int(error.split("found a need of ")[1].split()[0])
        assert need >= 3 * bytes_of_a_value


PACKING = LOAD + """
    pins = [tessera.Pin("product", "native", "packed")]
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + (40 << 20), most))
    try:
        model.bind(threads=1, backends=["native"], pins=pins)
    except tessera.OutOfMemory as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    x = np.ones((1, 4096), np.float32)
    [y] = model.bind(threads=1, backends=["native"], pins=pins).run(x)
    print("goes on", y[0, 0])
"""


def test_packing_beyond_the_limit_says_so_too(tessera, tmp_path, needs_native):
    weight = np.full((4096, 4096), 0.5, np.float32)
    path = save_model(tmp_path / "model.onnx", [node("MatMul", "x w", "y", "product")],
                      {"x": [1, 4096]}, {"y": [1, 4096]}, {"w": weight}, opset=13)
    done = run_python(tessera, PACKING, path)
    error, last = done.stdout.splitlines()
    assert last == "goes on 2048.0"
    assert "weight 'w'" in error and f"could not allocate {weight.nbytes} bytes" in error
    assert f"the plan's largest: weight 'w' with {weight.nbytes} bytes" in error
