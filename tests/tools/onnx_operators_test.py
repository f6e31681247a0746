"""The table of ONNX's operators is that of the installed package onnx."""

import subprocess
import sys

from load_tool import ROOT


def test_the_table_is_that_of_onnx():
    tool = ROOT / "tools" / "onnx_operators"
    printed = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True).stdout
    table = ROOT / "src" / "import" / "onnx" / "onnx_operators.inc"
    assert table.read_text() == printed, "run tools/onnx_operators > src/import/onnx/onnx_operators.inc"
