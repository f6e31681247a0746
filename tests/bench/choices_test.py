"""bench/choices.py: a short run, and its parts: bursts, full stores, verdicts, targets."""

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

# These tests measure times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import choices  # noqa: E402


@pytest.fixture
def small_networks(tmp_path):
    """A folder with two networks that share a layer. Tuning them takes long enough for their prices
    to be kept for other models."""
    weight = onnx.numpy_helper.from_array(np.full((128, 128, 3, 3), 0.01, np.float32), "w")
    for name, ops in (("a", ["Relu", "Tanh"]), ("b", ["Sigmoid"])):
        nodes, x = [], "x"
        for index in range(6):
            op = "Conv" if index % 2 == 0 else ops[index % len(ops)]
            inputs = [x, "w"] if op == "Conv" else [x]
            pads = {"pads": [1] * 4} if op == "Conv" else {}
            nodes.append(onnx.helper.make_node(op, inputs, [f"v{index}"], name=f"n{index}", **pads))
            x = f"v{index}"
        shape = [1, 128, 64, 64]
        values = [onnx.helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, shape)
                  for value in ("x", x)]
        graph = onnx.helper.make_graph(nodes, name, values[:1], values[1:], [weight])
        onnx.save(onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8),
            tmp_path / f"{name}.onnx")
    return tmp_path


def test_a_short_run_has_all_rows(tessera, small_networks, tmp_path):
    file = tmp_path / "figures.json"
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "choices.py", "--folder", small_networks,
         "--threads", "1", "--turns", "4", "--json", file, "--scenarios", "silence,store",
         "--module-dir", Path(tessera.__file__).parents[1]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    figures = json.loads(file.read_text())
    assert process.returncode == (1 if figures["failures"] else 0), process.stderr
    rows = figures["results"]
    assert {(row["model"], row["scenario"]) for row in rows} == {
        (model, scenario) for model in "ab" for scenario in ("silence", "store")}
    assert all(row["verdict"] in ("", "same") for row in rows), process.stderr
    assert not any("no price was reused" in text for text in figures["failures"])
    assert max(map(len, process.stdout.splitlines()[3:])) <= 100


def test_wrong_arguments_are_refused(tessera, tmp_path):
    def complaint(*options):
        process = subprocess.run(
            [sys.executable, ROOT / "bench" / "choices.py", *options,
             "--module-dir", Path(tessera.__file__).parents[1]],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
        assert process.returncode == 2
        return process.stderr

    assert "found 'dust'" in complaint("--scenarios", "dust")
    assert "no .onnx files" in complaint("--folder", tmp_path)
    (tmp_path / "alone.onnx").touch()
    assert "needs several models" in complaint("--folder", tmp_path)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "alone.onnx").touch()
    assert "several files have the same name" in complaint("--folder", tmp_path)


def test_bursts_take_half_of_the_time():
    pairs = list(itertools.islice(choices.bursts("seed"), 2000))
    assert all(0.1 <= seconds <= 2 for pair in pairs for seconds in pair)
    busy, idle = (sum(each) for each in zip(*pairs))
    assert busy / (busy + idle) == pytest.approx(0.5, abs=0.02)
    assert pairs[:3] == list(itertools.islice(choices.bursts("seed"), 3))
    assert pairs[:3] != list(itertools.islice(choices.bursts("other"), 3))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 17])
def test_a_full_store_has_all_other_names(count, tmp_path):
    names = [f"n{index}" for index in range(count)]
    tuned = []

    def tune(name, store):
        tuned.append(name)
        (Path(store) / name).touch()

    found = {name: {path.name for path in Path(store).iterdir()}
             for name, store in choices.fill_stores(names, tmp_path, tune)}
    assert found == {name: set(names) - {name} for name in names}
    assert len(tuned) == choices.count_fillings(count) <= 5 * count
    assert not any(tmp_path.iterdir())


