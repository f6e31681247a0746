"""The choice by price with invented prices: the plug-in `null` has no library, but two devices with
a layout each. A cost table sets the times of its kernels and conversions."""

import json
import os
import random
import subprocess
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

US = 1e-6
OPS = ("Neg", "Abs", "Floor", "Sqrt", "Sin", "Cos")
A, B, DEFAULT = "null:a", "null:b", "row_major"


@pytest.fixture(scope="module")
def null(bin_dir):
    library = bin_dir.parent / "tests" / "backends" / "null.so"
    assert library.exists(), f"{library} is not built: tools/build release null"
    return library


@pytest.fixture
def tessera(tessera_binary, null, tmp_path):
    """Calls the program with `null` and the reference; returns its output, or its error."""

    def call(command, model, *options, direct=True, code=0):
        environment = dict(os.environ)
        environment.pop("TESSERA_TEST_NULL", None)
        if not direct:
            environment["TESSERA_TEST_NULL"] = "no_direct"
        done = subprocess.run(
            [tessera_binary, command, model, "--backend-path", null, "--backends", "null,reference",
             "--threads", "1", *map(str, options)],
            capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


def test_layouts_of_other_plug_ins_are_no_news(tessera_binary, null, needs_native, tmp_path):
    """Kernels for any dense layout are offered for the layouts of `null` too, which `native` does
    not know. This is not reported as an error."""
    model = save_chain(tmp_path / "chain.onnx", ("Neg", "Abs"))
    command = [tessera_binary, "tune", model, "--all", "--backend-path", null, "--backends",
               "null,native,reference", "--threads", "1", "--exclude", "null:Abs"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "does not know the layout" not in text and "all with right results" in text
    report = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True,
                                       check=True, cwd=tmp_path).stdout)
    own = {"row_major", "nhwc", "nchw8c", "nchw16c"}
    for candidate in report["candidates"]:
        if candidate["backend"] == "native":
            assert {port["layout"] for port in candidate["inputs"]} <= own


def save(path, nodes, outputs):
    def tensor(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 6])

    graph = helper.make_graph(nodes, "small", [tensor("x")], list(map(tensor, outputs)))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


def save_chain(path, ops=OPS):
    """x -> ops one after the other, named "1", "2" and so on."""
    names = ["x", *(f"v{index}" for index in range(1, len(ops))), "y"]
    return save(path, [helper.make_node(op, [names[index]], [names[index + 1]], name=str(index + 1))
                       for index, op in enumerate(ops)], ["y"])


def explain(tessera, model, *options, **keywords):
    return json.loads(tessera("explain", model, "--json", "--runs", "1", *options, **keywords))


def told(report):
    """The steps: a node's name, or the layouts of a conversion."""
    return [step["name"] if step["nodes"] else
            (step["op"], step["inputs"][0]["layout"], step["outputs"][0]["layout"])
            for step in report["steps"]]


def choices(report):
    return {node: step["algorithm"] or step["backend"]
            for step in report["steps"] for node in step["nodes"]}


@pytest.fixture
def priced(tessera, tmp_path):
    """Explains a model with prices in microseconds: kernels by (op, algorithm), with "reference" as
    the algorithm of the reference and the last op for a group; conversions by (from, to).
    Everything else is expensive. `builds` has the same keys as kernels; building takes no time for
    those that it does not name."""

    def call(model, kernels, conversions, *options, builds=MappingProxyType({}), **keywords):
        table = tmp_path / "costs.json"
        tessera("tune", model, "--all", "--output", table, **keywords)
        costs = json.loads(table.read_text())
        # The measured plans do not match the invented prices.
        costs["plans"] = []
        used = set()

        def price(timing, key, prices):
            used.add(key)
            seconds = prices.get(key, 1000) * US
            timing.update(seconds=seconds, low=seconds, high=seconds)

        for kernel in costs["kernels"]:
            op = kernel["work"].split("=")[-1].split(".")[0]
            # Timed alone: these are invented prices, not measurements in a plan.
            kernel.pop("in_context", None)
            timing = kernel.get("warm") or kernel.get("cold")
            price(timing, (op, kernel["algorithm"] or kernel["backend"]), kernels)
            kernel["build_seconds"] = builds.get((op, kernel["algorithm"]), 0) * US
        for conversion in costs["conversions"]:
            price(conversion["timing"], (conversion["from"], conversion["to"]), conversions)
        assert used >= kernels.keys() | conversions.keys(), "a price that nothing has"
        table.write_text(json.dumps(costs))
        return explain(tessera, model, "--costs", table, *options, **keywords)

    return call


