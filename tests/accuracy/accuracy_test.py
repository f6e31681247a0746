"""No candidate that is offered by default exceeds the error bound of its op: every op on every
backend, on tails, large means and axes of a million elements. docs/accuracy.md has the figures.

Without --long, backends that compile each kernel for long get an op of each kind, and of the ops
that add up, three get the longest axes, on the other backends."""

import json

import pytest

from catalog import BACKENDS
from programs import run_program

# One length that is no multiple of a vector, and one in which sums of float32 stall.
LENGTHS = "1021,65536"
LONG = 1 << 20
# Ops that add up along an axis.
LONG_CASES = ("ReduceSum(", "ReduceMean(", "ReduceL", "ReduceSumSquare(", "GlobalAveragePool(",
              "CumSum(", "Softmax(", "LayerNormalization(", "MatMul(2x")
FEW_LONG_CASES = ("ReduceSum(", "Softmax(", "LayerNormalization(")
SLOW = ("opencl", "openvino")
ONE_OF_EACH_KIND = ("Sigmoid(", "Tanh(", "Softplus(", "Gelu(", "Sqrt(", "Floor(", "Add(", "Div(",
                    "Pow(", "Cast(", "ReduceSum(", "ReduceL2(", "Softmax(", "LayerNormalization(",
                    "AveragePool(", "Resize(", "MatMul(", "Conv(", "LSTM", "Exp(1021); ",
                    "Add(16x63, 16x63); ")


def measure(bin_dir, *arguments):
    program = bin_dir / "measure_accuracy"
    assert program.exists(), f"{program} is not built: tools/build release measure_accuracy"
    result = run_program(program, *arguments, code=None, timeout=900)
    assert result.returncode in (0, 1), result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    wrong = [f"{line['case']}, {line['range']}: {line['failure']}" for line in lines
             if "failure" in line]
    return lines, wrong


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_are_within_the_bounds_that_ops_state(bin_dir, backend, need_backend, is_long):
    need_backend(backend)
    is_sample = backend in SLOW and not is_long
    lines = []
    for case in ONE_OF_EACH_KIND if is_sample else ("",):
        more, wrong = measure(bin_dir, "--backends", backend, "--only", case,
                              "--lengths", "1021" if is_sample else LENGTHS)
        assert not wrong, "\n".join(wrong)
        lines += more
    assert len(lines) > 50
    for case in LONG_CASES if is_long else () if is_sample else FEW_LONG_CASES:
        lines, wrong = measure(bin_dir, "--backends", backend, "--lengths", str(LONG),
                               "--only", case)
        assert not wrong, "\n".join(wrong)
