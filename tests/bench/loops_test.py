"""bench/loops.py: an iteration costs less than in ONNX Runtime, however many there are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def measured(tessera, *arguments):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "loops.py", "--json", "--threads", "1", "--seconds", "0.2",
         "--optimize",
         "--module-dir", Path(tessera.__file__).parents[1], *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_all_models_agree_and_a_loop_is_faster(tessera, needs_native):
    rows = {row["model"]: row for row in measured(tessera)}
    assert set(rows) == {"add", "cell", "product", "scan", "branch", "list"}
    assert rows["add"]["ratio"] > 2


def test_time_grows_with_the_iterations_and_no_faster(tessera, needs_native):
    few, many = (measured(tessera, "--loops", "add", "--iterations", str(count))[0]["tessera_us"]
                 for count in (10000, 100000))
    assert few < many < 20 * few