def pins_of(places):
    return [option for index, place in enumerate(places)
            for option in ("--pin", f"{index + 1}={place}")]


PINS = pins_of(["null:a", "null:a", "null:b", "null:b", "null:a", "reference"])


@pytest.mark.parametrize("direct", [True, False])
def test_conversions_are_steps_and_copies_between_devices_say_so(tessera, tmp_path, direct):
    model = save_chain(tmp_path / "chain.onnx")
    report = explain(tessera, model, *PINS, direct=direct)
    to_b = ([("convert+copy", A, B)] if direct else
            [("convert", A, DEFAULT), ("convert+copy", DEFAULT, B)])
    to_a = ([("convert+copy", B, A)] if direct else
            [("convert+copy", B, DEFAULT), ("convert", DEFAULT, A)])
    assert told(report) == [("convert", DEFAULT, A), "1", "2", *to_b, "3", "4", *to_a, "5",
                            ("convert", A, DEFAULT), "6"]
    devices = {port["layout"]: port["device"] for step in report["steps"]
               for port in step["inputs"] + step["outputs"]}
    assert devices == {DEFAULT: "cpu", A: "cpu", B: "null"}


@pytest.mark.parametrize("direct", [True, False])
def test_results_are_those_of_the_reference(tessera, tmp_path, direct):
    model = save_chain(tmp_path / "chain.onnx")
    np.save(tmp_path / "x.npy", np.linspace(-9, 9, 24, dtype=np.float32).reshape(4, 6))
    found = []
    for folder, pins in (("null", PINS), ("reference", pins_of(["reference"] * 6))):
        tessera("run", model, "--input", "x=x.npy", "--output", folder, *pins, direct=direct)
        found.append(np.load(next((tmp_path / folder).glob("*.npy"))))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)


def save_readers(path, count):
    """x -> Abs -> `count` nodes that read its result; each has an output of its own."""
    nodes = [helper.make_node("Abs", ["x"], ["h"], name="first"),
             *(helper.make_node(op, ["h"], [f"y{index}"], name=f"reader{index}")
               for index, op in enumerate(("Neg", "Floor")[:count]))]
    return save(path, nodes, [f"y{index}" for index in range(count)])


@pytest.mark.parametrize("readers", [1, 2])
def test_a_shared_conversion_is_paid_once(priced, tmp_path, readers):
    """6 for the kernel and 5 for the conversion, compared with 10: better for two readers, which
    share the 5, but not for one."""
    model = save_readers(tmp_path / "readers.onnx", readers)
    kernels = {("Abs", "reference"): 1, ("Neg", "reference"): 10, ("Neg", "a"): 6}
    if readers == 2:
        kernels |= {("Floor", "reference"): 10, ("Floor", "a"): 6}
    report = priced(model, kernels, {(DEFAULT, A): 5, (A, DEFAULT): 0.25})
    chosen = choices(report)
    expected = "a" if readers == 2 else "reference"
    assert [chosen[f"reader{index}"] for index in range(readers)] == [expected] * readers
    assert report["conversion_count"] == (3 if readers == 2 else 0)
    price = 1 + 5 + 2 * (6 + 0.25) if readers == 2 else 1 + 10
    assert report["placement"]["predicted_us"] == pytest.approx(price)
    assert report["placement"]["is_proven_optimal"] and report["placement"]["gap"] < 1e-9


