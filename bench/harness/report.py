"""What programs print and write: tables, the comparison of two sides, JSON, failures."""

import datetime
import json
import pathlib
import platform
import re
import shlex
import statistics
import sys

from harness.arguments import PROGRAM
from harness.processes import ProcessFailed, Progress
from harness.ratios import geometric_mean, ratio_of


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def count_text(count, unit="thread"):
    return f"{count} {unit}{'' if count == 1 else 's'}"


class Table:
    """Columns of text. Each has a title and a format with a width, as "9.3f"; None is printed as
    "-"."""

    def __init__(self, *columns):
        self.formats = [spec if spec[0] in "<>" else ">" + spec for _, spec in columns]
        self.widths = [re.match(r"[<>]\d+", spec)[0] for spec in self.formats]
        self.titles = [title for title, _ in columns]

    def print_titles(self):
        self.print(*self.titles)

    def print(self, *cells):
        """Cells that are text keep to the width alone."""
        texts = [format("-" if cell is None else cell,
                        width if cell is None or isinstance(cell, str) else spec)
                 for cell, width, spec in zip(cells, self.widths, self.formats)]
        print("".join(texts).rstrip(), flush=True)


def width_of(names, least="geometric mean"):
    """The format of a column with names."""
    return f"<{max(map(len, [least, *names])) + 1}"


class Report:
    """The rows that a program measured, and what failed."""

    def __init__(self, arguments, steps=0):
        """`steps`: how often say() is called for each case."""
        now = datetime.datetime.now(datetime.timezone.utc)
        self.arguments = arguments
        self.header = {"cpu": cpu_name(), "date": now.strftime("%Y-%m-%d %H:%M UTC"),
                       "command": shlex.join([f"bench/{PROGRAM}.py", *sys.argv[1:]])}
        self.rows, self.failures = [], []
        self.steps, self.progress, self.place = steps, Progress(0), ""

    def print_header(self, *more):
        print("; ".join([self.header["cpu"], *more, self.header["date"]])
              + f"\ncommand: {self.header['command']}\n", flush=True)

    def each_case(self, measure, counts=None, unit="thread"):
        """Calls `measure` with the name and the file of each model, for each number of threads. If
        a process fails, that is told at the end, and the other cases follow."""
        models, counts = self.arguments.models, counts or self.arguments.threads
        self.progress = Progress(self.steps * len(models) * len(counts))
        for count in counts:
            for name, model in models.items():
                self.place = f"{name}, {count_text(count, unit)}"
                try:
                    measure(name, model, count)
                except ProcessFailed as failure:
                    self.fail(failure)
                self.progress.clear()

    def say(self, text):
        """What is measured next of the present case."""
        self.progress.say(f"{self.place}, {text}")

    def fail(self, text):
        """Something failed in the present case."""
        self.failures.append(f"{self.place}: {text}")

    def print_row(self, table, row, *cells):
        """Keeps a row and prints it."""
        self.progress.clear()
        self.rows.append(row)
        table.print(*cells)

    def finish(self, **more):
        """Writes the file of --json, tells failures, and returns the exit code."""
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps(
                {**self.header, **more, "results": self.rows, "failures": self.failures},
                indent=1) + "\n")
        for failure in self.failures:
            print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return 1 if self.failures else 0


class Sides:
    """A report that compares the figures of two sides, taken in turns. A row whose whole interval
    of first / second lies below --least is a failure."""

    def __init__(self, report, first, second):
        self.report, self.names = report, (first, second)
        self.table = Table(("model", width_of(report.arguments.models)), ("threads", "7"),
                           ("  quantity", "<14"), (first, "11.3f"), (second, "11.3f"),
                           (f"   {first} / {second}", "<27"), ("", "<1"))
        report.print_header()
        self.table.print_titles()

    def add(self, model, threads, quantity, figures, note="", **more):
        """`figures`: name of a side -> its figures; `note` ends the line."""
        first, second = (figures[name] for name in self.names)
        ratio = ratio_of(first, second)
        row = {"model": model, "threads": threads, "quantity": quantity, **figures,
               **ratio.as_dict(), **more}
        least = self.report.arguments.least
        if (ratio.value if ratio.high is None else ratio.high) < least:
            self.report.failures.append(
                f"{model}, {count_text(threads)}, {quantity}: the whole interval of "
                f"{' / '.join(self.names)} lies below {least}")
            note += "  worse"
        self.report.print_row(
            self.table, row, model, threads, f"  {quantity}", statistics.median(first),
            statistics.median(second), f"   {ratio.text(3)}", note)

    def finish(self):
        """Prints geometric means; the rest is that of the report."""
        groups = {}
        for row in self.report.rows:
            groups.setdefault((row["threads"], row["quantity"]), []).append(
                [row[name] for name in self.names])
        for (threads, quantity), pairs in groups.items():
            self.table.print("geometric mean", threads, f"  {quantity}", "", "",
                             f"   {geometric_mean(pairs).text(3)}")
        return self.report.finish()
