"""examples/04_device runs and prints the expected output."""

import pathlib

from programs import run_python

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "04_device" / "device.py"


def test_state_stays_on_the_device(tessera, needs_opencl):
    result = run_python(tessera, EXAMPLE, "--size", "32", "--steps", "20")
    assert "copies in each run: 0 with the state on opencl, 2 with" in result.stdout
    assert "same results: True" in result.stdout


def test_without_a_device_it_says_so(tessera):
    result = run_python(tessera, EXAMPLE, "--device", "nothing", code=1)
    assert "there is no such device here: device 'nothing'" in result.stdout
