"""tessera bench with ranges of sizes in --shape: requests of random shapes. No test compares times
with limits, because other processes may use the machine."""

import json
import re
import signal
import time

import numpy as np
import pytest
from programs import end_of, run_program, start_program, wait_for
from small_models import node, save_model

REFERENCE = ("--backends", "reference", "--threads", "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """tokens * weight + bias, where both inputs have the same rows in each request."""
    weight = np.ones((4, 8), np.float32)
    return save_model(tmp_path_factory.mktemp("shapes") / "model.onnx",
                      [node("MatMul", "tokens weight", "product", "matmul"),
                       node("Add", "product bias", "y", "add")],
                      {"tokens": ["batch", "rows", 4], "bias": ["batch", "rows", 8]}, ["y"],
                      {"weight": weight})


@pytest.fixture
def run(tessera_binary, model):
    return lambda *options, code=0, command="bench": run_program(
        tessera_binary, command, model, *REFERENCE, *map(str, options), code=code)


@pytest.fixture
def ask(run):
    return lambda *options: json.loads(run(*options, "--json").stdout)


BOTH = ("--shape", "tokens=1x2..400x4", "--shape", "bias=1x2..400x8")


def test_the_figures_agree_with_each_other(ask):
    report = ask(*BOTH, "--requests", 40)
    assert report["run_count"] == 40
    assert 20 < report["shape_count"] <= 40
    assert 0 < report["median_us"] <= report["p99_us"] <= report["max_us"]
    assert report["load_us"] > 0 and report["bind_us"] > 0 and report["first_run_us"] > 0
    assert report["thread_count"] == 1 and report["step_count"] >= 1


def test_a_hundred_requests_are_the_default(ask):
    report = ask("--shape", "tokens=1x2..3x4", "--shape", "#1=1x2..3x8")
    assert (report["run_count"], report["shape_count"]) == (100, 2)


def test_one_name_gets_one_size(ask):
    """If `bias` had other rows than `tokens`, Add would fail."""
    assert ask("--shape", "tokens=1..3x2..400x4", "--requests", 20)["shape_count"] > 10
    assert ask("--shape", "tokens=1..3x2..400x4", "--shape", "bias=1..3x2..400x8",
               "--requests", 20)["shape_count"] > 10
    assert ask("--shape", "tokens=5..5x6x4", "--requests", 3)["shape_count"] == 1


def test_a_file_may_be_beside_a_range(ask, tmp_path):
    np.save(tmp_path / "bias.npy", np.zeros((1, 1, 8), np.float32))
    report = ask("--shape", "tokens=1x2..50x4", "--input", f"bias={tmp_path / 'bias.npy'}",
                 "--requests", 10)
    assert report["run_count"] == 10 and report["shape_count"] > 1


def test_equal_seeds_draw_equal_shapes(ask):
    counts = {ask("--shape", "tokens=1x1..9x4", "--requests", 9, "--random", 7)["shape_count"]
              for _ in range(2)}
    assert len(counts) == 1


def test_the_text_is_one_line_of_figures(run):
    done = run(*BOTH, "--requests", 5)
    assert done.stderr == ""
    title, figures, counts = done.stdout.splitlines()
    assert re.split(" {2,}", title.strip()) == [
        "load", "bind", "first run", "median", "p99", "max", "requests", "shapes"]
    assert len(re.split(" {2,}", figures.strip())) == 8
    assert re.fullmatch(r"\d+ steps?: .*\d+ on reference.*; 1 thread", counts)


RANGE = ("--shape", "tokens=1x2..3x4")


@pytest.mark.parametrize(("options", "error"), [
    (["--shape", "tokens=1x8..4x4"],
     "--shape 'tokens=1x8..4x4': expected sizes, or ranges LOW..HIGH"),
    (["--shape", "tokens=1x-1..4x4"], "found '-1..4'"),
    (["--shape", "tokens=1x1..9223372036854775808x4"], "found '1..9223372036854775808'"),
    (["--shape", "tokens=1x1..9223372036854775807x4"], "the number of elements exceeds 64 bits"),
    (["--shape", "tokens=1x2..3"], "expected float32 batchxrowsx4, found 1x2..3 (--shape)"),
    (["--shape", "tokens=1x2x1..4"], "found 1x2x1..4 (--shape)"),
    (["--shape", "tokns=1x2..3x4"], "did you mean 'tokens'?"),
    ([*RANGE, "--shape", "tokens=1x2x4"], "input 'tokens': expected one --shape, found two"),
    ([*RANGE, "--shape", "bias=1x2..4x8"], "for dimension 'rows'"),
    ([*RANGE, "--input", "tokens=tokens.npy"], "expected either a file (--input) or a range"),
    ([*RANGE, "--requests", "0"], "--requests '0': expected a whole number from 1 to 1000000"),
    ([*RANGE, "--requests", "many"], "--requests 'many': expected a whole number"),
    ([*RANGE, "--streams", "2"], "--streams: expected no range of sizes in --shape beside it"),
    ([*RANGE, "--seconds", "2"], "--seconds: expected no range of sizes in --shape beside it"),
    ([*RANGE, "--trace", "trace.json"], "--trace: expected no range of sizes in --shape beside it"),
    (["--shape", "tokens=1x2x4", "--requests", "9"],
     "--requests '9': expected a range of sizes in --shape beside it, such as tokens=1x8..128"),
    (["--streams", "2", "--requests", "9"], "expected a range of sizes in --shape beside it"),
])
def test_wrong_options(run, options, error, tmp_path):
    np.save(tmp_path / "tokens.npy", np.zeros((1, 2, 4), np.float32))
    options = [option.replace("tokens.npy", str(tmp_path / "tokens.npy")) for option in options]
    done = run(*options, code=2)
    assert error in done.stderr and done.stdout == "", done.stderr


@pytest.mark.parametrize("command", ["run", "explain", "inspect", "tune", "verify", "bundle"])
def test_other_commands_say_what_to_write(tessera_binary, model, command, tmp_path):
    more = {"run": ["--random", "1"], "bundle": ["-o", tmp_path / "model.bundle"]}.get(command, [])
    done = run_program(tessera_binary, command, model, *RANGE, *more, "--json", code=2)
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "invalid_argument" and error["where"] == "--shape 'tokens=1x2..3x4'"
    assert "only 'tessera bench'" in error["message"]
    assert error["message"].endswith("write for example --shape 'tokens=1x3x4'")


def test_an_error_names_the_shapes_of_its_request(tessera_binary, tmp_path):
    """Of the shapes from 2x4 to 9x4, only one can be reshaped to 2x4."""
    path = save_model(tmp_path / "reshape.onnx", [node("Reshape", "x shape", "y")],
                      {"x": ["rows", 4]}, "y", {"shape": np.array([2, 4])})
    done = run_program(tessera_binary, "bench", path, *REFERENCE, "--shape", "x=2..9x4", code=2)
    assert re.search(r"the shapes of this request: 'x' [3-9]x4", done.stderr), done.stderr


@pytest.mark.alone
def test_ctrl_c_prints_what_was_measured(tessera_binary, model):
    process = start_program(tessera_binary, "bench", model, *REFERENCE, *BOTH, "--requests",
                            "1000000", "--json")
    wait_for(process)
    time.sleep(2)
    report = json.loads(end_of(process, 0, signal.SIGINT)[0])
    assert 1 <= report["run_count"] < 1_000_000
    assert 1 <= report["shape_count"] <= min(report["run_count"], 399)
