#!/usr/bin/env python3
"""Makes the table of docs/accuracy.md: the error bound of each op, and what backends and other
runtimes reach. The text above the table stays, with the command and the lengths of the tensors.

The program measure_accuracy checks all candidates of all backends. ONNX Runtime and OpenVINO run
the same cases, which the program writes to a temporary folder. A number in the table is the largest
error as a share of what the bound allows. Exit code 1 if a backend exceeds a bound."""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import ROOT
from harness.arguments import RELEASE, Parser

import numpy as np

DOCUMENT = ROOT / "docs" / "accuracy.md"
TERMS = (("ulps", "{} ulp"), ("terms", "{} ε Σ"), ("inputs", "{} ε of inputs"),
         ("logs", "{} ε ln"), ("absolute", "{} ε"))


def number(value):
    return f"{value:g}"


def bound_text(bound):
    parts = [text.format(number(bound[name])) for name, text in TERMS if bound[name]]
    return " + ".join(parts) or "exact"


def lines_of(program, *arguments):
    made = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if made.returncode not in (0, 1):
        raise SystemExit(f"{program}: {made.stderr}")
    return [json.loads(line) for line in made.stdout.splitlines()]


def share_of(found, folder):
    """The largest error as a share of what is allowed."""
    exact = np.load(folder / "exact.npy")
    spread_file = folder / "spread.npy"
    if found.shape != exact.shape:
        return math.inf
    if exact.dtype != np.float64 or not spread_file.exists():
        return 0.0 if np.array_equal(found.astype(exact.dtype), exact, equal_nan=True) else math.inf
    spread = np.load(spread_file)
    with np.errstate(all="ignore"):
        # Overflows and what is not a number are judged elsewhere.
        counts = np.isfinite(exact) & np.isfinite(spread) & np.isfinite(found)
        error = np.abs(found.astype(np.float64) - exact)[counts]
        allowed = spread[counts]
        shares = np.where(error == 0, 0, error / allowed)
    return float(shares.max()) if shares.size else 0.0


def run_onnxruntime(model, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs)))[0]


def run_openvino(model, inputs):
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    compiled = core.compile_model(str(model), "CPU")
    return compiled(inputs)[compiled.output(0)]


PEERS = {"ONNX Runtime": run_onnxruntime, "OpenVINO": run_openvino}


def peer_shares(program, op, lengths):
    """By peer: the largest share over the cases of `op`; None where it runs none of them."""
    largest = dict.fromkeys(PEERS)
    with tempfile.TemporaryDirectory() as temporary:
        lines_of(program, "--backends", "reference", "--only", op + "(", "--lengths", lengths,
                 "--folder", temporary)
        lines_of(program, "--backends", "reference", "--only", op + "/", "--lengths", lengths,
                 "--folder", temporary + "/more")
        for about in sorted(pathlib.Path(temporary).rglob("case.json")):
            folder = about.parent
            if json.loads(about.read_text())["op"] != op:
                continue
            inputs = [np.load(file) for file in sorted(folder.glob("input*.npy"))]
            for peer, run in PEERS.items():
                try:
                    share = share_of(run(folder / "model.onnx", inputs), folder)
                except Exception:  # It lacks the op, its version, or the type.
                    continue
                largest[peer] = max(largest[peer] or 0, share)
    return largest


def cell(share):
    if share is None:
        return "-"
    if share > 1e6:
        return "> 10^8"
    return f"{100 * share:.0f}"


def table(bounds, rows, backends, peers):
    head = ["Op", "Bound", *backends, *(PEERS if peers else ()), "Why this bound"]
    text = "| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n"
    for bound in bounds:
        op = bound["op"]
        if op not in rows:
            continue
        cells = [cell(rows[op].get(backend)) for backend in backends]
        cells += [cell(peers[op][peer]) for peer in PEERS] if peers else []
        text += f"| `{op}` | {bound_text(bound)} | {' | '.join(cells)} | {bound['source']} |\n"
    return text


def document_of(lengths, table):
    """docs/accuracy.md with this table; `lengths`: as --lengths has them."""
    text = DOCUMENT.read_text()
    head = text[:text.index("| Op | Bound |")]
    head = re.sub(r"Made by `.*?`", f"Made by `bench/accuracy.py --lengths {lengths}`", head)
    head = re.sub(r"over [\d, ]+\n", f"over {lengths.replace(',', ', ')}\n", head)
    return head + table


def parse_arguments():
    parser = Parser(__doc__, "--lengths 1021 --no-peers --output /tmp/accuracy.md")
    parser.option("--program", RELEASE / "bin" / "measure_accuracy")
    parser.option("--lengths", "1021,65536,1048576")
    parser.option("--backends", "reference,native,onednn,jit,openvino,opencl")
    parser.flag("--no-peers", "without the other runtimes")
    parser.option("--output", DOCUMENT)
    parser.option("--lines", None, "lines that measure_accuracy printed, instead of running it",
                  pathlib.Path, "FILE")
    return parser.parse()


def main():
    arguments = parse_arguments()
    program = arguments.program
    bounds = lines_of(program, "--bounds")
    if arguments.lines:
        lines = [json.loads(line) for line in arguments.lines.read_text().splitlines()]
    else:
        lines = lines_of(program, "--backends", arguments.backends, "--lengths", arguments.lengths)
    rows = collections.defaultdict(dict)
    for line in lines:
        row = rows[line["op"]]
        row[line["backend"]] = max(row.get(line["backend"], 0), line["share"])
    peers = {} if arguments.no_peers else {
        bound["op"]: peer_shares(program, bound["op"], arguments.lengths)
        for bound in bounds if bound["op"] in rows}
    arguments.output.write_text(document_of(
        arguments.lengths, table(bounds, rows, arguments.backends.split(","), peers)))
    failures = [line for line in lines if "failure" in line]
    for line in failures:
        print(f"{line['backend']}, {line['case']}, {line['range']}: {line['failure']}",
              file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