def test_a_dearer_kernel_where_that_saves_conversions(priced, tmp_path):
    """The second node is fastest on B, but the conversions to B and back cost more than that saves.
    """
    model = save_chain(tmp_path / "chain.onnx", OPS[:3])
    kernels = {(op, "a"): 10 for op in OPS[:3]} | {("Abs", "b"): 4}
    ends = {(DEFAULT, A): 1, (A, DEFAULT): 1}
    stays = priced(model, kernels, ends | {(A, B): 4, (B, A): 4})
    assert set(choices(stays).values()) == {"a"}
    moves = priced(model, kernels, ends | {(A, B): 2, (B, A): 2})
    assert choices(moves) == {"1": "a", "2": "b", "3": "a"}
    # It would have to be faster by 2: conversions cost 8, and the kernel saves 10 - 4.
    behind = [candidate["behind_us"] for candidate in stays["candidates"]
              if candidate["nodes"] == ["2"] and candidate["algorithm"] == "b"]
    assert behind == [pytest.approx(2)]
    ahead = [candidate["ahead_us"] for candidate in moves["candidates"]
             if candidate["nodes"] == ["2"] and candidate["algorithm"] == "b"]
    assert ahead == [pytest.approx(2)]


def test_a_detour_that_is_cheaper_than_the_direct_way(priced, tmp_path):
    model = save_chain(tmp_path / "chain.onnx", OPS[:2])
    report = priced(model, {("Neg", "a"): 1, ("Abs", "b"): 1},
                    {(DEFAULT, A): 1, (A, DEFAULT): 1, (DEFAULT, B): 1, (B, DEFAULT): 1, (A, B): 50},
                    *pins_of(["null:a", "null:b"]))
    assert told(report) == [("convert", DEFAULT, A), "1", ("convert", A, DEFAULT),
                            ("convert+copy", DEFAULT, B), "2", ("convert+copy", B, DEFAULT)]
    assert report["placement"]["predicted_us"] == pytest.approx(6)


@pytest.mark.parametrize("group_us, expected", [(8, "pair"), (12, "a")])
def test_a_group_against_its_nodes_alone(priced, tmp_path, group_us, expected):
    model = save_chain(tmp_path / "pair.onnx", ("Sin", "Cos"))
    report = priced(model, {("Sin", "a"): 5, ("Cos", "a"): 5, ("Cos", "pair"): group_us},
                    {(DEFAULT, A): 1, (A, DEFAULT): 1})
    assert set(choices(report).values()) == {expected}
    assert report["placement"]["predicted_us"] == pytest.approx(2 + min(10, group_us))


def test_pins_hold_whatever_they_cost(priced, tmp_path):
    model = save_chain(tmp_path / "chain.onnx", OPS[:3])
    kernels = {(op, "reference"): 1 for op in OPS[:3]} | {("Abs", "b"): 900}
    report = priced(model, kernels, {(DEFAULT, B): 50, (B, DEFAULT): 50}, "--pin", "2=null:b")
    assert choices(report) == {"1": "reference", "2": "b", "3": "reference"}
    assert report["placement"]["predicted_us"] == pytest.approx(1002)


def test_pins_that_contradict_are_both_named_with_their_node(tessera, tmp_path):
    model = save_chain(tmp_path / "chain.onnx")
    error = tessera("explain", model, "--pin", "3=null:a", "--pin", "3=reference", code=2)
    for part in ("pin '3=reference'", "pin '3=null:a'", "node '3' (Floor)"):
        assert part in error


def save_thicket(path, count=160, newest=40):
    """Nodes that each add two of the newest values: too wide for a solver that eliminates node by
    node."""
    rng = random.Random(7)
    values, nodes = ["x"], []
    for index in range(count):
        inputs = [rng.choice(values[-newest:]) for _ in range(2)]
        op = "Sum" if index % 2 else rng.choice(OPS)
        nodes.append(helper.make_node(op, inputs[:1 + index % 2], [f"v{index}"], name=f"n{index}"))
        values.append(f"v{index}")
    read = {name for node in nodes for name in node.input}
    return save(path, nodes, [name for name in values if name not in read])


