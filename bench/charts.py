#!/usr/bin/env python3
"""Draws the charts of bench/RESULTS.md from the tables of that page, into bench/charts.

The page shows each chart directly above the table that it is made of; the text that describes the
picture there becomes the picture's own label. Run it after a table has changed."""

import argparse
import dataclasses
import math
import pathlib
import re
from xml.sax.saxutils import escape, quoteattr

BENCH = pathlib.Path(__file__).resolve().parent
PAGE = BENCH / "RESULTS.md"
FOLDER = BENCH / "charts"

IMAGE = re.compile(r"^!\[(.*)\]\(charts/(\w+)\.svg\)$", re.M)
INTERVAL = re.compile(r"\[[^\]]*\]")
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclasses.dataclass(frozen=True)
class Series:
    """Bars of one colour: the numbers of a column."""

    label: str       # in the legend; a runtime's name at its begin decides the colour
    column: str      # as the head of the table names it
    part: int = 0    # which number of a cell such as "2.8 / 61.8" or "7.62 (1.91)"
    over: str = ""   # divides by the number of this column


@dataclasses.dataclass(frozen=True)
class Chart:
    """One picture: a group of bars for each row of a table."""

    name: str                  # of the file
    title: str
    axis: str                  # what the numbers are, with their unit
    series: tuple[Series, ...]
    line: float | None = None  # marked by a line: equally fast, or a limit
    base: float = 0            # where bars begin
    panels: int = 1            # side by side
    transposed: bool = False   # the table has a row for each series, a column for each group


def same(*columns):
    return tuple(Series(column, column) for column in columns)


FASTER = "the other's time / Tessera's; above 1, Tessera is faster"

CHARTS = (
    Chart("networks", "Whole networks: how much longer others take", FASTER,
          (Series("ONNX Runtime, 1 thread", "ONNX Runtime, ratio"),
           Series("OpenVINO, 1 thread", "OpenVINO, ratio"),
           Series("the better of both, 2 threads",
                  "2 threads, Zen 5, ms (better peer's ratio)", -1)), line=1),
    Chart("others", "Other kinds of networks: how much longer the better peer takes", FASTER,
          (Series("1 thread", "1 thread, ms (ratio)", -1),
           Series("2 threads", "2 threads, ms (ratio)", -1)), line=1, panels=2),
    Chart("exported", "Exported networks: how much longer the better peer takes, 1 thread", FASTER,
          (Series("1 thread", "ratio"),), line=1, panels=2),
    Chart("alone", "One library alone: how much longer its plans take, 2 threads",
          "time with one library / time of the choice among all",
          (Series("oneDNN", "oneDNN alone"), Series("native", "native alone"),
           Series("OpenVINO", "OpenVINO alone")), line=1),
    Chart("tuning", "Tuning of a network, once", "seconds", (Series("tuning", "tuning, s"),)),
    Chart("starts", "From the start of a process to its first result", "ms, without the run itself",
          (Series("Tessera", "Tessera, ms"), Series("OpenVINO", "OpenVINO, ms"),
           Series("ONNX Runtime", "ONNX Runtime, ms"))),
    Chart("memory", "Peak memory of a process", "MiB above a process with NumPy",
          (Series("Tessera", "Tessera, MiB"), Series("ONNX Runtime", "ONNX Runtime, MiB"),
           Series("OpenVINO", "OpenVINO, MiB"))),
    Chart("requests", "Requests at the same time",
          "Tessera's requests a second / the other's; above 1, Tessera completes more",
          same("ONNX Runtime", "OpenVINO"), line=1),
    Chart("chess", "Answers of a chess engine's evaluator", "answers a second",
          (Series("1 search thread", "answers/s, 1 thread"), Series("2 threads", "2 threads"),
           Series("4 threads", "4 threads"))),
    Chart("session", "One run of an Add in a session", "microseconds",
          same("Add [1,4]", "Add [1,4], bound", "Add [1,1000]", "Add [1,1000], bound")),
    Chart("errors", "Largest error of tuned networks",
          "error / ONNX Runtime's error; below 1, Tessera is nearer to float64",
          (Series("ordinary inputs", "tuned / ONNX Runtime"),
           Series("one element of 10^4", "outlier: tuned / ONNX Runtime")), line=1),
    Chart("price", "What bounded errors cost",
          "time without bounds / time with them; below 1, they cost",
          (Series("not tuned", "bounds, not tuned"), Series("tuned", "bounds, tuned")),
          line=1, base=1),
    Chart("attention", "One layer of attention, 1 thread: how much longer others take", FASTER,
          same("ONNX Runtime", "OpenVINO"), line=1),
    Chart("layers", "Single layers, 1 thread: how much longer oneDNN takes",
          "oneDNN's time / native's; above 1, native is faster",
          (Series("1 thread", "oneDNN, us", over="native, us"),), line=1),
    Chart("groups", "Compiled groups, 1 thread", "percent of the limit",
          tuple(Series(size, "% of the limit", part)
                for part, size in enumerate(("16 KiB", "1 MiB", "64 MiB"))), line=100),
    Chart("choices", "Plans chosen under disturbances",
          "time / time of a plan chosen in silence; above 1, it is slower",
          (Series("chosen beside a noisy process", "noise"),
           Series("chosen with a full store", "store")), line=1, base=1),
    Chart("arenas", "Packing of arenas, published problems", "seconds",
          same("Tessera", "MiniMalloc"), transposed=True),
)

