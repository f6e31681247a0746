"""examples/04_device runs and prints the expected output."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "04_device" / "device.py"


def run(tessera, *options):
    folder = pathlib.Path(tessera.__file__).parents[1]
    return subprocess.run([sys.executable, EXAMPLE, *options], text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(folder)}, timeout=120, check=False)


def test_state_stays_on_the_device(tessera, why_unusable):
    if why_unusable.get("opencl"):
        pytest.skip(f"opencl: {why_unusable['opencl']}")
    result = run(tessera, "--size", "32", "--steps", "20")
    assert result.returncode == 0, result.stderr
    assert "copies in each run: 0 with the state on opencl, 2 with" in result.stdout
    assert "same results: True" in result.stdout


def test_without_a_device_it_says_so(tessera):
    result = run(tessera, "--device", "nothing")
    assert result.returncode == 1
    assert "there is no such device here: device 'nothing'" in result.stdout
