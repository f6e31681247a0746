"""Random models with nested graphs (If, Loop, Scan, SequenceMap, with lists and optionals) give what
ONNX Runtime and the reference of ONNX give, at three sizes by one executor."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
import nested_graphs  # noqa: E402
from nested_judge import judge  # noqa: E402

PARTS = 4
SEEDS, LONG_SEEDS = 60, 5000
# Nested graphs that returned sizes, and kernels that were compared with those of a plan in which the
# number of a value's dimensions was unknown.
FOUND_SEEDS = (7000034, 7000288, 7000762, 8000396)


@pytest.mark.parametrize("part", range(PARTS))
def test_results_are_those_of_onnxruntime_and_the_reference(tessera, is_long, part, monkeypatch):
    monkeypatch.delenv("TESSERA_OPTIMIZE")
    count = (LONG_SEEDS if is_long else SEEDS) // PARTS
    wrong, compared = [], {"onnxruntime": 0, "onnx.reference": 0}
    for seed in range(part * count, (part + 1) * count):
        line, peers = judge(tessera, seed)
        if line:
            wrong.append(f"seed {seed}: {line}")
        for peer in peers:
            compared[peer] += 1
    assert not wrong, "\n".join(wrong)
    assert compared["onnxruntime"] > 0.8 * count, compared
    assert compared["onnx.reference"] > 0.8 * count, compared


@pytest.mark.parametrize("seed", FOUND_SEEDS)
def test_what_once_failed_does_not_fail_again(tessera, seed):
    for _ in range(3):
        line, peers = judge(tessera, seed)
        assert not line and peers


def test_a_seed_is_one_model():
    for seed in range(20):
        (one, feeds), (other, again) = nested_graphs.draw(seed), nested_graphs.draw(seed)
        assert one == other and repr(feeds) == repr(again)
