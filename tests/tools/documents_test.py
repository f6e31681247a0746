"""Everything that the documents name exists: files, folders, links, and the functions that
ARCHITECTURE.md follows."""

import re

import pytest
from load_tool import ROOT

FOLDERS = ("backends", "bench", "cli", "cmake", "docs", "examples", "include", "python", "src", "tests", "tools")
# CHANGELOG.md also names things that no longer exist.
DOCUMENTS = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name != "CHANGELOG.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
# `Class::function()` (`file`): the file must define the function.
FUNCTION_IN_FILE = re.compile(r"`([\w:]+)\(\)`\s+\(`([\w/]+\.\w+)`\)")


def prose_of(path):
    """The text without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path):
    targets = [target.partition("#")[0] for target in LINK.findall(CODE_SPAN.sub("", prose_of(path)))
               if not target.startswith("http")]
    assert [target for target in targets if target and not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_and_folders_exist(path):
    named = [span for span in CODE_SPAN.findall(prose_of(path))
             if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", span) and span.split("/")[0] in FOLDERS and "/" in span]
    assert [span for span in named if not (ROOT / span).exists()] == []


def test_the_path_of_a_bench_names_functions_where_they_are():
    pairs = FUNCTION_IN_FILE.findall(prose_of(ROOT / "ARCHITECTURE.md"))
    assert len(pairs) > 20
    assert [(function, file) for function, file in pairs
            if not re.search(rf"\b{function.split('::')[-1]}\(", (ROOT / file).read_text())] == []


def test_the_index_of_the_examples_lists_each_of_them():
    text = (ROOT / "examples" / "README.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\) \| .{80,} \|$", text, re.M)
    assert all(name == target for name, target in listed)
    folders = {path.parent.name for path in (ROOT / "examples").glob("*/README.md")}
    assert len(folders) > 5 and folders <= {name for name, _ in listed}
