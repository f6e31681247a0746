"""Some seconds of tools/growth: memory does not grow with runs, shapes, binds, loads or caches."""

import pathlib
import subprocess

import numpy as np
import pytest
from growth import measure, slope

pytestmark = pytest.mark.alone

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# In so few iterations, bounded caches still fill up; what leaks a plan, a kernel or a file each
# time keeps thousands of bytes.
MOST_BYTES = 600
SHORT = {"run": 20_000, "run_bound": 20_000, "shapes_in_turn": 1500, "bind": 600, "load": 600,
         "load_cache_of_executor": 300, "pool": 2000, "sessions": 2000}
SECONDS, LONG_SECONDS = 20, 300


@pytest.mark.parametrize("case", SHORT)
def test_memory_does_not_grow(case, bin_dir, tessera, needs_native, is_long):
    seconds, iterations = (LONG_SECONDS, 20_000) if is_long else (SECONDS, SHORT[case])
    growth = measure(bin_dir, case, seconds, iterations, "native")
    assert not growth.explain(16 if is_long else MOST_BYTES), growth.text()


def test_growth_is_found(bin_dir, tessera):
    growth = measure(bin_dir, "leak", SECONDS, 2000)
    assert "memory grows" in growth.explain(MOST_BYTES)
    assert 2000 <= growth.allocated.value <= 2200


@pytest.mark.parametrize("noise, true", [(0, 0), (1e4, 0), (1e4, 50), (0, -3), (1e6, 0)])
def test_the_interval_has_the_true_slope(noise, true):
    draw = np.random.default_rng(1)
    x = np.arange(100) * 200
    y = 1e8 + true * x + noise * draw.standard_normal(100)
    found = slope(x, y)
    assert found.low <= true <= found.high
    assert found.high - found.low < max(1e-3, noise / 1000)


def test_a_step_is_no_slope():
    x = np.arange(100)
    y = np.where(x < 3, 0, 1e6)
    found = slope(x, y)
    assert found.low <= 0 <= found.high


def test_no_time_passes():
    assert slope([1, 1], [5, 6]).value == 0


def test_an_unknown_case_is_named(tessera):
    done = subprocess.run([ROOT / "tools" / "growth", "no_such_case"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2 and "no_such_case" in done.stderr and "random_lengths" in done.stderr
