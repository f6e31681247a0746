"""The table of ONNX's operators is that of the installed package onnx."""

import sys

from load_tool import ROOT
from programs import run_program


def test_the_table_is_that_of_onnx():
    tool = ROOT / "tools" / "onnx_operators"
    printed = run_program(sys.executable, tool).stdout
    table = ROOT / "src" / "import" / "onnx" / "names" / "onnx_operators.inc"
    assert table.read_text() == printed, (
        "run tools/onnx_operators > src/import/onnx/names/onnx_operators.inc")
