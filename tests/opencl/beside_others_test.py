"""OpenCL in a process with all other plug-ins: results, a fork, and the time of the processor's own
steps while OpenCL idles. PoCL brings an LLVM and threads of its own. Skipped without a device."""

import os
import statistics

import numpy as np
import onnx
import pytest
from programs import run_python
from small_models import model_of, node, normal

pytestmark = pytest.mark.usefixtures("needs_opencl")
ATTEMPTS = 3
ROUNDS = 7
ONE_FOR_EACH = ("opencl", "native", "onednn", "reference")

# Prints the median time of a run on the processor, in microseconds. With "opencl", it first runs
# something on OpenCL, which stays open.
TIMED = """
import sys, time
import numpy as np
import tessera
model_path, first = sys.argv[1:]
model = tessera.load(model_path)
x = np.ones((1, 8, 64, 64), np.float32)
if first == "opencl":
    opencl = model.bind(backends=["opencl", "reference"], optimize=False, threads=2)
    opencl.run(x)
executor = model.bind(backends=["native", "reference"], optimize=False, threads=2)
times = []
for _ in range(400):
    start = time.perf_counter()
    executor.run(x)
    times.append(time.perf_counter() - start)
print(1e6 * sorted(times)[200])
"""


def small_network(steps):
    """A chain of convolutions and Relus from x to y."""
    generator = np.random.default_rng(1)
    nodes, weights, value = [], {}, "x"
    for index in range(steps):
        weights[f"w{index}"] = 0.1 * normal(generator, 8, 8, 3, 3)
        nodes.append(node("Conv", [value, f"w{index}"], f"c{index}", f"conv{index}",
                          pads=[1, 1, 1, 1]))
        value = "y" if index == steps - 1 else f"r{index}"
        nodes.append(node("Relu", f"c{index}", [value], f"relu{index}"))
    return model_of(nodes, {"x": [1, 8, 64, 64]}, {"y": [1, 8, 64, 64]}, weights)


@pytest.fixture
def x():
    return np.random.default_rng(2).standard_normal((1, 8, 64, 64)).astype(np.float32)


def test_all_libraries_in_one_process(tessera, why_unusable, x):
    """Each library computes a convolution, in turns for many runs."""
    usable = [name for name in ONE_FOR_EACH if not why_unusable.get(name)]
    model = tessera.load(small_network(len(usable)).SerializeToString())
    expected, = model.bind(backends=["reference"], optimize=False).run(x)
    pins = [tessera.Pin(f"conv{index}", name) for index, name in enumerate(usable)]
    executors = [model.bind(backends=usable, pins=pins, optimize=False, threads=2)]
    assert {step.backend for step in executors[0].plan().steps} >= set(usable)
    # This library only takes the whole chain.
    if not why_unusable.get("openvino"):
        executors.append(model.bind(backends=["openvino", "reference"], optimize=False, threads=2,
                                    pins=[tessera.Pin("*", "openvino")]))
        assert {step.backend for step in executors[1].plan().steps} == {"openvino"}
    for _ in range(50):
        for executor in executors:
            y, = executor.run(x)
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_a_forked_child_runs_on_the_processor(tessera, x):
    model = tessera.load(small_network(2).SerializeToString())
    executor = model.bind(backends=["opencl", "reference"], optimize=False)
    expected, = executor.run(x)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "the executor runs"
        try:
            executor.run(x)
        except tessera.DeviceFailed as error:
            text = str(error)
        try:
            again = model.bind(backends=["opencl", "native", "reference"], optimize=False,
                               threads=1)
            y, = again.run(x)
            devices = {port.device for step in again.plan().steps for port in step.outputs}
            text += f"; then {devices} {np.allclose(y, expected, 1e-4, 1e-5)}"
        except tessera.Error as error:
            text += f"; then {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert "fork" in text and text.endswith("then {'cpu'} True")
    np.testing.assert_allclose(executor.run(x)[0], expected, 1e-4, 1e-5)


@pytest.mark.alone
def test_an_idle_device_takes_no_time_from_the_processor(tessera, tmp_path):
    onnx.save(small_network(6), tmp_path / "model.onnx")

    def slowdown():
        times = {"alone": [], "opencl": []}
        for _ in range(ROUNDS):
            for first, found in times.items():
                done = run_python(tessera, TIMED, tmp_path / "model.onnx", first)
                found.append(float(done.stdout))
        alone, beside = (statistics.median(times[first]) for first in ("alone", "opencl"))
        print(f"{alone:.0f} us a run, {beside:.0f} us while OpenCL idles")
        # The fastest of each too: noise only adds.
        return min(beside / alone, min(times["opencl"]) / min(times["alone"]))

    # A thread that waits by computing slows all of them; another program only some.
    assert any(slowdown() < 1.05 for _ in range(ATTEMPTS))
