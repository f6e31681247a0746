"""bench/session_overhead.py: a run of a session costs less than onnxruntime's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_costs_less_than_onnxruntimes(tessera, needs_native):
    pytest.importorskip("onnxruntime", reason="onnxruntime, with which it compares, is missing")
    folder = Path(tessera.__file__).parents[1]
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "session_overhead.py", "--json", "--blocks", "50",
         "--module-dir", folder], capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stderr
    for size, row in json.loads(process.stdout).items():
        assert row["tessera"] < row["onnxruntime"], size
        assert row["tessera, bound"] < row["onnxruntime, bound"], size
        assert row["tessera, not measured"] < row["onnxruntime"], size