def test_a_solver_out_of_time_gives_the_best_it_has_with_its_gap(priced, tmp_path, tessera):
    model = save_thicket(tmp_path / "thicket.onnx")
    rng = random.Random(2)
    kernels = {(op, algorithm): rng.randint(1, 20) for op in (*OPS, "Sum")
               for algorithm in ("reference", "a", "b")}
    layouts = (DEFAULT, A, B)
    conversions = {(source, target): rng.randint(1, 9) for source in layouts for target in layouts
                   if source != target}
    whole = priced(model, kernels, conversions)["placement"]
    cut_short = priced(model, kernels, conversions, "--solve-budget", "1e-6")["placement"]
    assert not cut_short["is_proven_optimal"]
    assert 0 < cut_short["gap"] < 1
    assert cut_short["lower_bound_us"] <= whole["predicted_us"] <= cut_short["predicted_us"] + 1e-6
    # The text output reports this too; nevertheless the plan runs and the program succeeds.
    costs = tmp_path / "costs.json"
    text = " ".join(tessera("explain", model, "--costs", costs, "--solve-budget", "1e-6").split())
    assert "the search ended before it could tell whether a better one exists" in text
    tessera("run", model, "--costs", costs, "--solve-budget", "1e-6", "--random", "1")


def test_wrong_solve_budgets_are_refused(tessera, tmp_path):
    model = save_chain(tmp_path / "chain.onnx")
    for text in ("0", "-1", "soon"):
        assert "--solve-budget" in tessera("explain", model, "--solve-budget", text, code=2)


@pytest.mark.parametrize("aim, chosen, bound_us", [
    ("latency", "a", 3), ("200-runs", "a", 3 + 4700 / 200), ("50-runs", "reference", 50),
    ("start", "reference", 50)])
def test_a_kernel_that_is_slow_to_build_has_to_earn_that(priced, tmp_path, aim, chosen, bound_us):
    model = save_chain(tmp_path / "chain.onnx", ("Neg",))
    report = priced(model, {("Neg", "reference"): 50, ("Neg", "a"): 1},
                    {(DEFAULT, A): 1, (A, DEFAULT): 1}, "--optimize-for", aim,
                    builds={("Neg", "a"): 4700})
    assert choices(report) == {"1": chosen}
    placement = report["placement"]
    assert placement["predicted_us"] == pytest.approx(3 if chosen == "a" else 50)
    assert placement["build_us"] == pytest.approx(4700 if chosen == "a" else 0)
    assert placement["lower_bound_us"] == pytest.approx(bound_us)
    assert placement["gap"] == pytest.approx(0, abs=1e-9)


def test_wrong_aims_are_refused(tessera, tmp_path):
    model = save_chain(tmp_path / "chain.onnx", ("Neg",))
    for text in ("speed", "0-runs", "-5-runs", "5", "1e3-runs", "5-runs-", "1000000001-runs",
                 "99999999999999999999-runs"):
        error = tessera("explain", model, "--optimize-for", text, "--no-optimize", code=2)
        assert "optimize_for" in error and "'100-runs'" in error


def test_a_node_that_nobody_serves_is_named_with_every_answer(tessera, tmp_path):
    model = save_chain(tmp_path / "chain.onnx", ("Neg", "Tan"))
    error = tessera("explain", model, "--exclude", "reference:Tan", code=2)
    for part in ("Unsupported: node '2' (Tan)", "null: it knows no such op",
                 "reference: it was excluded"):
        assert part in error
    error = tessera("explain", model, "--pin", "2=null", code=2)
    assert "node '2' (Tan)" in error and "null: it knows no such op" in error


@pytest.mark.parametrize("command", [("explain",), ("tune", "--in-process")])
def test_groups_that_leave_a_node_over_are_named_with_every_answer(tessera, tmp_path, command):
    model = save_chain(tmp_path / "chain.onnx", ("Sin", "Cos", "Sin"))
    error = tessera(command[0], model, *command[1:], "--pin", "1=null:pair",
                    "--pin", "3=null:turned", code=2)
    # Both pairs contain the middle node, so whichever is chosen, one node is not computed.
    for part in ("Unsupported: node '", "no choice was found that computes this node beside all",
                 "null offers it with node '2' (Cos)", "reference: the node is held by pin '"):
        assert part in error


def test_a_pin_to_a_group_is_served_whatever_stands_first_for_its_nodes(tessera, tmp_path):
    model = save_chain(tmp_path / "chain.onnx", ("Cos", "Sin", "Cos"))
    # Without the pin, the first pair would be chosen, and nothing could compute node 3.
    report = explain(tessera, model, "--pin", "3=null:pair")
    assert choices(report) == {"1": "a", "2": "pair", "3": "pair"}
