"""Every case that the fuzzers found earlier is handled correctly now: one file (fuzz_case.py) for
each case."""

import pathlib

import pytest

from findings import Collector
from fuzz_case import load_case

CASES = sorted((pathlib.Path(__file__).parent / "corpus" / "cases").glob("*.onnx"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_stays_right(runner, path):
    collector = Collector(runner)
    case = load_case(path)
    op = path.stem.split("_")[0]
    collector.check(op, path.stem, case, [""] * len(case.runs),
                    refused={""} if case.is_refused else None)
    assert not collector.findings, "\n".join(
        [finding.text() for finding in collector.findings.values()] + [case.note])
