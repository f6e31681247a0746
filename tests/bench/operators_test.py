"""bench/operators.py: every op has a case, and both runtimes agree on it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
# Ops of lists, nested graphs and maps, which bench/loops.py measures as far as anybody does; an op
# that is never computed; older names; ops that no other runtime has.
WITHOUT_CASE = {
    *("If", "Loop", "Scan", "Optional", "OptionalGetElement", "OptionalHasElement"),
    *("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
      "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"),
    *("CastMap", "DictVectorizer", "ZipMap"), "Constant", "Scatter", "TreeEnsemble",
    "FlexAttention", "Tokenizer"}


def known_ops():
    """(domain, op) of each row of docs/operators.md."""
    domain = ""
    for line in (ROOT / "docs" / "operators.md").read_text().splitlines():
        if line.startswith("## "):
            domain = line[3:].replace("ai.onnx", "", 1) if line == "## ai.onnx" else line[3:]
        if row := re.match(r"\| `(\w+)` \|", line):
            yield domain, row[1]


def test_every_op_has_a_case(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    from networks.operator_cases import all_cases

    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases)
    measured = {(case.domain, case.op) for case in cases}
    missing = {row for row in known_ops() if row[1] not in WITHOUT_CASE} - measured
    assert not missing


def test_both_agree_on_cases_of_each_kind(tessera, tmp_path):
    process = subprocess.run(
        [sys.executable, ROOT / "bench" / "operators.py", "--threads", "1", "--seconds", "0.01",
         "--sizes", "small", "--ops", "TopK,Exp,NonZero,Equal strings,microsoft.BiasGelu,Conv",
         "--json", tmp_path / "rows.json", "--module-dir", Path(tessera.__file__).parents[1]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)
    assert process.returncode == 0, process.stderr
    assert "geometric mean" in process.stdout
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert {"TopK many", "Exp", "microsoft.BiasGelu", "Conv depthwise"} <= {row["op"] for row in rows}
    assert all(row["ratio"] > 0 for row in rows)
