"""Every op with each of its inputs spoilt: a right result, or an error that names the node. Here a
sample of the newest versions; with --long all cells of them, and tools/fuzz has older versions too."""

import pytest

import matrix
from findings import Collector

PARTS = 8
# Of the groups of cells. All of them take an hour.
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
    """Each way to supply, and the ways to spoil a list, are there for an op of lists."""
    [found] = [found for key, found in newest_seeds.items() if key[1] == "Slice"]
    names = [f"{cell.name} {' '.join(cell.what)}"
             for seed in found for cell in matrix.cases_of(seed)]
    for supply in ("constant", "fed", "rows", "dims", "unknown"):
        for way in ("empty", "short", "long", "]=7", "]=-1", "dim 0 = 0"):
            assert any(f" {supply}" in name and way in name for name in names), (supply, way)
