"""A plug-in that was built against a copy of the contract's headers from before devices had
interfaces (frozen_contract/) is listed, verified and used as before."""

import json

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

RANDOM = np.random.default_rng(21)
X = RANDOM.standard_normal((3, 5)).astype(np.float32)
WEIGHT = RANDOM.standard_normal((3, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def library(built_plugin):
    return built_plugin("frozen_contract")


@pytest.fixture
def tessera(tessera_binary, tmp_path):
    return lambda *arguments: run_program(tessera_binary, *arguments, cwd=tmp_path)


@pytest.fixture
def model(tmp_path):
    """1 / (2 * (x - weight) - x) with the plug-in's own Scale."""
    nodes = [node("Sub", "x weight", "difference", "subtract_weight"),
             node("Scale", "difference", "scaled", "scale", domain="org.frozen"),
             node("Sub", "scaled x", "sum", "subtract_x"),
             node("Reciprocal", "sum", "y", "reciprocal")]
    save_model(tmp_path / "model.onnx", nodes, {"x": X.shape}, {"y": X.shape}, {"weight": WEIGHT},
               domains={"org.frozen": 1})
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", 1 / (2 * (X - WEIGHT) - X))


def test_is_listed(tessera, library):
    result = tessera("backends", "--json", "--backend-path", library)
    [entry] = [entry for entry in json.loads(result.stdout)["backends"]
               if entry["backend"] == "frozen"]
    assert entry["is_usable"] and entry["version"] == "1.0"
    assert entry["layouts"] == ["frozen:mirrored"]


def test_passes_verification(tessera, library):
    result = tessera("verify", "--backend", library, "--json", "--cases", 2)
    report = json.loads(result.stdout)
    assert report["failures"] == [], report["failures"]
    assert {op["op"] for op in report["ops"] if op["accepted_count"]} >= {"Sub", "Reciprocal"}


def test_computes_what_numpy_computes(tessera, library, model):
    tessera("run", "model.onnx", "--input", "x=x.npy", "--expect", "y=y.npy", "--rtol", "1e-4",
            "--atol", "1e-5", "--backend-path", library)


def test_is_used_for_all_nodes(tessera, library, model):
    result = tessera("explain", "model.onnx", "--json", "--backend-path", library, "--backends",
                     "frozen")
    backends = {step["name"]: step["backend"] for step in json.loads(result.stdout)["steps"]
                if step["op"] not in ("convert", "Scale")}
    assert backends == dict.fromkeys(("subtract_weight", "subtract_x", "reciprocal"), "frozen")
