"""Every op with each of its inputs corrupted: the result is right, or an error names the node.
Without --long, a sample of the newest versions; with --long all their cells. tools/fuzz tests older
versions too."""

import pytest

import matrix
from findings import Collector

PARTS = 8
# The share of the groups of cells that is tested. All of them take an hour.
SHARE = 0.02


@pytest.mark.parametrize("part", range(PARTS))
def test_each_op_survives_each_input(runner, newest_seeds, is_long, part):
    collector = Collector(runner)
    for number, (_, found) in enumerate(newest_seeds.items()):
        if number % PARTS != part:
            continue
        matrix.check_all(collector, [cell for seed in found for cell in matrix.cases_of(seed)
                                     if is_long or matrix.is_drawn(cell.group, SHARE)])
    assert collector.statistics.to_the_end > 0
    assert not collector.findings, "\n".join(
        finding.text() for finding in collector.findings.values())


def test_cells_are_as_promised(newest_seeds):
    """An op with list inputs has a cell for each way to supply and to corrupt a list."""
    [found] = [found for key, found in newest_seeds.items() if key[1] == "Slice"]
    names = [f"{cell.name} {' '.join(cell.what)}"
             for seed in found for cell in matrix.cases_of(seed)]
    for supply in ("constant", "fed", "rows", "dims", "unknown"):
        for way in ("empty", "short", "long", "]=7", "]=-1", "dim 0 = 0"):
            assert any(f" {supply}" in name and way in name for name in names), (supply, way)