# Sizes in pixels. A character is taken to be as wide as the widest usual fonts make it on average.
WIDTH = 780
MARGIN = 12
BAR = 11
GROUP_GAP = 7
TEXT = 12
VALUE_TEXT = 10
CHARACTER = 0.6
BOLD_CHARACTER = 0.68

RUNTIMES = {"Tessera": "tessera", "ONNX Runtime": "onnxruntime", "OpenVINO": "openvino"}
OTHERS = ("one", "two", "three", "four")
# The page's own background keeps the text readable if a viewer is dark and does not say so. Numbers
# have a rim of its colour, so that lines do not cross them.
STYLE = """<style>
.page { fill: #ffffff } .text { fill: #223344 } .grid { stroke: #dde2ea } .line { stroke: #223344 }
.value { stroke: #ffffff; stroke-width: 3px; paint-order: stroke }
.tessera { fill: #3d8b4f } .onnxruntime { fill: #c8553d } .openvino { fill: #1b6ca8 }
.one { fill: #2a9d9d } .two { fill: #b08a1b } .three { fill: #8a5fb0 } .four { fill: #a83d6e }
@media (prefers-color-scheme: dark) {
.page { fill: #161b22 } .text { fill: #d6dde6 } .grid { stroke: #30363d } .line { stroke: #d6dde6 }
.value { stroke: #161b22 }
.tessera { fill: #57ab6a } .onnxruntime { fill: #e07b62 } .openvino { fill: #4b9bd6 }
.one { fill: #48b5b5 } .two { fill: #cfaa45 } .three { fill: #ab86cf } .four { fill: #d0668f }
}
</style>"""


@dataclasses.dataclass(frozen=True)
class Bar:
    value: float
    text: str  # as the table has it
    css: str


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read_table(lines):
    """The head and the rows of a table. If the names of its columns repeat, the table has several
    parts side by side, which come one after the other."""
    head, _, *rows = [cells_of(line) for line in lines]
    width = head.index(head[0], 1) if head[0] in head[1:] else len(head)
    parts = [[row[start:start + width] for row in rows] for start in range(0, len(head), width)]
    return head[:width], [row for part in parts for row in part if row[0]]


def read_page(text):
    """Name of a chart -> (description, head, rows): of the first table behind its picture."""
    tables = {}
    for image in IMAGE.finditer(text):
        lines = text[image.end():].splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("|"))
        behind = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")),
                      len(lines))
        tables[image.group(2)] = (image.group(1), *read_table(lines[first:behind]))
    return tables


def number_in(cell, part):
    """(value, its text), or None if the cell has no such number. Intervals do not count."""
    found = NUMBER.findall(INTERVAL.sub("", cell))
    if not -len(found) <= part < len(found):
        return None
    return float(found[part].replace(",", "")), found[part]


def css_of(chart):
    """A class for each series: its runtime's, or the next of the others."""
    others = iter(OTHERS)
    return [next((css for name, css in RUNTIMES.items() if series.label.startswith(name)), None)
            or next(others) for series in chart.series]


def read_groups(chart, head, rows):
    """(label, bars) for each row that has numbers; a bar is None where a number is missing."""
    if chart.transposed:
        head, *rows = [list(column) for column in zip(head, *rows, strict=True)]
    for series in chart.series:
        for column in (series.column, series.over or series.column):
            if column not in head:
                raise SystemExit(f"charts: the table of '{chart.name}' has no column '{column}'")
    groups = []
    for row in rows:
        bars = []
        for series, css in zip(chart.series, css_of(chart), strict=True):
            found = number_in(row[head.index(series.column)], series.part)
            if found and series.over:
                quotient = found[0] / number_in(row[head.index(series.over)], 0)[0]
                found = quotient, f"{quotient:.2f}"
            bars.append(found and Bar(*found, css))
        if any(bars):
            groups.append((row[0], bars))
    return groups


