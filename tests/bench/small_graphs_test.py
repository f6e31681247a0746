"""bench/small_graphs.py and bench/predictions.py: a short run, and errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import predictions  # noqa: E402


def module_dir(tessera):
    return Path(tessera.__file__).parents[1]


def test_small_graphs_share_prices(tessera):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "small_graphs.py", "--graphs", "12", "--nodes", "3",
         "--threads", "1", "--json", "--module-dir", module_dir(tessera)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert len(result["plain"]["seconds"]) == len(result["tuned"]["seconds"]) == 12
    assert result["plain"]["measured"] == [0] * 12
    assert sum(result["tuned"]["measured"]) > 0


def test_errors_are_relative_to_what_was_measured():
    rows = [{"isolated_ms": 9.0, "measured_ms": 10.0}, {"isolated_ms": 12.0, "measured_ms": 10.0}]
    assert predictions.errors_of(rows, "isolated_ms") == pytest.approx([0.1, 0.2])
