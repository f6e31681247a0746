"""Runs of models that nothing has measured: small work stays on the calling thread, and costs
little beside the kernel."""

import json

import numpy as np
import pytest
from onnx import TensorProto
from programs import run_python
from small_models import model_bytes, model_of, node, tensor_type


def add_model(size, second=None):
    """z = x + y; with `second`, also w = a product of that size, which several threads share."""
    nodes = [node("Add", "x y", "z", "add")]
    inputs, outputs, weights = {"x": [1, size], "y": [1, size]}, {"z": [1, size]}, {}
    if second:
        nodes.append(node("MatMul", "v m", "w", "product"))
        inputs["v"] = outputs["w"] = [second, second]
        weights["m"] = np.ones((second, second), np.float32)
    return model_bytes(nodes, inputs, outputs, weights)


def threads_of_steps(tessera, model, **options):
    executor = tessera.load(model).bind(optimize="off", threads=2, **options)
    return [step.threads for step in executor.plan().steps]


@pytest.mark.parametrize("size, threads", [(4, 1), (1000, 1), (20_000_000, 2)])
def test_small_work_stays_on_one_thread(tessera, size, threads):
    assert threads_of_steps(tessera, add_model(size)) == [threads]


def test_one_large_node_gives_all_steps_all_threads(tessera):
    """Steps on one thread between others would have to leave and enter the pool."""
    assert threads_of_steps(tessera, add_model(4, second=512)) == [2, 2]


def test_unknown_work_gets_all_threads(tessera):
    model = model_of([node("NonZero", "x", "y")], {"x": [3]},
                     {"y": tensor_type(TensorProto.INT64, [1, None])})
    assert threads_of_steps(tessera, model.SerializeToString()) == [2]


PROGRAM = '''
import os, sys, time
import numpy as np
import tessera.onnxruntime as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.add_session_config_entry("tessera.optimize", "off")
options.add_session_config_entry("tessera.backends", sys.argv[2])
session = ort.InferenceSession(open(sys.argv[1], "rb").read(), options)
feed = {name: np.ones((1, 30000), np.float32) for name in "xy"}
session.run(None, feed)

def ticks_of_others():
    """The processor time of all threads but this one, in hundredths of a second."""
    ticks = 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            fields = open(f"/proc/self/task/{task}/stat").read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks

# Work of load() and bind() ends in threads of its own.
while True:
    before = ticks_of_others()
    time.sleep(0.5)  # on a busy machine, they do not always get their turn in less
    if ticks_of_others() == before:
        break
for _ in range(20_000):
    session.run(None, feed)
print(ticks_of_others() - before)
'''


@pytest.mark.parametrize("backend", ["onednn", "native", "reference"])
def test_a_session_wakes_no_other_thread_for_one_add(tessera, need_backend, tmp_path, backend):
    """With measuring off: while it runs 20000 times, other threads take no processor time."""
    need_backend(backend)
    model = tmp_path / "add.onnx"
    model.write_bytes(add_model(30000))
    done = run_python(tessera, PROGRAM, model, json.dumps([backend]),
                      variables={"TESSERA_OPTIMIZE": "0"})
    assert int(done.stdout) <= 2
