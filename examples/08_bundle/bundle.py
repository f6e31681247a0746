"""Bundles a model, and starts it in processes that have nothing but the bundle."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import tessera
from onnx import TensorProto, helper, numpy_helper

BATCHES = (1, 8)
FEATURES = 256

# The program of the new processes: prints the time from Python's start to the answer, and its sum.
FIRST_ANSWER = """
import sys, time
begin = time.perf_counter()
import numpy as np
import tessera
batch = int(sys.argv[2])
model = tessera.load(sys.argv[1], log=lambda text: print("    it says:", text))
executor = model.bind({"x": (batch, 256)}, frozen=sys.argv[3] == "frozen")
y, = executor.run({"x": np.ones((batch, 256), np.float32)})
measured = sum(one.measured for one in executor.cache_report().types)
print(f"    batch {batch}: {1e3 * (time.perf_counter() - begin):.0f} ms, "
      f"{'measured' if measured else 'measured nothing'}, sum {y.sum():.3f}")
"""


def write_model(path):
    """Two layers, whose weights are in a file beside the model."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(
        rng.standard_normal((FEATURES, FEATURES), np.float32) / FEATURES, name)
        for name in ("w1", "w2")]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w1"], ["h"], "first"),
         helper.make_node("Relu", ["h"], ["r"], "relu"),
         helper.make_node("MatMul", ["r", "w2"], ["y"], "second")],
        "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              path, save_as_external_data=True, location="weights.bin", size_threshold=0)


def start(title, file, user_folder, mode=""):
    print(title)
    for batch in BATCHES:
        environment = {**os.environ, "XDG_CACHE_HOME": str(user_folder), "TESSERA_OPTIMIZE": "1",
                       "TESSERA_CACHE_DIR": str(user_folder / "work")}
        done = subprocess.run([sys.executable, "-c", FIRST_ANSWER, file, str(batch), mode],
                              env=environment, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "user")
        os.environ["TESSERA_CACHE_DIR"] = str(folder / "work")
        (folder / "model").mkdir()
        model = folder / "model" / "model.onnx"
        write_model(model)
        start("from the model, without caches:", model, folder / "first")

        bundle = folder / "mlp.bundle"
        shapes = [{"x": (batch, FEATURES)} for batch in BATCHES]
        tessera.load(model).save_bundle(bundle, shapes, optimize=True)
        shutil.rmtree(model.parent)
        print(f"bundled: {bundle.stat().st_size / 2**20:.1f} MiB, and the model is gone")

        # Like a container: it has the user's key, and no folder can be written.
        container = folder / "container" / "tessera"
        container.mkdir(parents=True, mode=0o700)
        shutil.copy(folder / "user" / "tessera" / "key", container / "key")
        container.chmod(0o500)
        start("from the bundle, with the key:", bundle, container.parent, "frozen")
        container.chmod(0o700)

        start("from the bundle, somebody else:", bundle, folder / "stranger")


if __name__ == "__main__":
    main()
