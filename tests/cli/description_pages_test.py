"""python/tessera/descriptions.py, docs/formats/json.md and the lists of fields agree."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "formats" / "json.md"


def printed(bin_dir, what, page="", code=0):
    done = subprocess.run([bin_dir / "print_descriptions", what], input=page, capture_output=True,
                          text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout or done.stderr


@pytest.mark.parametrize("what, file", [("python", ROOT / "python" / "tessera" / "descriptions.py"),
                                        ("json", PAGE)])
def test_the_file_is_fresh(bin_dir, what, file):
    assert printed(bin_dir, what, PAGE.read_text()) == file.read_text(), "run: tools/write_pages descriptions"


def test_rows_are_replaced_between_those_that_are_written_by_hand(bin_dir):
    page = PAGE.read_text()
    row, = (line for line in page.splitlines() if line.startswith("| `ir_version` |"))
    without = page.replace(row + "\n", "")
    assert without != page
    assert printed(bin_dir, "json", without) == page
    assert printed(bin_dir, "json", page.replace(row, "| `former` | text | a row of the last version |")) == page
    empty = page.replace("| `backend` | text | the backend that refused |\n"
                         "| `node` | text | the node that was refused |\n"
                         "| `reason` | text | why it refused |\n", "")
    assert empty != page
    assert printed(bin_dir, "json", empty) == page


def test_a_page_without_a_table_is_refused(bin_dir):
    page = PAGE.read_text().replace("### Placement\n", "### Place\n")
    assert printed(bin_dir, "json", page, code=1) == (
        "print_descriptions: the page has no table 'Placement'\n")