def test_a_copied_store_has_no_packed_weights(tmp_path):
    for file in ("user/tessera/costs", "user/tessera/kernels/1/kernel.packs",
                 "user/tessera/packs/2/large.packs"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with choices.copy_of(tmp_path) as copy:
        files = {str(path.relative_to(copy)) for path in Path(copy).rglob("*") if path.is_file()}
    assert files == {"user/tessera/costs", "user/tessera/kernels/1/kernel.packs"}
    assert not Path(copy).exists()


def choice(scenario, bind, *steps):
    tuning = {"steps": list(steps), "seconds": 2.0, "measured": 100, "reused": 0}
    return choices.Choice(scenario, bind, f"{scenario}{bind}", tuning)


def test_each_plan_runs_once_and_the_first_twice():
    made = [choice("silence", 0, "a"), choice("silence", 1, "b"), choice("noise", 0, "b"),
            choice("noise", 1, "b"), choice("store", 0, "c"), choice("store", 1, "a")]
    assert [one.costs for one in choices.plans_to_run(made)] == [
        "silence0", "silence0", "silence1", "store0"]
    rows = choices.rows_of(made, {"steps": [["a"], ["a"], ["b"], ["c"]],
                                  "times_ms": [[1.1], [1.0], [2.0], [3.0]]})
    assert [(row["verdict"], row["times_ms"], row["silent_ms"]) for row in rows] == [
        ("", [1.1], [1.0]),      # the twin
        ("", [2.0], [1.0]),      # of the second bind in silence, compared with the first
        ("", [2.0], [1.0]),
        ("same", [2.0], [2.0]),
        ("", [3.0], [1.0]),
        ("", [1.0], [2.0])]


def test_a_plan_that_another_process_does_not_bind_is_told():
    made = [choice("silence", 0, "a"), choice("noise", 0, "b"), choice("store", 0, "c")]
    times = [[1.0], [1.0], [2.0], [3.0]]
    rows = choices.rows_of(made, {"steps": [["a"], ["a"], ["x"], ["c"]], "times_ms": times})
    assert [row["verdict"] for row in rows] == ["", "not reproduced", ""]
    rows = choices.rows_of(made, {"steps": [["a"], ["x"], ["b"], ["c"]], "times_ms": times})
    assert [row["verdict"] for row in rows] == ["not reproduced"] * 3


def rows_with(scenario, ratios, verdict=""):
    return [{"model": f"m{index}", "threads": 1, "scenario": scenario, "verdict": verdict,
             "tuning": {"seconds": 2.0, "measured": 100, "reused": 0}, "ratio": ratio,
             "times_ms": [ratio * 5] * 9, "silent_ms": [5.0] * 9}
            for index, ratio in enumerate(ratios)]


@pytest.mark.parametrize(("scenario", "ratios", "complaints"), [
    ("noise", [1.02, 1.03, 0.9], []),
    ("noise", [1.07, 1.04], ["mean 1.0549 exceeds 1.03"]),
    ("noise", [1.09, 0.95, 1.0], ["m0 with 1.090 exceeds 1.08"]),
    ("store", [1.005, 1.005], []),
    ("store", [1.2, 0.8], []),
    ("store", [1.02, 1.01], ["mean 1.0150 exceeds 1.01"]),
])
def test_missed_targets_are_told(scenario, ratios, complaints):
    silent = rows_with("silence", [2.0] * len(ratios))
    [summary] = choices.summarize(silent + rows_with(scenario, ratios))
    missed = choices.missed_targets(summary)
    assert len(missed) == len(complaints)
    assert all(expected in found for expected, found in zip(complaints, missed))


def test_equal_plans_have_the_ratio_1():
    different, = rows_with("noise", [1.1])
    same, = rows_with("noise", [1.0], "same")
    same["silent_ms"] = same["times_ms"] = [3.0, 4.0, 5.0] * 3
    [summary] = choices.summarize([different, same])
    assert summary["ratio"] == pytest.approx(1.1 ** 0.5)
    assert (summary["same"], summary["rows"], summary["largest_of"]) == (1, 2, "m0")
    lost, = rows_with("noise", [9.0], "not reproduced")
    assert choices.summarize([lost]) == []


def test_a_store_of_which_nothing_is_used_is_told():
    rows = rows_with("silence", [1.0, 1.0]) + rows_with("store", [1.0, 1.0])
    assert choices.unused_stores(choices.totals_of(rows)) == [
        "store, 1 thread: no price was reused"]
    rows[-1]["tuning"] = {**rows[-1]["tuning"], "reused": 3}
    assert choices.unused_stores(choices.totals_of(rows)) == []


def turns(middle, spread, seed):
    rng = random.Random(seed)
    return [middle * (1 + rng.uniform(-spread, spread)) for _ in range(40)]


def complaints_about_binds(twin, first, second):
    """Of the times of the first bind's plan and its twin, and of the second bind's plan."""
    made = [choice("silence", 0, "a"), choice("silence", 1, "b")]
    rows = choices.rows_of(made, {"steps": [["a"], ["a"], ["b"]], "times_ms": [twin, first, second]})
    return choices.different_binds([{"model": "m", "threads": 1, **row} for row in rows])


@pytest.mark.parametrize(("first", "second", "spread", "is_different"), [
    (3, 3.003, 0.01, False), (3, 3.15, 0.01, True), (3.15, 3, 0.01, True), (3, 3.15, 0.5, False)])
def test_plans_are_as_fast_where_noise_is_larger(first, second, spread, is_different):
    complaints = complaints_about_binds(
        turns(first, spread, 9), turns(first, spread, 1), turns(second, spread, 2))
    assert bool(complaints) == is_different


def test_what_slows_a_whole_turn_is_no_difference():
    busy = [index % 7 + 1 for index in range(40)]
    times = [[one * factor for one, factor in zip(turns(middle, 0.002, seed), busy)]
             for middle, seed in ((3, 1), (3, 2), (3.1, 3))]
    [complaint] = complaints_about_binds(*times)
    assert "the plan of bind 2 takes 1.03" in complaint
