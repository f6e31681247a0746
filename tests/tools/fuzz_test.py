"""tools/fuzz reports what it did; tests/fuzz tests its findings."""

import re

import pytest

from load_tool import ROOT
from programs import run_program


@pytest.fixture
def fuzz(bin_dir, tmp_path):
    return lambda *arguments, code=0: run_program(
        ROOT / "tools" / "fuzz", "--bin-dir", bin_dir, "--out", tmp_path, *arguments, code=code)


def test_figures_stand_at_the_end(fuzz, tmp_path):
    done = fuzz("--minutes", "0.05", "--only", "models", "--only", "matrix", "--seed", "7",
                "--backends", "reference", code=None)
    assert "seed: 7" in done.stdout, done.stderr
    assert int(re.search(r"^models: (\d+)$", done.stdout, re.MULTILINE)[1]) > 0
    for part in ("ops that ran to the end: ", "compared with ONNX Runtime: ",
                 "compared with onnx.reference: ", "refused with an error: "):
        assert part in done.stdout
    count = int(re.search(r"^(\d+) findings", done.stdout.splitlines()[-1])[1])
    assert done.returncode == (1 if count else 0) and len(list(tmp_path.iterdir())) == count


def test_a_missing_build_is_said(fuzz, tmp_path):
    done = fuzz("--bin-dir", str(tmp_path), code=2)
    assert "tools/build fuzz fuzzers" in done.stderr
