"""bench/small_graphs.py, bench/stability.py and bench/predictions.py: short runs, and their
verdicts."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import predictions  # noqa: E402
import stability  # noqa: E402


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


def turns(middle, spread, seed):
    rng = random.Random(seed)
    return [middle * (1 + rng.uniform(-spread, spread)) for _ in range(40)]


@pytest.mark.parametrize(("times", "noise", "verdict"), [
    ({"a": turns(3, 0.01, 1)}, 0.01, "same"),
    ({"a": turns(3, 0.01, 1), "b": turns(3.003, 0.01, 2)}, 0.01, "as fast"),
    ({"a": turns(3, 0.01, 1), "b": turns(3.15, 0.01, 2)}, 0.01, "different"),
    ({"a": turns(3.15, 0.01, 1), "b": turns(3, 0.01, 2)}, 0.01, "different"),
    ({"a": turns(3, 0.5, 1), "b": turns(3.15, 0.5, 2)}, 0.5, "as fast"),
])
def test_plans_are_as_fast_where_noise_is_larger(times, noise, verdict):
    twin = turns(sum(times["a"]) / 40, noise, 9)
    assert stability.compare_plans(times, twin)[2] == verdict


def test_what_slows_a_whole_turn_is_no_difference():
    calm, busy = turns(3, 0.002, 1), [index % 7 + 1 for index in range(40)]
    times = {name: [one * factor for one, factor in zip(turns(middle, 0.002, seed), busy)]
             for name, middle, seed in (("a", 3, 2), ("b", 3.1, 3))}
    twin = [one * factor for one, factor in zip(calm, busy)]
    ratios, noise, verdict = stability.compare_plans(times, twin)
    assert noise < 0.01 and verdict == "different"
    assert ratios["b"].value == pytest.approx(3.1 / 3, rel=0.01)


def test_errors_are_relative_to_what_was_measured():
    rows = [{"isolated_ms": 9.0, "measured_ms": 10.0}, {"isolated_ms": 12.0, "measured_ms": 10.0}]
    assert predictions.errors_of(rows, "isolated_ms") == pytest.approx([0.1, 0.2])
