"""Weights are packed only once for all executors of a model, and the originals are released. If
several libraries compute in turns, there are still no more threads than requested."""

import json

import numpy as np
import pytest
from programs import run_python
from small_models import node, save_model

LAYERS = 16
WIDTH = 1024
WEIGHTS_MIB = LAYERS * WIDTH * WIDTH * 4 / 2**20


@pytest.fixture(scope="module", params=[False, True], ids=["inline", "external"])
def wide_model(request, tmp_path_factory):
    """Matrix products with 64 MiB of weights in total, separated by an op that only the reference
    supports."""
    nodes, weights = [], {}
    random = np.random.default_rng(1)
    for layer in range(LAYERS):
        weight = random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / np.sqrt(WIDTH)
        weights[f"w{layer}"] = weight.astype(np.float32)
        nodes.append(node("MatMul", f"x{layer} w{layer}", f"y{layer}"))
        nodes.append(node("Asinh", f"y{layer}", f"x{layer + 1}"))
    return save_model(tmp_path_factory.mktemp("wide") / "model.onnx", nodes,
                      {"x0": ["rows", WIDTH]}, {f"x{LAYERS}": ["rows", WIDTH]}, weights, opset=20,
                      is_external=request.param)


def run_script(tessera, text):
    """Runs `text` in a new Python process; returns its output, parsed as JSON."""
    return json.loads(run_python(tessera, text).stdout)


def has_library(tessera):
    return any(entry.name == "onednn" and entry.is_usable for entry in tessera.backends())


def test_eight_executors_hold_one_copy_of_packed_weights(tessera, wide_model):
    if not has_library(tessera):
        pytest.skip("the reference packs nothing, and no other backend is here")
    figures = run_script(tessera, f"""
        import json, numpy, tessera
        def resident():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
        x = {{"x0": numpy.ones((4, {WIDTH}), numpy.float32)}}
        before = resident()
        model = tessera.load({str(wide_model)!r})
        executors = [model.bind({{"x0": [4, {WIDTH}]}}, threads=1)]
        first, = executors[0].run(x)
        one = resident() - before
        for _ in range(7):
            executors.append(model.bind({{"x0": [4, {WIDTH}]}}, threads=1))
            assert (executors[-1].run(x)[0] == first).all()
        eight = resident() - before
        # Released weights are read again if they are needed.
        plain = model.bind({{"x0": [4, {WIDTH}]}}, backends=["reference"])
        assert numpy.allclose(plain.run(x)[0], first, rtol=1e-3, atol=1e-5)
        print(json.dumps({{"one": one, "eight": eight,
                          "packed": executors[0].plan().pack_bytes / 2**20}}))
        """)
    if figures["packed"] == 0:
        pytest.skip("the kernels that were chosen for this processor take weights as they are")
    assert figures["packed"] >= WEIGHTS_MIB * 0.9
    # Room for the libraries themselves, but not for a second copy.
    assert figures["one"] < figures["packed"] + 0.8 * WEIGHTS_MIB, figures
    assert figures["eight"] - figures["one"] < 0.4 * WEIGHTS_MIB, figures


@pytest.mark.parametrize("threads", [1, 2])
def test_libraries_and_the_reference_share_one_pool(tessera, wide_model, threads):
    libraries = ["onednn"] if has_library(tessera) else []
    figures = run_script(tessera, f"""
        import json, os
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy, threading, time, tessera
        def count():
            return len(os.listdir("/proc/self/task"))
        model = tessera.load({str(wide_model)!r}, threads={threads})
        before = count()
        executor = model.bind({{"x0": [64, {WIDTH}]}}, threads={threads}, backends={libraries})
        x = {{"x0": numpy.ones((64, {WIDTH}), numpy.float32)}}
        most, is_done = [0], threading.Event()
        def watch():
            while not is_done.is_set():
                most[0] = max(most[0], count())
                time.sleep(0.0005)
        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(20):
            executor.run(x)
        is_done.set()
        watcher.join()
        print(json.dumps({{"most": most[0] - 1, "before": before,
                          "backends": sorted({{step.backend for step in executor.plan().steps}})}}))
        """)
    if has_library(tessera):
        assert figures["backends"] == ["onednn", "reference"]
    assert 1 <= figures["most"] <= max(threads, figures["before"]), figures
    if threads == 1:
        assert figures["most"] == 1


@pytest.mark.parametrize("when", [True, "behind"])
def test_measuring_returns_the_memory_of_its_candidates(tessera, tmp_path, when):
    """Kernels of several libraries, with weights packed for each, were measured and are gone."""
    random = np.random.default_rng(2)
    weights = {f"w{layer}": random.standard_normal((384, 384), dtype=np.float32) / 20
               for layer in range(24)}
    nodes = [node("MatMul", f"x{layer} w{layer}", f"x{layer + 1}") for layer in range(24)]
    path = save_model(tmp_path / "model.onnx", nodes, {"x0": [64, 384]}, {"x24": [64, 384]}, weights)
    freed = run_script(tessera, f"""
        import ctypes, json, numpy, tessera
        def resident():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
        executor = tessera.load({str(path)!r}).bind(threads=1, optimize={when!r},
                                                    cache_dir={str(tmp_path)!r})
        x = {{"x0": numpy.ones((64, 384), numpy.float32)}}
        executor.run(x)
        executor.wait_for_swap()
        executor.run(x)
        before = resident()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        print(json.dumps(before - resident()))
        """)
    assert freed < 6, f"{freed} MiB more could have been returned"
