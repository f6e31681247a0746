"""`tessera tune`, `verify MODEL`, `explain` and `run` with costs: what is measured, kept and
refused. A plug-in that lies loses only its candidate."""

import json
import signal
import time

import numpy as np
import pytest
from programs import end_of, plain_environment, run_program, start_program
from small_models import node, save_model

COLUMNS = 100
# Lie -> the candidate's reason for refusal.
LIES = {
    "wrong_numbers": "numbers",
    "gives_nan": "found nan",
    "leaves_the_last_element": "numbers",
    "writes_behind_output": "guard bytes",
    "writes_before_output": "guard bytes",
    # The worker's process ends: guard pages surround its buffers, and its inputs are read-only.
    "overruns_workspace": "segmentation fault",
    "changes_input": "segmentation fault",
    "in_place": "in place",
    "differs_from_run_to_run": "the same twice",
    "dirty_padding": "padding is zero",
    "wrong_with_two_threads": "numbers",
    "cannot_build": "it cannot after all",
    "pack_is_wrong": "numbers",
    "pack_overruns": "packs",
    "forgets_to_add": "adding",
    "takes_long": "took longer than 0.1 s to run",
}


@pytest.fixture(scope="module")
def liar(built_plugin):
    return built_plugin("liar")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """x -> MatMul -> Relu -> Add(x') -> Relu, with odd sizes."""
    folder = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((9, 7)).astype(np.float32)
    other = rng.standard_normal((5, 7)).astype(np.float32)
    x = rng.standard_normal((5, 9)).astype(np.float32)
    # Makes the first element positive, so that Relu leaves it unchanged and a later error in it is
    # visible.
    x[0] = np.abs(x[0])
    weight[:, 0] = np.abs(weight[:, 0])
    nodes = [node("MatMul", "x weight", "product", "product"),
             node("Relu", "product", "positive", "positive"),
             node("Add", "positive product", "sum", "sum"),
             node("Add", "sum other", "shifted", "shift"), node("Relu", "shifted", "y", "last")]
    file = save_model(folder / "model.onnx", nodes, {"x": [5, 9]}, {"y": [5, 7]},
                      {"weight": weight, "other": other})
    product = x @ weight
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.maximum(np.maximum(product, 0) + product + other, 0))
    return file


@pytest.fixture
def tessera(tessera_binary, model):
    def call(*arguments, lie=None, code=0, **options):
        variables = {"TESSERA_TEST_LIE": lie} if lie else {}
        return run_program(tessera_binary, *arguments, code=code, cwd=model.parent,
                           env=plain_environment(**variables), **options)

    return call


def with_liar(liar):
    return ["--backend-path", liar, "--backends", "liar,reference"]


def tune(tessera, model, *arguments, lie=None):
    result = tessera("tune", model, "--all", "--json", "--threads", 2, "--input", "x=x.npy",
                     *arguments, lie=lie)
    return json.loads(result.stdout)


def test_everything_is_measured_and_judged(tessera, model, liar):
    report = tune(tessera, model, *with_liar(liar))
    assert report["tuning"]["measured_count"] > 0 and report["tuning"]["refused_count"] == 0
    backends = {candidate["backend"] for candidate in report["candidates"]}
    assert {"liar", "reference"} <= backends
    for candidate in report["candidates"]:
        if candidate["verdict"] == "not_measured":
            assert candidate["thread_count"] == 1  # cannot win
            continue
        assert candidate["verdict"] == "fine" and candidate["relative_error"] <= candidate["tolerance"]
        time_found = candidate["time"]
        assert 0 < time_found["low_us"] <= time_found["time_us"] <= time_found["high_us"] or \
            time_found["time_us"] < 1
        assert candidate["round_count"] >= 1
    covered = [node for candidate in report["candidates"] if candidate["is_chosen"]
               for node in candidate["nodes"]]
    assert sorted(covered) == sorted(set(covered)) and "product" in covered
    assert report["placement"]["predicted_us"] > 0
    # The conversions of the plug-in's layouts have prices, too.
    assert {("row_major", "liar:fours"), ("liar:fours", "row_major")} <= {
        (conversion["from_layout"], conversion["to_layout"]) for conversion in report["conversions"]}


def test_what_was_measured_is_not_measured_again(tessera, model, tmp_path):
    costs = tmp_path / "costs.json"
    first = tune(tessera, model, "--output", costs)
    assert first["tuning"]["measured_count"] > 0 and costs.exists()
    again = tune(tessera, model, "--costs", costs)
    # Only candidates that were skipped because they are too slow may be measured now.
    assert again["tuning"]["measured_count"] < first["tuning"]["measured_count"] / 2
    chosen = [candidate for candidate in again["candidates"] if candidate["is_chosen"]]
    assert all(candidate["time"] for candidate in chosen)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_costs_the_candidate_and_nothing_else(tessera, model, liar, lie, bin_dir):
    if bin_dir.parent.name == "asan" and lie.startswith(("writes", "overruns", "pack_overruns")):
        pytest.skip("the sanitizer may catch this one first, and ends the program")
    timeout = ["--candidate-timeout", "0.1"] if lie == "takes_long" else []
    report = tune(tessera, model, *with_liar(liar), *timeout, lie=lie)
    verdict = "not_built" if lie == "cannot_build" else "refused"
    refused = [candidate for candidate in report["candidates"] if candidate["verdict"] == verdict]
    assert refused and all(candidate["backend"] == "liar" for candidate in refused), refused
    assert any(LIES[lie] in candidate["reason"] for candidate in refused), refused
    assert not any(candidate["is_chosen"] for candidate in refused)
    tessera("run", model, "--input", "x=x.npy", "--expect", "y=y.npy", "--optimize", "--threads", 2,
            *with_liar(liar), *timeout, lie=lie)


