"""docs/operators.md and the table of ops agree, and so does `tessera inspect --ops`."""

import json
import pathlib
import re

import onnx.defs
from programs import run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operators.md"


def operators(tessera_binary):
    return json.loads(run_program(tessera_binary, "inspect", "--ops", "--json").stdout)["operators"]


def test_the_page_is_fresh(bin_dir):
    printed = run_program(bin_dir / "print_operators").stdout
    assert PAGE.read_text() == printed, "run: tools/write_pages operators"


def test_the_command_lists_all_operators_of_onnx(tessera_binary):
    listed = {(entry["domain"], entry["op"]): entry for entry in operators(tessera_binary)}
    schemas = onnx.defs.get_all_schemas_with_history()
    assert {(schema.domain, schema.name) for schema in schemas} <= set(listed)
    versions = {schema.since_version for schema in schemas
                if schema.name == "Relu" and schema.domain == ""}
    assert set(listed["", "Relu"]["op_versions"]) == versions
    assert listed["", "Affine"]["is_experiment"]


def test_the_table_has_the_operators_of_the_page(tessera_binary):
    table = run_program(tessera_binary, "inspect", "--ops").stdout
    on_page = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)
    in_table = {line.split()[0].rpartition(".")[2] for line in table.splitlines() if line.strip()}
    assert len(on_page) > 100 and set(on_page) <= in_table


def test_a_model_and_the_table_of_operators_exclude_each_other(tessera_binary):
    for arguments, part in ((["--ops", "model.onnx"], "MODEL or --ops, found both"),
                            ([], "MODEL or --ops, found neither")):
        done = run_program(tessera_binary, "inspect", *arguments, code=2)
        assert part in done.stderr
