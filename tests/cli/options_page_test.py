"""docs/options.md, Python's bind() and the table of options agree."""

import inspect
import pathlib
import re

from programs import run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITHOUT_KEYWORD = ("shape_ranges", "more_shapes", "tune.describes_candidates")
PAGE = ROOT / "docs" / "options.md"


def column(number):
    """The code spans of a column of all tables of the page."""
    rows = [re.split(r"(?<!\\)\|", line)[1:] for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [span for row in rows for span in re.findall(r"`([^`]+)`", row[number])]


def test_the_page_is_fresh(bin_dir):
    printed = run_program(bin_dir / "print_options").stdout
    assert PAGE.read_text() == printed, "run: tools/write_pages options"


def test_each_keyword_is_on_the_page(tessera):
    documented = tessera.Model.bind.__doc__
    signature = str(inspect.signature(tessera.Model.bind))
    assert len(column(1)) > 30
    for keyword, default in zip(column(1), [text for name, text in zip(column(0), column(3))
                                            if name not in WITHOUT_KEYWORD], strict=True):
        given = default.replace('"', "'")
        assert re.search(rf"\b{keyword}: [^=]* = {re.escape(given)}[,)]", signature), keyword
        assert f"\n{keyword}: " in documented
    assert inspect.getdoc(tessera.Model.bind)


def test_each_flag_is_on_the_page(bin_dir):
    flags = set()
    for command in ("run", "bench", "tune"):
        text = run_program(bin_dir / "tessera", command, "--help").stdout
        parts = re.split(r"^(?=\S.*:$)", text, flags=re.M)
        flags |= {flag for part in parts if part.startswith(("Where and how it runs", "How the plan is chosen"))
                  for flag in re.findall(r"^  (--[\w-]+)", part, re.M)}
    on_page = {span.split(" ")[0] for span in column(2)}
    assert flags - {"--backend-path"} == on_page - {"--all"}
