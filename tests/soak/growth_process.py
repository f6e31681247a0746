"""Does one thing again and again and prints the memory of the process meanwhile.

usage: growth_process.py CASE SECONDS ITERATIONS BACKENDS
  Stops after SECONDS or ITERATIONS, whichever comes first; BACKENDS may be "". Works in the current
  folder. Each line of stdout is JSON: iterations done, resident bytes, allocated bytes, descriptors
  and mappings.
"""

import ctypes
import gc
import json
import os
import pathlib
import sys
import time

import numpy as np
import onnx
import tessera
from onnx import TensorProto, helper, numpy_helper

SAMPLES = 60


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


LIBC = ctypes.CDLL(None)


def allocated_bytes():
    """The bytes that malloc has allocated and not freed; 0 if the C library does not tell."""
    if not hasattr(LIBC, "mallinfo2"):
        return 0
    LIBC.mallinfo2.restype = Mallinfo
    figures = LIBC.mallinfo2()
    return figures.uordblks + figures.hblkhd


def sample(iterations):
    gc.collect()
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return {"iterations": iterations, "resident": pages * os.sysconf("SC_PAGE_SIZE"),
            "allocated": allocated_bytes(),
            "descriptors": len(os.listdir("/proc/self/fd")) - 1,
            "mappings": pathlib.Path("/proc/self/maps").read_text().count("\n")}


# Models.

def save(nodes, inputs, outputs, weights, name=None):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(x, TensorProto.FLOAT, dims) for x, dims in inputs],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in outputs],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    if name is None:
        return model.SerializeToString()
    onnx.save(model, name)
    return name


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reduction(name=None):
    """A mean, then a product by a constant, whose kernel fits every length."""
    return save([helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
                 helper.make_node("MatMul", ["m", "w"], ["y"])],
                [("x", ["N", "L", 16])], ["y"], {"w": draw(16, 8)}, name)


def block(name=None, width=32, seed=0):
    """Attention with one head and the nodes that follow it."""
    weights = {key: draw(width, width, seed=seed + index) / 8 for index, key in enumerate("qkvo")}
    weights |= {"up": draw(width, 2 * width) / 8, "down": draw(2 * width, width) / 8,
                "scale": np.float32(width**-0.5), "gain": np.ones(width, np.float32),
                "bias": np.zeros(width, np.float32)}
    node = helper.make_node
    return save([node("MatMul", ["x", "q"], ["xq"]), node("MatMul", ["x", "k"], ["xk"]),
                 node("MatMul", ["x", "v"], ["xv"]),
                 node("Transpose", ["xk"], ["kt"], perm=[0, 2, 1]),
                 node("MatMul", ["xq", "kt"], ["s"]), node("Mul", ["s", "scale"], ["t"]),
                 node("Softmax", ["t"], ["p"], axis=-1), node("MatMul", ["p", "xv"], ["a"]),
                 node("MatMul", ["a", "o"], ["b"]), node("Add", ["x", "b"], ["c"]),
                 node("LayerNormalization", ["c", "gain", "bias"], ["d"], axis=-1),
                 node("MatMul", ["d", "up"], ["e"]), node("Erf", ["e"], ["f"]),
                 node("Mul", ["e", "f"], ["h"]), node("MatMul", ["h", "down"], ["i"]),
                 node("Add", ["c", "i"], ["y"])],
                [("x", ["N", "L", width])], ["y"], weights, name)


def convolutions(name=None, channels=8):
    return save([helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
                 helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1] * 4),
                 helper.make_node("Add", ["b", "c"], ["y"])],
                [("x", ["N", 3, "H", "W"])], ["y"],
                {"w0": draw(channels, 3, 3, 3), "w1": draw(channels, channels, 3, 3)}, name)


# Cases: each is a generator that does one thing between two yields.

def run(options):
    executor = tessera.load(block()).bind({"x": (1, 12, 32)}, **options)
    x = draw(1, 12, 32)
    while True:
        executor.run({"x": x})
        yield


def run_bound(options):
    executor = tessera.load(block()).bind({"x": (1, 12, 32)}, **options)
    executor.bind_input("x", draw(1, 12, 32))
    executor.bind_output("y", np.empty((1, 12, 32), np.float32))
    while True:
        executor.run_bound()
        yield


def shapes_in_turn(options):
    """More shapes than plans are kept, so each run makes a plan."""
    executor = tessera.load(reduction()).bind({"x": (1, 2, 16)}, **options)
    given = [draw(1, length, 16) for length in range(2, 14)]
    while True:
        for x in given:
            executor.run({"x": x})
            yield


def random_lengths(options):
    executor = tessera.load(block()).bind({"x": (1, 12, 32)}, **options)
    lengths = np.random.default_rng(0)
    while True:
        executor.run({"x": draw(1, int(lengths.integers(1, 512)), 32)})
        yield


def random_lengths_two_threads(options):
    yield from random_lengths(options | {"threads": 2})


def random_images(options):
    executor = tessera.load(convolutions()).bind({"x": (1, 3, 16, 16)}, **options)
    sizes = np.random.default_rng(0)
    while True:
        height, width = sizes.integers(4, 64, 2)
        executor.run({"x": draw(1, 3, int(height), int(width))})
        yield


