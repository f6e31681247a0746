"""Graphs with many nodes, or nodes with many inputs: no stage takes time quadratic in their number.
"""

import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

# This test measures times.
pytestmark = pytest.mark.alone

FEW, MANY = 2_000, 16_000
# The limit for the growth of time for an eight times larger graph: 8 in theory, plus room for
# caches and a busy machine; quadratic time would be 64.
MOST_GROWTH = 24
OF_ONNX = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]


def value(name, length):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [length])


def chain(count):
    """A chain of Relus."""
    nodes = [helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"]) for at in range(count)]
    return helper.make_graph(nodes, "chain", [value("v0", 4)], [value(f"v{count}", 4)]), []


def calls(count):
    """Functions, each of which calls the next twice: less than a kilobyte."""
    functions, size = [], 1
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    while True:
        name = f"f{len(functions)}"
        functions.append(helper.make_function("mine", name, ["x"], ["y"], nodes, OF_ONNX))
        if size * 2 > count:
            break
        nodes = [helper.make_node(name, ["x"], ["t"], domain="mine"),
                 helper.make_node(name, ["t"], ["y"], domain="mine")]
        size *= 2
    node = helper.make_node(name, ["x"], ["y"], domain="mine")
    return helper.make_graph([node], "calls", [value("x", 4)], [value("y", 4)]), functions


def joined_inputs(count):
    """A node with as many inputs as elements."""
    names = [f"x{at}" for at in range(count)]
    node = helper.make_node("Concat", names, ["y"], axis=0)
    return helper.make_graph([node], "inputs", [value(name, 1) for name in names],
                             [value("y", count)]), []


def joined_nodes(count):
    """Every value is live until the last node."""
    nodes = [helper.make_node("Relu", ["x"], [f"r{at}"]) for at in range(count)]
    nodes.append(helper.make_node("Concat", [f"r{at}" for at in range(count)], ["y"], axis=0))
    return helper.make_graph(nodes, "nodes", [value("x", 2)], [value("y", 2 * count)]), []


def parts(count):
    """A node with as many outputs as elements."""
    names = [f"y{at}" for at in range(count)]
    node = helper.make_node("Split", ["x"], names, axis=0)
    return helper.make_graph([node], "parts", [value("x", count)],
                             [value(name, 1) for name in names]), []


GRAPHS = {made.__name__: made for made in (chain, calls, joined_inputs, joined_nodes, parts)}


@pytest.fixture
def seconds(tessera_binary, tmp_path):
    """The time of `inspect --memory`, which loads a model and binds it."""

    def run(make, count, backends):
        graph, functions = make(count)
        model = helper.make_model(graph, opset_imports=OF_ONNX, ir_version=9, functions=functions)
        path = tmp_path / f"{make.__name__}{count}.onnx"
        onnx.save(model, path)
        begin = time.monotonic()
        done = subprocess.run(
            [tessera_binary, "inspect", path, "--memory", "--no-optimize", "--json", *backends],
            capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return time.monotonic() - begin

    return run


@pytest.mark.parametrize("backends", ("", "reference", "native", "onednn"))
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_time_grows_with_the_number_of_nodes(seconds, choose_backends, is_long, make, backends):
    if backends and not is_long:
        pytest.skip("each backend alone is for --long")
    chosen = choose_backends(backends)
    few = seconds(make, FEW, chosen)
    assert seconds(make, MANY, chosen) < max(MOST_GROWTH * few, 2)


@pytest.mark.parametrize("backends", ("", "reference", "native", "onednn"))
def test_a_concat_of_fifty_thousand_inputs(tessera_binary, choose_backends, tmp_path, backends):
    graph = helper.make_graph([helper.make_node("Concat", ["x"] * 50_000, ["y"], axis=0)], "wide",
                              [value("x", 2)], [value("y", 100_000)])
    onnx.save(helper.make_model(graph, opset_imports=OF_ONNX, ir_version=9), tmp_path / "m.onnx")
    x = np.array([3, -1], np.float32)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run(
        [tessera_binary, "run", tmp_path / "m.onnx", "--no-optimize", "--input",
         f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out", *choose_backends(backends)],
        capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), np.tile(x, 50_000))
