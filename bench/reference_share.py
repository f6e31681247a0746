#!/usr/bin/env python3
"""Prints the share of each network's time that is spent on reference kernels, which are right first
and fast second, if the given backends compute everything that they support.

Each model is explained (`tessera explain`), which times every step. A step on `reference` that
takes more than --most of the sum of all steps should get a kernel in a backend; it is listed. Exit
codes: 1, there is such a step or a model failed; 2, wrong arguments."""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ZOO = ROOT / "build" / "zoo"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/reference_share.py --backends native --threads 2")
    parser.add_argument("--models", default="", metavar="LIST",
                        help="names of folders under build/zoo, or files, separated by commas "
                             "(default: every model of the zoo)")
    parser.add_argument("--backends", default="onednn,native", metavar="LIST",
                        help="who computes what it can, best first (default: onednn,native)")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--most", type=float, default=1, metavar="PERCENT",
                        help="that a step may take on the reference (default: 1)")
    parser.add_argument("--tessera", type=pathlib.Path, default=ROOT / "build/release/bin/tessera",
                        metavar="FILE", help="the program (default: that of the release build)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    if not arguments.tessera.is_file():
        parser.error(f"there is no {arguments.tessera}: tools/build release")
    arguments.files = [find_model(parser, name) for name in arguments.models.split(",") if name] \
        or sorted(ZOO.glob("*/model.onnx"))
    if not arguments.files:
        parser.error(f"there are no models in {ZOO}: name some with --models")
    return arguments


def find_model(parser, name):
    for path in (pathlib.Path(name), ZOO / name / "model.onnx"):
        if path.is_file():
            return path
    parser.error(f"'{name}' is neither a file nor a model in {ZOO}")


def model_name(path):
    return path.parent.name if path.name == "model.onnx" else path.stem


def explain(arguments, path):
    """The plan with the median times of its steps."""
    done = subprocess.run(
        [arguments.tessera, "explain", path, "--json", "--no-optimize", "--backends",
         arguments.backends, "--threads", str(arguments.threads)], text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def reference_steps(report):
    """The steps on the reference, slowest first: name, op and percent of the time of all steps."""
    steps = [{"name": step["name"], "op": step["op"], "percent": 100 * step["share"]}
             for step in report["steps"] if step["backend"] == "reference"]
    return sorted(steps, key=lambda step: -step["percent"])


def main():
    arguments = parse_arguments()
    print(f"{'model':18} {'ms':>9}  {'on reference':>12}  {'share':>8}  dearest step there")
    rows = []
    failed = False
    for path in arguments.files:
        try:
            report = explain(arguments, path)
        except RuntimeError as error:
            failed = True
            print(f"{model_name(path):18} failed: {error}", flush=True)
            continue
        steps = reference_steps(report)
        rows.append({"model": model_name(path), "median_us": report["median_us"],
                     "steps": report["step_count"], "on_reference": steps})
        dearest = f"{steps[0]['name']} ({steps[0]['op']}), {steps[0]['percent']:.3f} %" \
            if steps else ""
        counts = f"{len(steps)} of {report['step_count']}"
        print(f"{model_name(path):18} {report['median_us'] / 1000:9.3f}  {counts:>12}  "
              f"{sum(step['percent'] for step in steps):6.3f} %  {dearest}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))
    above = [(row["model"], step) for row in rows for step in row["on_reference"]
             if step["percent"] > arguments.most]
    for model, step in above:
        print(f"{model}: {step['name']} ({step['op']}) takes {step['percent']:.2f} % on the "
              f"reference, more than {arguments.most:g} %")
    return 1 if above or failed else 0


if __name__ == "__main__":
    sys.exit(main())
