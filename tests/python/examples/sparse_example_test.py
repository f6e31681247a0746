"""examples/02_sparse runs and prints the expected output."""

import pathlib

import pytest
from programs import run_python

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "02_sparse" / "sparse.py"


@pytest.mark.parametrize("optimize", ["0", "1"])
def test_example_shows_time_memory_and_the_fallback(tessera, tmp_path, optimize):
    result = run_python(tessera, EXAMPLE, "--documents", "2000", "--runs", "3", cwd=tmp_path,
                        variables={"TESSERA_OPTIMIZE": optimize})
    for part in ("memory of x:", "plan with x in csr:", "plan with x dense", "same results: True",
                 "convert", "once: node 'exp' (Exp)",
                 "with strict_storage=True it is an error: node 'exp' (Exp)"):
        assert part in result.stdout, result.stdout
