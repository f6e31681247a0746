"""bench/fused_start.py: a short run, and its complaints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# This test measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import fused_start  # noqa: E402


def test_a_short_run_has_all_rows(tessera, why_unusable):
    if why_unusable.get("jit", "unknown"):
        pytest.skip(f"jit: {why_unusable.get('jit', 'unknown')}")
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "fused_start.py", "--graphs", "6", "--kinds", "3",
         "--groups", "20", "--runs", "2", "--rounds", "1", "--modes", "default", "--json",
         "--backends", "jit,reference", "--module-dir", Path(tessera.__file__).parents[1]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr
    rows = json.loads(process.stdout)["rows"]["default"]
    assert list(rows) == list(fused_start.ROWS)
    assert rows["off"]["most_compiled"] == 0
    assert 0 < rows["on"]["most_compiled"] + rows["on again"]["most_compiled"] <= 3
    assert rows["other models"]["most_compiled"] == 0


def row(sums, compiled):
    return {"sums": sums, "compiled": {"jit": {"compiled": compiled}}}


def test_wrong_outputs_and_needless_compilations_are_told():
    names = dict.fromkeys(fused_start.ROWS, 0)

    def complaints(other_sum=1.0, **compiled):
        one = {name: row([1.0, 2.0 if name == "off" else other_sum * 2], 0) for name in names}
        summary = {name: {"most_compiled": compiled.get(name.replace(" ", "_"), 0)}
                   for name in names}
        return fused_start.complaints_of("plain", [one], summary, kinds=3)

    assert complaints() == []
    assert complaints(other_sum=1.0001) == []
    assert any("graph 1 gives" in text for text in complaints(other_sum=1.1))
    assert any("other models: compiled 1 kernels, expected at most 0" in text
               for text in complaints(other_models=1))
    assert complaints(on=2, on_again=1) == []
    assert any("on and on again: compiled 4 kernels" in text
               for text in complaints(on=3, on_again=1))
    assert complaints(many_groups=10) == []
    assert any("many groups" in text for text in complaints(many_groups=11))


def test_groups_have_the_promised_sizes_and_differ():
    kinds = [fused_start.kind_of_group(seed) for seed in range(200)]
    assert {len(rows) for rows in kinds} == set(range(5, 21))
    assert len({str(rows) for rows in kinds}) == 200
    assert fused_start.kind_of_group(7) == fused_start.kind_of_group(7)
