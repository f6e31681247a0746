#!/usr/bin/env python3
"""Makes docs/accuracy.md: the error bound of each op, and what backends and other runtimes reach.

The program measure_accuracy checks all candidates of all backends. ONNX Runtime and OpenVINO run
the same cases, which the program writes to a temporary folder. A number in the table is the largest
error as a share of what the bound allows. Exit code 1 if a backend exceeds a bound."""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ("ONNX Runtime", "OpenVINO")
TERMS = (("ulps", "{} ulp"), ("terms", "{} ε Σ"), ("inputs", "{} ε of inputs"),
         ("logs", "{} ε ln"), ("absolute", "{} ε"))

HEAD = """# Accuracy

Made by `{command}`; a test measures shorter tensors.

Every op states how large the error of a kernel may be (`src/ops/error_bounds.cc`), compared with the
exact result for the same inputs, element by element. A backend's candidate that exceeds the bound on
some inputs has the flag `TESSERA_CANDIDATE_ROUGH` and is used only with `accuracy="fast"`
(`--accuracy fast`); tuning and `tessera verify` refuse a candidate that exceeds it unannounced. In a
group of nodes, the error of each node is carried through those behind it
([0057](decisions/0057-stated-error-bounds.md)).

A bound is a sum of:

| Written | Means |
|---|---|
| n ulp | n times the distance from the exact result to the next number of its type |
| n ε Σ | n ε times the op's result for the magnitudes of its inputs: the sum of the magnitudes of the terms; at least of the result. ε is the distance from 1 to the next number: 2^-23 for float32 |
| n ε of inputs | the change of the result if each element of the inputs changes by up to n ε of itself |
| n ε ln | n ε times the magnitude of y ln y, where y is the exact result |
| n ε | n ε itself |
| exact | every element is equal |

Results below 2^-119 in float32 and bfloat16 (2^-1015 in float64) may be off by as much, because
kernels flush denormals, also in between. A result in float64 may have twice
the error, because nothing more exact judges it. Integers and bools must be equal, unless errors
within the bounds of the nodes before decide for another one.

## Bounds and largest errors

The largest error of all candidates of a backend, in percent of what the bound allows, over {lengths}
elements: random numbers in [-2, 2), tails (magnitudes from 2^-30 to 2^7, zeros of both signs), and
numbers close together and far from zero (8192 to 8196). "-": the backend has no kernel, or none that
is used with `accuracy="bounded"`. The reference rounds once in almost all ops. Numbers above 100 of
other runtimes are errors that a kernel of Tessera may not have by default; those of OpenVINO above
10^8 are of float64, which it computes in float32 (`findings/openvino_64_bits.sh`). There is one exception:
Winograd's convolutions of `native` keep a bound of their own, by norms in place of sums of
magnitudes ([0061](decisions/0061-winograd-within-bounds.md)), and exceed that of `Conv` in tails,
where few of the products count.

Equal elements are the worst case of a sum, because each addition rounds in the same direction:
`bench/equal_elements.py`. There, sums and averages of all backends stay within their bounds (but compiled column sums of squares
exceed theirs by up to a sixteenth at a few numbers, which it does not try); products
of matrices and convolutions of more than 200 terms exceed theirs, up to 10 and 20 times in `native`
(ONNX Runtime: 2 times and not; OpenVINO: 7 and 25).

"""


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


def share_of(np, found, folder):
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


def peer_shares(program, op, lengths):
    """By peer: the largest share over the cases of `op`; None where it runs none of them."""
    import numpy as np

    runners = dict(zip(PEERS, (run_onnxruntime, run_openvino)))
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
            for peer, run in runners.items():
                try:
                    share = share_of(np, run(folder / "model.onnx", inputs), folder)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/measure_accuracy")
    parser.add_argument("--lengths", default="1021,65536,1048576")
    parser.add_argument("--backends", default="reference,native,onednn,jit,openvino,opencl")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/accuracy.md")
    parser.add_argument("--lines", type=pathlib.Path,
                        help="lines of JSON that measure_accuracy printed, instead of running it")
    arguments = parser.parse_args()
    program = arguments.program
    backends = arguments.backends.split(",")
    bounds = lines_of(program, "--bounds")
    if arguments.lines:
        lines = [json.loads(line) for line in arguments.lines.read_text().splitlines()]
    else:
        lines = lines_of(program, "--backends", arguments.backends, "--lengths", arguments.lengths)
    rows = collections.defaultdict(dict)
    failures = []
    for line in lines:
        row = rows[line["op"]]
        row[line["backend"]] = max(row.get(line["backend"], 0), line["share"])
        if "failure" in line:
            failures.append(f"{line['backend']}, {line['case']}, {line['range']}: {line['failure']}")
    peers = {}
    if not arguments.no_peers:
        for bound in bounds:
            if bound["op"] in rows:
                peers[bound["op"]] = peer_shares(program, bound["op"], arguments.lengths)
    command = "bench/accuracy.py --lengths " + arguments.lengths
    lengths = arguments.lengths.replace(",", ", ")
    arguments.output.write_text(HEAD.format(command=command, lengths=lengths) +
                                table(bounds, rows, backends, peers))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
