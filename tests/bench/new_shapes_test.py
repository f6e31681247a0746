"""bench/new_shapes.py: what a new shape costs grows with the network, and no faster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def test_the_work_for_a_new_shape_is_linear(tessera, needs_native):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "new_shapes.py", "--json", "--layers", "4,32",
         "--runs", "200", "--module-dir", Path(tessera.__file__).parents[1]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)
    assert process.returncode == 0, process.stderr
    small, large = json.loads(process.stdout)
    assert large["step_count"] > 6 * small["step_count"]
    # Work that grew with the square of the steps would take 64 times as long.
    assert 0 < large["new_shape_us"] < 24 * small["new_shape_us"]
