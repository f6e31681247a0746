#!/usr/bin/env python3
"""Prints the share of each network's time that is spent on reference kernels, which are right first
and fast second, if the given backends compute everything that they support.

Each model is explained (`tessera explain`), which times every step. A step on `reference` that
takes more than --most of the sum of all steps should get a kernel in a backend; it is listed. Exit
codes: 1, there is such a step or a model failed; 2, wrong arguments."""

import json
import subprocess
import sys

from harness.arguments import Parser
from harness.processes import ProcessFailed
from harness.report import Report, Table, width_of


def parse_arguments():
    parser = Parser(__doc__, "--backends native --threads 2")
    parser.option("--backends", "onednn,native", "who computes what it can, best first")
    parser.option("--most", 1.0, "percent that a step may take on the reference")
    parser.share("models", "json", "tessera", threads=[1])
    return parser.parse()


def explain(arguments, path, threads):
    """The plan with the median times of its steps."""
    done = subprocess.run(
        [arguments.tessera, "explain", path, "--json", "--no-optimize", "--backends",
         arguments.backends, "--threads", str(threads)],
        text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise ProcessFailed(done.stderr.strip())
    return json.loads(done.stdout)


def reference_steps(told):
    """The steps on the reference, slowest first: name, op and percent of the time of all steps."""
    steps = [{"name": step["name"], "op": step["op"], "percent": 100 * step["share"]}
             for step in told["steps"] if step["backend"] == "reference"]
    return sorted(steps, key=lambda step: -step["percent"])


def main():
    arguments = parse_arguments()
    report = Report(arguments)
    table = Table(("model", width_of(arguments.models)), ("ms", "10.3f"), ("on reference", "14"),
                  ("share", "10"), ("  slowest step there", "<1"))
    table.print_titles()

    def measure(name, path, threads):
        told = explain(arguments, path, threads)
        steps = reference_steps(told)
        row = {"model": name, "threads": threads, "median_us": told["median_us"],
               "steps": told["step_count"], "on_reference": steps}
        slowest = [f"  {step['name']} ({step['op']}), {step['percent']:.3f} %"
                   for step in steps[:1]]
        report.print_row(table, row, name, told["median_us"] / 1000,
                         f"{len(steps)} of {told['step_count']}",
                         f"{sum(step['percent'] for step in steps):.3f} %", *slowest)
        report.failures += [
            f"{name}: {step['name']} ({step['op']}) takes {step['percent']:.2f} % on the "
            f"reference, more than {arguments.most:g} %"
            for step in steps if step["percent"] > arguments.most]

    report.each_case(measure)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