def test_a_refusal_is_kept_in_the_table(tessera, model, liar, tmp_path):
    costs = tmp_path / "costs.json"
    tune(tessera, model, *with_liar(liar), "--output", costs, lie="wrong_numbers")
    # The plug-in no longer lies, but the verdict is kept.
    result = tessera("explain", model, *with_liar(liar), "--costs", costs, "--threads", 2, "--json",
                     code=None)
    report = json.loads(result.stdout)
    refused = [candidate for candidate in report["candidates"] if candidate["verdict"] == "refused"]
    assert refused and all("numbers" in candidate["reason"] for candidate in refused)
    assert not any(step["backend"] == "liar" and step["op"] == "Relu" for step in report["steps"])


def test_verify_model_says_who_is_right(tessera, model, liar):
    fine = tessera("verify", model, *with_liar(liar), "--threads", 2)
    assert "liar" in fine.stdout and "reference" in fine.stdout and "tolerance" in fine.stdout
    wrong = tessera("verify", model, *with_liar(liar), "--threads", 2, code=1, lie="wrong_numbers")
    assert "refused liar for Relu: numbers: element" in wrong.stdout
    assert all(len(line) <= COLUMNS for line in wrong.stdout.splitlines())
    result = tessera("verify", model, *with_liar(liar), "--json", code=None, lie="gives_nan")
    candidates = json.loads(result.stdout)["candidates"]
    assert result.returncode == 1
    assert {candidate["op"] for candidate in candidates
            if candidate["verdict"] == "refused"} == {"Relu"}
    assert all(candidate["time"] is None for candidate in candidates)
    tessera("verify", code=2)
    tessera("verify", model, "--backend", liar, code=2)


def test_explain_shows_every_candidate_of_a_node(tessera, model, liar, tmp_path):
    costs = tmp_path / "costs.json"
    tune(tessera, model, *with_liar(liar), "--output", costs)
    result = tessera("explain", model, *with_liar(liar), "--costs", costs, "--threads", 2, "--node",
                     "last")
    assert "Relu: last" in result.stdout and "chosen" in result.stdout
    assert "liar:fours" in result.stdout and "\u00b1" in result.stdout
    assert "conversion from" in result.stdout and "MatMul: product" not in result.stdout
    everything = tessera("explain", model, *with_liar(liar), "--costs", costs, "--candidates",
                         code=None)
    assert "MatMul: product" in everything.stdout and "predicted" in everything.stdout
    without = tessera("explain", model, "--node", "last", code=None)
    assert "--optimize" in without.stdout and without.returncode == 0


def test_table_fits_the_terminal(tessera, model, liar):
    result = tessera("tune", model, "--all", "--table", *with_liar(liar), "--threads", 2, "--input",
                     "x=x.npy", lie="in_place")
    assert all(len(line) <= COLUMNS for line in result.stdout.splitlines())
    assert "to build" in result.stdout and "refused liar" in result.stdout
    assert result.stderr == ""  # no progress line without a terminal


def test_optimized_runs_agree_and_bench_takes_costs(tessera, model, tmp_path):
    costs = tmp_path / "costs.json"
    tune(tessera, model, "--output", costs)
    for arguments in (["--optimize"], ["--costs", costs], ["--optimize", "--costs", costs]):
        tessera("run", model, "--input", "x=x.npy", "--expect", "y=y.npy", *arguments)
    tessera("bench", model, "--costs", costs, "--seconds", "0.1")


@pytest.mark.parametrize(("damage", "words"), [
    (lambda text: text[:len(text) // 2], "JSON"),
    (lambda text: text.replace('"threads": ', '"threads": -', 1), "threads"),
    (lambda text: text.replace("tessera costs", "grocery costs"), "format"),
    (lambda text: "", "JSON"),
    (lambda text: text.replace('"version": 6', '"version": 7'), "version 6"),
    (lambda text: text.replace('"machine": "', '"machine": "another '), "this machine"),
])
def test_a_damaged_table_is_an_error_that_says_where(tessera, model, tmp_path, damage, words):
    costs = tmp_path / "costs.json"
    tune(tessera, model, "--output", costs)
    costs.write_text(damage(costs.read_text()))
    result = tessera("run", model, "--random", 1, "--costs", costs, code=2)
    assert words in result.stderr and "costs.json" in result.stderr


def test_wrong_arguments_are_bad_input(tessera, model, tmp_path):
    tessera("tune", model, "--candidate-timeout", "0", code=2)
    tessera("run", model, "--random", 1, "--costs", "nowhere.json", code=2)
    (tmp_path / "folder.json").mkdir()
    tessera("tune", model, "--output", tmp_path / "folder.json", code=2)


@pytest.mark.alone
def test_interrupt_keeps_what_was_measured(tessera_binary, model, liar, tessera, tmp_path):
    costs = tmp_path / "costs.json"
    process = start_program(
        tessera_binary, "tune", model, "--all", "--json", *with_liar(liar), "--threads", "1",
        "--output", costs, variables={"TESSERA_TEST_LIE": "takes_long"}, cwd=model.parent)
    # At this time it is measuring one of the Relu candidates, each of which takes seconds.
    time.sleep(1)
    assert process.poll() is None
    report = json.loads(end_of(process, 0, signal.SIGINT)[0])
    assert report["tuning"]["is_stopped"]
    written = json.loads(costs.read_text())
    assert 0 < len(written["kernels"]) < len(report["candidates"])
    assert tessera("run", model, "--input", "x=x.npy", "--expect", "y=y.npy", "--costs",
                   costs, code=None).returncode == 0
