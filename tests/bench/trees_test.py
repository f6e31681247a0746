"""bench/trees.py: every model agrees with ONNX Runtime."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]


def measured(tessera, folder, *arguments):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "trees.py", "--json", folder / "trees.json", "--threads",
         "1", "--module-dir", Path(tessera.__file__).parents[1], *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "trees.json").read_text())


def test_all_models_agree(tessera, tmp_path):
    rows = measured(tessera, tmp_path, "--rows", "1,40", "--trees", "20", "--depth", "4",
                    "--seconds", "0.02")
    assert len(rows) == 40 and not any(row["wrong"] for row in rows)
