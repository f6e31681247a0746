"""Promises about the source tree itself: file sizes, and that an op is in the file with its name.
"""

import re

from load_tool import ROOT, load_tool

MOST_LINES = 600
SOURCES = (".cc", ".h", ".inc", ".py", ".cu")
TABLE_ROW = re.compile(r"^\|\s*`(src/ops/\w+/\w+\.cc)`\s*\|([^|]*)\|")


def test_no_source_file_is_longer_than_the_limit():
    folders = ("include", "src", "cli", "backends", "python", "tests", "tools")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")
             if path.is_file() and (path.suffix in SOURCES or folder == "tools")]
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in files}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def read_families(section="Families of ops"):
    """File -> ops, from ARCHITECTURE.md: the files with more ops than the one they are named after.
    """
    text = (ROOT / "ARCHITECTURE.md").read_text()
    families = {}
    for line in load_tool("check_layers").read_section(text, section):
        row = TABLE_ROW.match(line)
        if row:
            families[row.group(1)] = set(re.findall(r"`(\w+)`", row.group(2)))
    return families


def registered_ops():
    """ONNX ops in the files of ops: their string literals that are names of ONNX ops."""
    # Imported only here: collecting the other tests needs no onnx.
    import onnx.defs
    defined = {schema.name for schema in onnx.defs.get_all_schemas()
               if schema.domain in ("", "ai.onnx.ml")}
    listed = (ROOT / "src" / "ops" / "op_list.inc").read_text()
    ops = set()
    for folder, stem in re.findall(r"^OP_FILE\((\w+), (\w+)\)", listed, re.M):
        text = (ROOT / "src" / "ops" / folder / f"{stem}.cc").read_text()
        ops |= set(re.findall(r'"([A-Z]\w+)"', text)) & defined
    return ops


def test_an_op_is_found_by_its_file_name():
    families = read_families()
    place = {op: file for file, ops in families.items() for op in ops}
    stems = {path.stem.replace("_", "") for path in (ROOT / "src" / "ops").rglob("*.cc")}
    ops = registered_ops()
    assert ops
    assert sorted(op for op in ops if op.lower() not in stems and op not in place) == []
    # No row lists files or ops that no longer exist.
    assert sorted(file for file in families if not (ROOT / file).exists()) == []
    assert sorted(op for op in place if op not in ops) == []
    assert sorted(op for op, file in place.items()
                  if f'"{op}"' not in (ROOT / file).read_text()) == []


def test_ops_of_onnx_runtime_are_where_the_table_says():
    families = read_families("Ops of ONNX Runtime")
    assert families
    assert [(file, op) for file, ops in families.items() for op in ops
            if f'"{op}"' not in (ROOT / file).read_text()] == []
