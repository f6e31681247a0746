"""examples/03_mixed: convolutions of libraries around an op that only a plug-in supports, in one
plan whose conversions have names and prices."""

import sys

import numpy as np
import pytest

from outside_build import ROOT, build_example

MIXED = ROOT / "examples" / "03_mixed"
sys.path.insert(0, str(MIXED))

import mixed  # noqa: E402
from programs import json_of, run_program

CONVOLUTIONS = ("conv1", "conv2", "conv3", "conv4")
COLUMNS = "example:columns"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_example("g++", tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="module")
def shown(tessera_binary, library, tmp_path_factory, needs_a_library):
    """The example's output and its folder. The test needs a library: if only the reference competes
    with the plug-in, which supports that op too, the choice is nearly a draw."""
    if tessera_binary.parents[1].name == "asan":
        pytest.skip("what it is about are prices, and sanitizers change what kernels take")
    folder = tmp_path_factory.mktemp("codebook")
    done = run_program(sys.executable, MIXED / "mixed.py", "--backend", library, "--tessera",
                       tessera_binary, "--folder", folder)
    return done.stdout, folder


@pytest.fixture(scope="module")
def report(tessera_binary, library, shown):
    """The example's plan as JSON, chosen by the costs that the example measured."""
    return json_of(tessera_binary, "explain", "codebook.onnx", "--json", "--threads", "1",
                   "--costs", "costs.json", "--backends",
                   ",".join(["example", *mixed.usable_libraries(tessera_binary)]), "--backend-path",
                   library, cwd=shown[1])


def test_each_node_has_the_library_that_knows_it(report, why_unusable):
    backends = {node: step["backend"] for step in report["steps"] for node in step["nodes"]}
    assert backends["codebook"] == "example"
    usable = {name for name, reason in why_unusable.items() if not reason}
    libraries = usable & {"native", "onednn"}
    chosen = {backends[node] for node in CONVOLUTIONS}
    assert chosen <= (libraries or {"reference"})
    assert len(set(backends.values())) > 1


def test_conversions_have_names_and_prices(report, shown):
    conversions = {(step["name"], step["inputs"][0]["layout"], step["outputs"][0]["layout"]): step
                   for step in report["steps"] if step["op"] == "convert"}
    # Conversions to the op's own layout and back; which layouts the convolutions use is decided by
    # the choice.
    assert {layouts[:2] for layouts in conversions if COLUMNS in layouts[1:]} == \
        {("points", "row_major"), ("distances", COLUMNS)}
    for step in conversions.values():
        assert step["predicted_us"] > 0 and step["moved_bytes"] > 0
    printed = shown[0]
    [title] = [line for line in printed.splitlines() if "conversion of" in line]
    assert title.split()[-1] == "predicted"
    table = printed[printed.index(title):].split("\n\n")[0].splitlines()[1:]
    assert {line.split()[1] for line in table} == {name for name, _, _ in conversions}
    for line in table:
        assert float(line.split()[-2]) > 0 and line.split()[-1] in ("\u00b5s", "ms"), line


def test_prices_of_steps_add_up_to_that_of_the_plan(report):
    steps = sum(step["predicted_us"] for step in report["steps"])
    assert steps == pytest.approx(report["placement"]["predicted_us"], rel=1e-6)


def test_without_the_plugin_nobody_knows_the_op(tessera_binary, shown):
    done = run_program(tessera_binary, "explain", "codebook.onnx", code=2, cwd=shown[1])
    assert "org.example" in done.stderr


@pytest.mark.parametrize("options", [(), ("--costs", "costs.json"), ("--backends", "example")],
                         ids=["unmeasured", "by price", "example alone"])
def test_the_outputs_are_numpys(tessera_binary, library, shown, options):
    folder = shown[1]
    weights = mixed.make_weights()
    expected = mixed.numpy_scores(np.load(folder / "picture.npy"), weights)
    np.save(folder / "expected.npy", expected.astype(np.float32))
    run_program(tessera_binary, "run", "codebook.onnx", "--backend-path", library, "--input",
                "picture=picture.npy", "--expect", "scores=expected.npy", "--rtol", "1e-3",
                "--atol", "1e-3", *options, cwd=folder)