def sliced_weights(options):
    """The rows of a weight that a run uses depend on its length, so each shape has a constant of its
    own."""
    node = helper.make_node
    model = save([node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "two"], ["l"]),
                  node("Slice", ["w", "zero", "l"], ["rows"]), node("MatMul", ["x", "rows"], ["y"])],
                 [("x", ["N", "L"])], ["y"],
                 {"w": draw(512, 64), "zero": np.array([0]), "one": np.array([1]),
                  "two": np.array([2])})
    executor = tessera.load(model).bind({"x": (1, 8)}, **options)
    lengths = np.random.default_rng(0)
    while True:
        executor.run({"x": draw(1, int(lengths.integers(64, 512)))})
        yield


def bind(options):
    model = tessera.load(block())
    x = draw(1, 12, 32)
    while True:
        model.bind({"x": (1, 12, 32)}, **options).run({"x": x})
        yield


def bind_two_threads(options):
    yield from bind(options | {"threads": 2})


def bind_shapes(options):
    model = tessera.load(block())
    lengths = np.random.default_rng(0)
    while True:
        model.bind({"x": (1, int(lengths.integers(1, 512)), 32)}, **options)
        yield


def load(options):
    block("m.onnx")
    while True:
        tessera.load("m.onnx").bind({"x": (1, 12, 32)}, **options)
        yield


def load_bytes(options):
    given = block()
    while True:
        tessera.load(given).bind({"x": (1, 12, 32)}, **options)
        yield


def load_others(options):
    """Models of which no two are equal."""
    for index in range(1 << 60):
        length = 1 + index % 97
        given = save([helper.make_node("MatMul", ["x", "w"], ["p"]),
                      helper.make_node("Relu", ["p"], [f"y{index}"])],
                     [("x", [4 + index // 97 % 89, 16])], [f"y{index}"],
                     {"w": draw(16, length, seed=index)})
        tessera.load(given).bind(**options)
        yield


def swap(options):
    """Measures behind the runs, which only the first one has to."""
    block("m.onnx")
    x = draw(1, 12, 32)
    while True:
        executor = tessera.load("m.onnx").bind({"x": (1, 12, 32)}, **options, optimize="behind")
        executor.run({"x": x})
        executor.wait_for_swap()
        executor.run({"x": x})
        yield


def swap_compiled(options):
    """Swaps to compiled kernels behind the runs of a model whose bind measures nothing."""
    model = tessera.load(block())
    x = draw(1, 12, 32)
    while True:
        executor = model.bind({"x": (1, 12, 32)}, **options)
        executor.run({"x": x})
        executor.wait_for_swap()
        executor.run({"x": x})
        yield


def load_cache(options):
    block("m.onnx")
    first = tessera.load("m.onnx")
    first.bind({"x": (1, 12, 32)}, **options, optimize=True)
    first.save_cache("m.cache", include_packs=True)
    model = tessera.load("m.onnx")
    while True:
        model.load_cache("m.cache")
        model.bind({"x": (1, 12, 32)}, **options, optimize=True)
        yield


def load_cache_of_executor(options):
    block("m.onnx")
    executor = tessera.load("m.onnx").bind({"x": (1, 12, 32)}, **options, optimize=True)
    executor.save_cache("m.cache")
    while True:
        executor.load_cache("m.cache")
        yield


def pool(options):
    with tessera.Pool(tessera.load(block()), {"x": (1, 12, 32)}, executors=2, **options) as requests:
        x = draw(1, 12, 32)
        while True:
            for future in [requests.submit({"x": x}) for _ in range(4)]:
                future.result()
            yield


def session_runs(options):
    import tessera.onnxruntime as ort

    session = ort.InferenceSession(block())
    lengths = np.random.default_rng(0)
    while True:
        session.run(None, {"x": draw(1, int(lengths.integers(1, 64)), 32)})
        yield


def sessions(options):
    import tessera.onnxruntime as ort

    block("m.onnx")
    x = draw(1, 12, 32)
    while True:
        ort.InferenceSession("m.onnx").run(None, {"x": x})
        yield


def leak(options):
    """Keeps something each time, which must be found."""
    kept = []
    while True:
        kept.append(np.ones(250))
        yield


CASES = {case.__name__: case for case in (
    run, run_bound, shapes_in_turn, random_lengths, random_lengths_two_threads,
    random_images, sliced_weights, bind, bind_two_threads, bind_shapes, load,
    load_bytes, load_others, swap, swap_compiled, load_cache, load_cache_of_executor, pool,
    session_runs, sessions)}
NOT_TESSERAS = {leak.__name__: leak}  # for the test of this test
MEASURING = (swap, load_cache, load_cache_of_executor)


def main():
    name, seconds, iterations, backends = sys.argv[1:]
    seconds, iterations = float(seconds), int(iterations)
    options = {"threads": 1}
    if backends:
        options["backends"] = backends.split(",")
    case = (CASES | NOT_TESSERAS)[name]
    if case not in MEASURING:
        os.environ.setdefault("TESSERA_OPTIMIZE", "0")
    steps = case(options)
    next(steps)
    gc.collect()
    gc.freeze()  # modules need not be looked at in each sample
    start = time.monotonic()
    done, due = 0, 1
    while done < iterations and time.monotonic() - start < seconds:
        next(steps)
        done += 1
        share = max(done / iterations, (time.monotonic() - start) / seconds)
        if share * SAMPLES >= due:
            print(json.dumps(sample(done)), flush=True)
            due = int(share * SAMPLES) + 1
    print(json.dumps(sample(done)), flush=True)


main()
