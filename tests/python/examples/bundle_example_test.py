"""examples/08_bundle runs and prints the expected output."""

import pathlib

from programs import run_python

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "08_bundle" / "bundle.py"


def test_example_starts_from_one_file(tessera, tmp_path):
    result = run_python(tessera, EXAMPLE, cwd=tmp_path)
    lines = result.stdout.splitlines()
    with_key = lines.index("from the bundle, with the key:")
    stranger = lines.index("from the bundle, somebody else:")
    assert len(lines[with_key + 1:stranger]) == 2, result.stdout
    assert all("measured nothing" in line for line in lines[with_key + 1:stranger])
    assert any("another user's" in line for line in lines[stranger + 1:])
    sums = {line.split("batch ")[1].split(":")[0] + line.split("sum ")[1]
            for line in lines if "sum " in line}
    assert len(sums) == 2, "equal answers for each batch"
    assert not any(tmp_path.iterdir())
