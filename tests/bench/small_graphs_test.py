"""bench/small_graphs.py: a short run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def test_small_graphs_share_prices(tessera):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "small_graphs.py", "--graphs", "12", "--nodes", "3",
         "--threads", "1", "--json", "--module-dir",
         Path(tessera.__file__).parents[1]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert len(result["plain"]["seconds"]) == len(result["tuned"]["seconds"]) == 12
    assert result["plain"]["measured"] == [0] * 12
    assert sum(result["tuned"]["measured"]) > 0