def ticks_of(chart, groups, most):
    """Round numbers from the smallest to the largest value, at most `most`."""
    values = [bar.value for _, bars in groups for bar in bars if bar]
    low = min(*values, chart.base)
    high = max(*values, chart.line or 0)
    for step in (factor * 10**power for power in range(-3, 6) for factor in (1, 2, 5)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first < most:
            return [round(step * index, 6) for index in range(first, last + 1)]
    raise ValueError(f"{chart.name}: values to {high}")


def text_width(text, size, bold=False):
    return len(text) * size * (BOLD_CHARACTER if bold else CHARACTER)


def label_width(groups):
    return max(text_width(label.strip("*"), TEXT, label.startswith("*")) for label, _ in groups)


def text_at(x, y, text, size=TEXT, anchor="start", css="text", bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}"{weight}>{escape(text)}</text>')


def draw_legend(chart, top):
    """(its parts, where it ends). One series needs none."""
    if len(chart.series) == 1:
        return [], top
    parts, x = [], MARGIN
    for series, css in zip(chart.series, css_of(chart), strict=True):
        width = 18 + text_width(series.label, TEXT) + 16
        if x + width > WIDTH:
            x, top = MARGIN, top + 18
        parts.append(f'<rect class="{css}" x="{x:.1f}" y="{top:.1f}" width="12" height="12"/>')
        parts.append(text_at(x + 18, top + 10, series.label))
        x += width
    return parts, top + 26


def draw_bar(bar, scale, base, y):
    """(the bar, its number)"""
    start, end = sorted((scale(base), scale(bar.value)))
    left = bar.value < base
    return (f'<rect class="{bar.css}" x="{start:.1f}" y="{y:.1f}" width="{end - start:.1f}" '
            f'height="{BAR - 1}"/>',
            text_at(start - 4 if left else end + 4, y + BAR - 2, bar.text, VALUE_TEXT,
                    "end" if left else "start", css="text value"))


def draw_panel(chart, groups, ticks, labels, left, right, top):
    """The groups from `top` on, between `left` and `right`, with `labels` pixels for their names;
    returns (its parts, where it ends)."""
    values = max(text_width(bar.text, VALUE_TEXT) for _, bars in groups for bar in bars if bar)
    first = left + labels + 8 + (values + 6 if chart.base else 0)
    last = right - values - 8
    bottom = top + len(groups) * (len(chart.series) * BAR + GROUP_GAP)

    def scale(value):
        return first + (last - first) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts, numbers = [], []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{scale(tick):.1f} {top} V{bottom}"/>')
        parts.append(text_at(scale(tick), bottom + 16, f"{tick:g}", anchor="middle"))
    y = top + GROUP_GAP / 2
    for label, bars in groups:
        middle = y + len(bars) * BAR / 2 + 4
        parts.append(text_at(left + labels, middle, label.strip("*"), anchor="end",
                             bold=label.startswith("*")))
        for index, bar in enumerate(bars):
            if bar:
                drawn, number = draw_bar(bar, scale, chart.base, y + index * BAR)
                parts.append(drawn)
                numbers.append(number)
        y += len(bars) * BAR + GROUP_GAP
    if chart.line is not None:
        parts.append(f'<path class="line" stroke-dasharray="4 3" d="M{scale(chart.line):.1f} {top} '
                     f'V{bottom}"/>')
    return parts + numbers, bottom + 22


def draw(chart, description, head, rows):
    """The picture as text."""
    groups = read_groups(chart, head, rows)
    ticks = ticks_of(chart, groups, 11 if chart.panels == 1 else 6)
    parts, top = draw_legend(chart, 38)
    length = math.ceil(len(groups) / chart.panels)
    width = (WIDTH - MARGIN) / chart.panels
    ends = []
    for panel in range(chart.panels):
        left = MARGIN + panel * width
        drawn, end = draw_panel(chart, groups[panel * length:(panel + 1) * length], ticks,
                                label_width(groups), left, left + width - MARGIN, top)
        parts += drawn
        ends.append(end)
    height = max(ends) + 26
    parts.append(text_at(WIDTH / 2, height - 12, chart.axis, anchor="middle"))
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" font-family="sans-serif" role="img" '
        f"aria-label={quoteattr(description)}>",
        STYLE, f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>',
        text_at(MARGIN, 24, chart.title, 15, bold=True), *parts, "</svg>\n"))


def draw_all(text):
    """Name of a chart -> picture, for the page's text."""
    tables = read_page(text)
    missing = [chart.name for chart in CHARTS if chart.name not in tables]
    if missing:
        raise SystemExit(f"charts: bench/RESULTS.md shows no charts/{missing[0]}.svg")
    return {chart.name: draw(chart, *tables[chart.name]) for chart in CHARTS}


def main():
    argparse.ArgumentParser(description=__doc__, epilog="example: bench/charts.py",
                            formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, picture in draw_all(PAGE.read_text()).items():
        (FOLDER / f"{name}.svg").write_text(picture)
        print(FOLDER.relative_to(BENCH.parent) / f"{name}.svg")


if __name__ == "__main__":
    main()
