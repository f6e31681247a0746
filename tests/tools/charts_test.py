"""The charts of bench/RESULTS.md are those that bench/charts.py makes of its tables, each is shown,
and no texts in them overlap. Links to the page lead to its headings."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from load_tool import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import charts

PAGE = charts.PAGE.read_text()
PICTURES = sorted(charts.FOLDER.glob("*.svg"))
DOCUMENTS = [path for folder in ("", "docs/", "docs/decisions/", "backends/*/", "bench/")
             for path in ROOT.glob(f"{folder}*.md")]


def test_the_charts_are_made_of_the_tables():
    made = charts.draw_all(PAGE)
    assert [path.stem for path in PICTURES] == sorted(made)
    old = [path.name for path in PICTURES if path.read_text() != made[path.stem]]
    assert old == [], "run bench/charts.py"


def test_the_page_shows_each_chart_once_and_describes_it():
    shown = charts.IMAGE.findall(PAGE)
    assert sorted(name for _, name in shown) == [path.stem for path in PICTURES]
    assert [name for description, name in shown if len(description) < 30] == []


def box_of(text):
    """(left, top, right, bottom) of a text, with characters as wide as charts.py assumes them."""
    size, x, y = (float(text.get(name)) for name in ("font-size", "x", "y"))
    width = charts.text_width(text.text, size)
    left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
    return left, y - 0.75 * size, left + width, y + 0.2 * size


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_texts_are_in_the_picture_and_do_not_overlap(path):
    picture = ElementTree.parse(path).getroot()
    _, _, width, height = (float(number) for number in picture.get("viewBox").split())
    texts = [item for item in picture.iter() if item.tag.endswith("}text")]
    assert len(texts) > 8
    boxes = [box_of(text) for text in texts]
    assert [text.text for text, (left, top, right, bottom) in zip(texts, boxes, strict=True)
            if left < 0 or top < 0 or right > width or bottom > height] == []
    assert [(texts[i].text, texts[j].text) for i, one in enumerate(boxes)
            for j, two in enumerate(boxes[:i])
            if one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]] == []


TABLE = """![what it shows](charts/made_up.svg)

| network | ms (ratio) | share | network | ms (ratio) | share |
|---|---:|---:|---|---:|---:|
| one | 1,024.5 (2.50) | 0.5 [0.4, 0.6] | **mean** | (3.00) | - |
| two | 8 (1.25) | 4e-1 | | | |
"""


def test_parts_side_by_side_come_one_after_the_other():
    description, head, rows = charts.read_page(TABLE)["made_up"]
    assert description == "what it shows"
    assert head == ["network", "ms (ratio)", "share"]
    assert [row[0] for row in rows] == ["one", "two", "**mean**"]


@pytest.mark.parametrize(("series", "values"), [
    (charts.Series("first", "ms (ratio)"), [1024.5, 8, 3]),
    (charts.Series("last", "ms (ratio)", -1), [2.5, 1.25, 3]),
    (charts.Series("without intervals", "share"), [0.5, 0.4]),
    (charts.Series("quotient", "share", over="ms (ratio)"), [0.5 / 1024.5, 0.05]),
], ids=lambda value: value.label if isinstance(value, charts.Series) else "")
def test_numbers_of_a_column(series, values):
    chart = charts.Chart("made_up", "", "", (series,))
    _, head, rows = charts.read_page(TABLE)["made_up"]
    groups = charts.read_groups(chart, head, rows)
    assert [bar.value for _, bars in groups for bar in bars] == values


def test_a_changed_head_is_an_error_that_names_it():
    chart = charts.Chart("made_up", "", "", (charts.Series("a", "seconds"),))
    _, head, rows = charts.read_page(TABLE)["made_up"]
    with pytest.raises(SystemExit, match="'made_up' has no column 'seconds'"):
        charts.read_groups(chart, head, rows)


def test_links_lead_to_headings_of_the_page():
    headings = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
                for heading in re.findall(r"^## (.+)$", PAGE, re.M)}
    links = [(path, anchor) for path in DOCUMENTS for anchor in re.findall(
        r"RESULTS\.md#([\w-]+)" if path != charts.PAGE else r"\]\(#([\w-]+)\)", path.read_text())]
    assert len(links) > 3
    assert [(str(path), anchor) for path, anchor in links if anchor not in headings] == []
