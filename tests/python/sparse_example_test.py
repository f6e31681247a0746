"""examples/02_sparse runs and prints the expected output."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "02_sparse" / "sparse.py"


@pytest.mark.parametrize("optimize", ["0", "1"])
def test_example_shows_time_memory_and_the_fallback(tessera, tmp_path, optimize):
    folder = pathlib.Path(tessera.__file__).parents[1]
    result = subprocess.run([sys.executable, EXAMPLE, "--documents", "2000", "--runs", "3"],
                            env={**os.environ, "PYTHONPATH": str(folder),
                                 "TESSERA_OPTIMIZE": optimize}, text=True, cwd=tmp_path,
                            capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    for part in ("memory of x:", "plan with x in csr:", "plan with x dense", "same results: True",
                 "convert", "once: node 'exp' (Exp)",
                 "with strict_storage=True it is an error: node 'exp' (Exp)"):
        assert part in result.stdout, result.stdout
