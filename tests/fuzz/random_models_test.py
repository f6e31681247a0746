"""Random models of all ops in all versions. They are always the same; a slow machine omits the last
ones. tools/fuzz runs for hours."""

import pytest

import fuzz_loop
from findings import Collector
from random_models import draw_model

PARTS = 4
# For each part; CI runs them in the release build and under sanitizers.
MODELS = 400
SECONDS = 15
LONG_SECONDS = 300
FIRST_NUMBER = 18_000_000


@pytest.mark.parametrize("part", range(PARTS))
def test_no_model_does_harm(runner, seeds, is_long, part, tmp_path):
    collector = Collector(runner)
    fuzz_loop.fuzz(collector, seeds, FIRST_NUMBER + part * 1_000_000,
                   LONG_SECONDS if is_long else SECONDS, tmp_path,
                   most_models=None if is_long else MODELS)
    assert collector.statistics.models > 0
    assert not collector.findings, "\n".join(
        finding.text() for finding in collector.findings.values())


def test_a_number_is_one_model(seeds):
    for number in range(200):
        one, other = draw_model(number, seeds), draw_model(number, seeds)
        assert one.name() == other.name()
        try:
            case = one.case()
        except Exception:
            continue
        again = other.case()
        assert case.model == again.model and repr(case.runs) == repr(again.runs)
