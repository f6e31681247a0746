"""Graphs with many nodes, or nodes with many inputs: no stage takes time quadratic in their number.
"""

import time

import numpy as np
import pytest
import small_models
from onnx import helper
from programs import run_program
from small_models import node, save_model

# This test measures times.
pytestmark = pytest.mark.alone

FEW, MANY = 2_000, 16_000
# The limit for the growth of time for an eight times larger graph: 8 in theory, plus room for
# caches and a busy machine; quadratic time would be 64.
MOST_GROWTH = 24


def chain(count):
    """A chain of Relus."""
    return small_models.chain(*["Relu"] * count), {"x": [4]}, {"y": [4]}, []


def calls(count):
    """Functions, each of which calls the next twice: less than a kilobyte."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    functions, size = [], 1
    nodes = [node("Relu", "x", "y")]
    while True:
        name = f"f{len(functions)}"
        functions.append(helper.make_function("mine", name, ["x"], ["y"], nodes, opsets))
        if size * 2 > count:
            break
        nodes = [node(name, "x", "t", domain="mine"), node(name, "t", "y", domain="mine")]
        size *= 2
    return [node(name, domain="mine")], {"x": [4]}, {"y": [4]}, functions


def joined_inputs(count):
    """A node with as many inputs as elements."""
    names = [f"x{at}" for at in range(count)]
    return [node("Concat", names, axis=0)], {name: [1] for name in names}, {"y": [count]}, []


def joined_nodes(count):
    """Every value is live until the last node."""
    nodes = [node("Relu", "x", f"r{at}") for at in range(count)]
    nodes.append(node("Concat", [f"r{at}" for at in range(count)], "y", axis=0))
    return nodes, {"x": [2]}, {"y": [2 * count]}, []


def parts(count):
    """A node with as many outputs as elements."""
    names = [f"y{at}" for at in range(count)]
    return [node("Split", "x", names, axis=0)], {"x": [count]}, {name: [1] for name in names}, []


GRAPHS = {made.__name__: made for made in (chain, calls, joined_inputs, joined_nodes, parts)}


@pytest.fixture
def seconds(tessera_binary, tmp_path):
    """The time of `inspect --memory`, which loads a model and binds it."""

    def run(make, count, backends):
        nodes, inputs, outputs, functions = make(count)
        path = save_model(tmp_path / f"{make.__name__}{count}.onnx", nodes, inputs, outputs,
                          domains={"mine": 1}, functions=functions)
        begin = time.monotonic()
        run_program(tessera_binary, "inspect", path, "--memory", "--no-optimize", "--json",
                    *backends)
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
    save_model(tmp_path / "m.onnx", [node("Concat", ["x"] * 50_000, axis=0)], {"x": [2]},
               {"y": [100_000]})
    x = np.array([3, -1], np.float32)
    np.save(tmp_path / "x.npy", x)
    run_program(tessera_binary, "run", tmp_path / "m.onnx", "--no-optimize", "--input",
                f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out", *choose_backends(backends))
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), np.tile(x, 50_000))
