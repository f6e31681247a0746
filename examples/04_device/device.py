#!/usr/bin/env python3
"""State that stays on a device: heat spreads over a plate, one step a run, on OpenCL.

The plate is copied to the device once, each run writes the next state over the last one, and only
the end comes back. For comparison, the same steps with the plate in the host's memory. Run it with
PYTHONPATH=build/release/python.

example: PYTHONPATH=build/release/python .venv/bin/python examples/04_device/device.py --size 512"""

import argparse
import sys
import time

import numpy as np
import tessera
from onnx import TensorProto, helper, numpy_helper

# The mean of a point's four neighbours, a little at a time.
SPREAD = np.array([[0, 0.2, 0], [0.2, 0.2, 0.2], [0, 0.2, 0]], np.float32).reshape(1, 1, 3, 3)


def make_model(size, backends):
    """next = plate convolved with SPREAD; both are size x size."""
    shape = [1, 1, size, size]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["plate", "spread"], ["next"], "spreading", pads=[1, 1, 1, 1])],
        "heat",
        [helper.make_tensor_value_info("plate", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("next", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(SPREAD, "spread")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return tessera.load(model.SerializeToString(), backends=backends)


def count_copies(executor):
    return sum(step.op == "convert+copy" for step in executor.plan().steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="points along a side (default: 256)")
    parser.add_argument("--steps", type=int, default=200, help="(default: 200)")
    parser.add_argument("--device", default="opencl", help="(default: opencl)")
    arguments = parser.parse_args()

    backends = tessera.Backends()
    plate = np.zeros((1, 1, arguments.size, arguments.size), np.float32)
    plate[0, 0, arguments.size // 2, arguments.size // 2] = 1000
    try:
        state = backends.to_device(plate, arguments.device)
    except tessera.Error as error:
        print(f"there is no such device here: {error}")
        return 1
    model = make_model(arguments.size, backends)
    options = {"backends": [arguments.device.partition(":")[0], "reference"], "optimize": False}

    layout = f"row_major@{arguments.device}"
    on_device = model.bind(**options, layouts={"plate": layout, "next": layout},
                           state_pairs=[("plate", "next")])
    on_device.bind_input("plate", state)
    on_device.bind_output("next", state)
    in_host = model.bind(**options)
    print(f"copies in each run: {count_copies(on_device)} with the state on {arguments.device}, "
          f"{count_copies(in_host)} with the state in the host's memory")

    start = time.perf_counter()
    for _ in range(arguments.steps):
        on_device.run()
    result = state.to_host()
    on_device_ms = 1e3 * (time.perf_counter() - start) / arguments.steps

    start = time.perf_counter()
    expected = plate
    for _ in range(arguments.steps):
        expected, = in_host.run(expected)
    in_host_ms = 1e3 * (time.perf_counter() - start) / arguments.steps

    print(f"a step: {on_device_ms:.3f} ms on the device, {in_host_ms:.3f} ms through the host")
    print(f"same results: {np.array_equal(result, expected)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
