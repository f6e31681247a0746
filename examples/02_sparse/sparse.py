#!/usr/bin/env python3
"""A linear text classifier on sparse features: one model with inputs in csr and dense.

Most word counts are zero: here 20,000 documents have about 20 words each out of 2,000. This program
creates the model (MatMul, Add, Softmax). Run it with PYTHONPATH=build/release/python.

example: PYTHONPATH=build/release/python .venv/bin/python examples/02_sparse/sparse.py --words 5000"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np
import onnx
import tessera
from onnx import TensorProto, helper, numpy_helper

CLASSES = 20
WORDS_IN_DOCUMENT = 20


def word_counts(documents, words, generator):
    """Returns indptr, indices and data of a documents x words matrix; few words are frequent (Zipf)."""
    frequency = 1 / np.arange(1, words + 1)
    picked = generator.choice(words, (documents, WORDS_IN_DOCUMENT), p=frequency / frequency.sum())
    rows = [np.unique(row, return_counts=True) for row in picked]
    indptr = np.cumsum([0] + [len(columns) for columns, _ in rows])
    indices = np.concatenate([columns for columns, _ in rows])
    data = np.concatenate([counts for _, counts in rows]).astype(np.float32)
    return indptr, indices, data


def make_model(path, words, generator, has_exp):
    """probabilities = softmax(x weights + bias); with `has_exp`, exp(x), which is never zero, replaces x."""
    weights = generator.standard_normal((words, CLASSES), dtype=np.float32)
    bias = generator.standard_normal(CLASSES, dtype=np.float32)
    nodes = [helper.make_node("Exp", ["x"], ["features"], "exp")] if has_exp else []
    nodes += [
        helper.make_node("MatMul", ["features" if has_exp else "x", "weights"], ["product"], "product"),
        helper.make_node("Add", ["product", "bias"], ["scores"], "scores"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], "softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["documents", words])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["documents", CLASSES])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(bias, "bias")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def median_ms(executor, feed, runs):
    executor.run(feed)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        executor.run(feed)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def print_plan(title, executor):
    """Prints each step with the layouts of its first input and its first output."""
    print(f"{title}; {executor.plan().arena_bytes / 1e6:.1f} MB for inner values:")
    for step in executor.plan().steps:
        layouts = " -> ".join(port.layout for port in step.inputs[:1] + step.outputs[:1])
        print(f"    {step.op:8} {step.backend or 'tessera':10} {layouts}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000, help="rows (default: 20000)")
    parser.add_argument("--words", type=int, default=2_000, help="columns (default: 2000)")
    parser.add_argument("--runs", type=int, default=9, help="to take medians of (default: 9)")
    arguments = parser.parse_args()
    generator = np.random.default_rng(1)
    shape = (arguments.documents, arguments.words)
    sparse = tessera.csr_array(*word_counts(*shape, generator), shape)
    dense = sparse.to_dense()
    print(f"x: {shape[0]} documents, {shape[1]} words, {sparse.stored} stored "
          f"({100 * sparse.density:.2f} %)")
    sparse_bytes = sparse.indptr.nbytes + sparse.indices.nbytes + sparse.data.nbytes
    print(f"memory of x: {sparse_bytes / 1e6:.1f} MB in csr, {dense.nbytes / 1e6:.1f} MB dense")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "classifier.onnx"
        make_model(path, arguments.words, np.random.default_rng(2), has_exp=False)
        model = tessera.load(path)
        layout = f"csr:{sparse.stored}"
        in_csr = model.bind({"x": shape}, layouts={"x": layout})
        in_dense = model.bind({"x": shape})
        same = np.allclose(in_csr.run(sparse)[0], in_dense.run(dense)[0], rtol=1e-4, atol=1e-6)
        print_plan(f"\nplan with x in {layout}", in_csr)
        print_plan("plan with x dense", in_dense)
        # In turns, so that other load on the machine slows both.
        times = [(median_ms(in_csr, sparse, 1), median_ms(in_dense, dense, 1))
                 for _ in range(arguments.runs)]
        csr_ms, dense_ms = (statistics.median(each) for each in zip(*times))
        print(f"time: {csr_ms:.2f} ms in csr, {dense_ms:.2f} ms dense "
              f"({dense_ms / csr_ms:.1f} times as long); same results: {same}")

        make_model(path, arguments.words, np.random.default_rng(2), has_exp=True)
        messages = []
        model = tessera.load(path, log=messages.append)
        fallen_back = model.bind({"x": shape}, layouts={"x": layout})
        print_plan("\nplan with exp(x), which makes no zero of a zero, x in csr", fallen_back)
        print(f"time: {median_ms(fallen_back, sparse, arguments.runs):.2f} ms")
        print("what the log tells of it, once: " + "; ".join(messages))
        try:
            model.bind({"x": shape}, layouts={"x": layout}, strict_storage=True)
        except tessera.Unsupported as error:
            print(f"with strict_storage=True it is an error: {error}")


if __name__ == "__main__":
    main()
