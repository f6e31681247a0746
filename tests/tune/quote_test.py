"""`tessera tune --dry-run`: prints the expected time and gain of tuning, and does nothing else."""

import json

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

# The last test measures for some seconds.
pytestmark = pytest.mark.alone

SIDE = 768


def write_model(path, op="Tanh"):
    """One run takes some milliseconds; faster models are measured in a tenth of a second."""
    weight = np.random.default_rng(1).standard_normal((SIDE, SIDE)).astype(np.float32) / SIDE
    return save_model(path,
                      [node("MatMul", "x w", "h"), node(op, "h", "r"), node("MatMul", "r w", "y")],
                      {"x": [SIDE, SIDE]}, {"y": [SIDE, SIDE]}, {"w": weight})


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "model.onnx")


@pytest.fixture
def call(tessera_binary, tmp_path, monkeypatch):
    """Runs `tessera tune`; `tmp_path / "caches"` has everything that it writes."""
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(tmp_path / "caches" / "work"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches" / "user"))

    def run(*arguments, code=0):
        done = run_program(tessera_binary, "tune", *arguments, "--threads", "1", code=code,
                           cwd=tmp_path)
        return done.stdout if code == 0 else done.stderr

    return run


def test_it_is_one_line_and_nothing_is_written(call, model, tmp_path):
    text = call(model, "--dry-run")
    assert text.startswith("about ") and text.count("\n") == 1
    assert "gain unknown, as fewer than 3 models were tuned here" in text
    quote = json.loads(call(model, "--dry-run", "--json"))["quote"]
    assert not quote["is_known"] and quote["candidate_count"] > 0
    assert 2e6 < quote["tuning_us"] < 60e6 and quote["run_us"] > 0
    assert quote["gain_low"] is quote["gain_high"] is quote["run_count"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_it_keeps_to_the_budget(call, model):
    assert call(model, "--dry-run", "--tune-budget", "1.2").startswith("about 1 s, ")


def test_what_the_costs_know_is_not_measured(call, model, tmp_path):
    before = json.loads(call(model, "--dry-run", "--json"))["quote"]
    costs = tmp_path / "costs.json"
    call(model, "--output", costs, "--tune-budget", "3")
    after = json.loads(call(model, "--dry-run", "--json", "--costs", costs))["quote"]
    assert after["candidate_count"] < before["candidate_count"]


@pytest.mark.parametrize("option", [("--output", "costs.json"), ("--table",)])
def test_what_needs_measurements_is_refused(call, model, option):
    error = " ".join(call(model, "--dry-run", *option, code=2).split())
    assert f"--dry-run measures nothing, so there is nothing for {option[0]};" in error
    assert "leave out one of the two" in error


def test_wrong_models_fail_as_they_do_without_it(call, tmp_path):
    assert "absent.onnx" in call(tmp_path / "absent.onnx", "--dry-run", code=2)


def test_what_models_gained_here_is_likely_for_the_next_one(needs_a_library, call, model, tmp_path):
    tuned = [json.loads(call(write_model(tmp_path / f"{op}.onnx", op), "--json"))["tuning"]
             for op in ("Relu", "Sigmoid", "Erf")]
    for tuning in tuned:
        assert tuning["quote"]["tuning_us"] > 2e6 and tuning["quote"]["gain_low"] is None
    gains = sorted(tuning["gain"] for tuning in tuned)
    quote = json.loads(call(model, "--dry-run", "--json"))["quote"]
    assert gains[0] - 1e-5 <= quote["gain_low"] <= quote["gain_high"] <= gains[-1] + 1e-5
    assert "likely gain" in call(model, "--dry-run")
    text = call(tmp_path / "Relu.onnx", "--dry-run")
    assert text.startswith("nothing to measure, a cache has the fastest plan;")
    assert json.loads(call(tmp_path / "Relu.onnx", "--dry-run", "--json"))["quote"]["is_known"]
