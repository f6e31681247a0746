"""examples/05_onnxruntime runs, and prints the same with onnxruntime's import line."""

import pathlib

import pytest
from programs import run_python

EXAMPLE = (
    pathlib.Path(__file__).resolve().parents[3] / "examples" / "05_onnxruntime" / "classify.py")
IMPORT = "import tessera.onnxruntime as ort\n"


def test_it_prints_the_same_under_both_imports(tessera, tmp_path):
    printed = run_python(tessera, EXAMPLE).stdout
    lines = printed.splitlines()
    assert lines[0] == ("input: points, tensor(float), ['batch', 2]; "
                        "providers: ['CPUExecutionProvider']")
    assert sum("all right: True" in line for line in lines) == 3
    assert "pi is about 3.1" in printed
    assert lines[-1] == "points with 5 coordinates are an InvalidArgument"
    pytest.importorskip("onnxruntime", reason="onnxruntime, the other import, is missing")
    text = EXAMPLE.read_text()
    assert text.count("tessera") == 1, "only the import line names it"
    other = tmp_path / "classify.py"
    other.write_text(text.replace(IMPORT, "import onnxruntime as ort\n"))
    assert run_python(tessera, other).stdout == printed
