"""bench/chess_engine.py prints a row for each program, with every figure."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.alone


@pytest.fixture
def bench(tessera, bin_dir):
    def bench(*arguments):
        return subprocess.run(
            [sys.executable, ROOT / "bench" / "chess_engine.py", "--model", "none", "--rounds", "1",
             "--seconds", "0.05", "--warm-seconds", "0.05", "--batch", "2", "--search-threads",
             "1,2", "--build", bin_dir.parent, *arguments],
            text=True, capture_output=True, timeout=300, check=False)

    return bench


def test_every_program_has_every_figure(bench):
    pytest.importorskip("onnxruntime", reason="onnxruntime, the other runtime, is missing")
    done = bench("--json")
    assert done.returncode == 0, done.stderr
    assert "a small network" in done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["tessera, C++", "tessera, Python", "onnxruntime, Python"]
    for figures in found.values():
        assert figures["cold"][0] > 0 and figures["warm"][0] > 0
        assert {threads: rates[0] > 0 for threads, rates in figures["rates"].items()} == {
            "1": True, "2": True}


def test_the_table_has_a_row_for_each_program(bench):
    done = bench()
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert title == "medians of 1 rounds, batches of 2"
    assert [row.split(",")[0] for row in rows[2:]][:2] == ["tessera", "tessera"]
