"""No candidate that is offered by default exceeds the error bound of its op: every op on every
backend, on tails, large means and axes of a million elements. docs/accuracy.md has the figures."""

import json
import subprocess

import pytest

from catalog import BACKENDS

# One length that is no multiple of a vector, and one in which sums of float32 stall.
LENGTHS = "1021,65536"
LONG = 1 << 20
# Ops that add up along an axis.
LONG_CASES = ("ReduceSum(", "ReduceMean(", "ReduceL", "ReduceSumSquare(", "GlobalAveragePool(",
              "CumSum(", "Softmax(", "LayerNormalization(", "MatMul(2x")


def measure(bin_dir, *arguments):
    program = bin_dir / "measure_accuracy"
    assert program.exists(), f"{program} is not built: tools/build release measure_accuracy"
    result = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=900,
                            check=False)
    assert result.returncode in (0, 1), result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    wrong = [f"{line['case']}, {line['range']}: {line['failure']}" for line in lines
             if "failure" in line]
    return lines, wrong


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_are_within_the_bounds_that_ops_state(bin_dir, backend, why_unusable):
    if why_unusable.get(backend):
        pytest.skip(f"{backend} is {why_unusable[backend]}")
    lines, wrong = measure(bin_dir, "--backends", backend, "--lengths", LENGTHS)
    assert not wrong, "\n".join(wrong)
    assert len(lines) > 50
    for case in LONG_CASES:
        lines, wrong = measure(bin_dir, "--backends", backend, "--lengths", str(LONG),
                               "--only", case)
        assert not wrong, "\n".join(wrong)
