#!/usr/bin/env python3
"""Every op alone beside ONNX Runtime, on a small and on a large input
(networks/operator_cases): models of one node. Both run in one process, by turns, from a call in
Python with NumPy arrays to the NumPy arrays of the outputs. The values of both are compared.

  us        the lower quartile of the times of a run, which other processes disturb least; with one
            thread, its processor time
  ratio     ONNX Runtime's time over Tessera's
  backends  of Tessera, which computed the node

Rows are printed from the worst ratio on. Exit codes: 1, outputs differ or a runtime failed;
2, wrong arguments."""

import json
import math
import sys
import time

from harness.arguments import Parser
from harness.report import Table, width_of
from harness.turns import run_for, take_turns, timer_of
from networks.operator_cases import all_cases
from networks.operator_cases.case import Either, Fixed

import numpy as np
import onnx
import onnxruntime
from onnx import helper

SIZES = ("small", "large")
WARM_UP_SECONDS = 0.01
BLOCKS = 4
OLDEST_SET = 7
# Below this ratio, an op is listed as slow.
SLOW = 0.5


def parse_arguments():
    parser = Parser(__doc__, "--ops TopK,Softmax --threads 1")
    parser.option("--ops", "", "names of cases or their first words, separated by commas "
                               "(default: all)")
    parser.option("--sizes", ",".join(SIZES), "small, large, or both")
    parser.share(threads=1)
    parser.option("--seconds", 0.1, "to measure each runtime on each case")
    parser.option("--backends", "", "of Tessera; the reference computes what these refuse")
    parser.option("--slower-than", math.inf, "prints only rows with a ratio below it")
    parser.share("json", "module_dir")
    arguments = parser.parse()
    wanted = [name for name in arguments.ops.split(",") if name]
    arguments.cases = [each for each in all_cases()
                       if not wanted or {each.name, each.op, each.name.split(" ")[0]} & {*wanted}]
    arguments.sizes = [size for size in SIZES if size in arguments.sizes.split(",")]
    if not arguments.cases or not arguments.sizes:
        parser.error("no case has such a name")
    return arguments


# --- A case as a model ---


def arrays_of(case, size):
    """(array or None, is it a constant) of each input."""
    source = np.random.default_rng(7)
    made = []
    for given in case.inputs[size]:
        is_fixed = isinstance(given, Fixed)
        make = given.value if is_fixed else given
        made.append((None if make is None else np.asarray(make(source)), is_fixed))
    return made


def sets_of(case):
    """The operator sets in which to try a case, the newest first."""
    if case.opset or case.domain:
        return [case.opset or 1]
    return sorted({max(OLDEST_SET, schema.since_version)
                   for schema in onnx.defs.get_all_schemas_with_history()
                   if schema.name == case.op and schema.domain == "" and not schema.deprecated},
                  reverse=True)


def model_of(case, size, opset):
    """The model's bytes, and what to feed."""
    names, feeds, constants = [], {}, []
    for index, (array, is_fixed) in enumerate(arrays_of(case, size)):
        names.append("" if array is None else f"i{index}")
        if array is not None and is_fixed:
            constants.append(onnx.numpy_helper.from_array(array, names[-1]))
        elif array is not None:
            feeds[names[-1]] = array
    attributes = {name: getattr(value, size) if isinstance(value, Either) else value
                  for name, value in case.attributes.items()}
    node = helper.make_node(case.op, names, [f"o{index}" for index in range(case.outputs)],
                            domain=case.domain)
    known = None
    if not case.domain and onnx.defs.has(case.op):
        known = onnx.defs.get_schema(case.op, opset, "").attributes
    for name, value in attributes.items():
        if known is not None and name not in known:
            continue  # an older version decides it otherwise
        node.attribute.append(helper.make_attribute(name, value))
    inputs = [helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()]
    graph = helper.make_graph([node], "operator", inputs,
                              [onnx.ValueInfoProto(name=name) for name in node.output], constants)
    sets = [helper.make_opsetid("", 21 if case.domain else opset)]
    if case.domain:
        sets.append(helper.make_opsetid(case.domain, opset))
    return helper.make_model(graph, ir_version=10, opset_imports=sets).SerializeToString(), feeds


def peer_of(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def executor_of(model, feeds, arguments):
    import tessera

    backends = [name for name in arguments.backends.split(",") if name]
    executor = tessera.load(model, log=lambda message: None).bind(
        {name: array.shape for name, array in feeds.items()}, threads=arguments.threads,
        backends=[*backends, "reference"] if backends else [], optimize=False)
    executor.wait_for_swap()
    return executor


def backends_of(executor):
    """Those that computed something, the views of a plan aside."""
    steps = [step for step in executor.plan().steps if step.op not in ("convert", "copy", "view")]
    return "+".join(dict.fromkeys(step.backend for step in steps)) or "view"


# --- One case ---


def explain_difference(expected, found):
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"{found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
    if expected.dtype.kind not in "fc":
        differing = int(np.count_nonzero(expected != found))
        # Rounding to integers may differ where two of them are equally near.
        near = expected.dtype.itemsize == 1 and differing and np.max(np.abs(
            expected.astype(int) - found.astype(int))) <= 1
        return f"{differing} elements differ" if differing and not near else ""
    with np.errstate(all="ignore"):
        expected, found = expected.astype(np.float64), found.astype(np.float64)
        scale = np.sqrt(np.nanmean(np.where(np.isinf(expected), 0, expected)**2)) if found.size else 0
        is_near = np.isclose(found, expected, rtol=3e-3, atol=3e-3 * scale, equal_nan=True)
        return "" if is_near.all() else f"off by up to {np.nanmax(np.abs(found - expected)):.3g}"


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150]


def load(case, size, arguments):
    """The runtimes' functions by name, and what failed by name, on the newest version that ONNX
    Runtime has; on the newest of all if it has none."""
    failures = {}
    for opset in sets_of(case):
        model, feeds = model_of(case, size, opset)
        try:
            session = peer_of(model, arguments.threads)
            session.run(None, feeds)
            break
        except Exception as error:  # noqa: BLE001: each failure of a runtime becomes text
            failures.setdefault("onnxruntime", first_line(error))
    else:
        session = None
        model, feeds = model_of(case, size, sets_of(case)[0])
    runs, backends = {}, ""
    if session is not None:
        failures.clear()
        runs["onnxruntime"] = lambda: session.run(None, feeds)
    try:
        executor = executor_of(model, feeds, arguments)
        executor.run(feeds)
        backends = backends_of(executor)
        runs["tessera"] = lambda: executor.run(feeds)
    except Exception as error:  # noqa: BLE001
        failures["tessera"] = first_line(error)
    return runs, failures, backends


def processor_timer_of(run):
    def timed():
        begin = time.thread_time()
        run()
        return time.thread_time() - begin

    return timed


def times_of(runs, arguments):
    """The seconds of the runs of each runtime, in short turns."""
    block = arguments.seconds / BLOCKS
    if arguments.threads > 1:
        return take_turns({name: timer_of(run) for name, run in runs.items()}, arguments.seconds,
                          block, WARM_UP_SECONDS)
    times = {name: [] for name in runs}
    for _ in range(BLOCKS):
        for name, run in runs.items():
            run()
            times[name] += run_for(processor_timer_of(run), block)
    return times


def measure(case, size, arguments):
    runs, failures, backends = load(case, size, arguments)
    row = {"op": case.name, "size": size, "threads": arguments.threads, "backends": backends,
           "failures": failures, "ratio": None, "difference": ""}
    if len(runs) == 2 and not case.is_random:
        outputs = [run() for run in runs.values()]
        row["difference"] = "; ".join(filter(None, (
            explain_difference(np.asarray(expected), np.asarray(found))
            for expected, found in zip(*outputs, strict=True))))
    for name, found in times_of(runs, arguments).items():
        row[f"{name}_us"] = 1e6 * sorted(found)[len(found) // 4]
    if len(runs) == 2:
        row["ratio"] = row["onnxruntime_us"] / row["tessera_us"]
    return row


# --- Reporting ---


def geometric_mean(rows):
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def print_size(size, rows, least):
    both = sorted((row for row in rows if row["ratio"]), key=lambda row: row["ratio"])
    table = Table((size, width_of([row["op"] for row in rows])), ("onnxruntime, us", "17.1f"),
                  ("tessera, us", "13.1f"), ("ratio", "8.2f"), ("  backends", "<12"))
    table.print_titles()
    for row in both:
        if row["ratio"] < least:
            table.print(row["op"], row["onnxruntime_us"], row["tessera_us"], row["ratio"],
                        f"  {row['backends']}")
    if both:
        slow = [row["op"] for row in both if row["ratio"] < SLOW]
        print(f"\n{size}: geometric mean {geometric_mean(both):.2f} of {len(both)} cases; "
              f"{len(slow)} below {SLOW}")
        print("  " + ", ".join(slow) if slow else "")
    alone = [row for row in rows if not row["ratio"] and "onnxruntime" in row["failures"]]
    if alone:
        print("only in Tessera: " + ", ".join(
            f"{row['op']} ({row.get('tessera_us', math.nan):.0f} us)" for row in alone))
    print()


def main():
    arguments = parse_arguments()
    rows = []
    for size in arguments.sizes:
        for case in arguments.cases:
            if sys.stderr.isatty():
                print(f"\r{case.name:60}", end="", file=sys.stderr, flush=True)
            rows.append(measure(case, size, arguments))
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if sys.stderr.isatty():
        print(f"\r{'':60}\r", end="", file=sys.stderr)
    for size in arguments.sizes:
        print_size(size, [row for row in rows if row["size"] == size], arguments.slower_than)
    is_wrong = False
    for row in rows:
        for text in filter(None, (row["difference"], row["failures"].get("tessera"))):
            print(f"{row['op']}, {row['size']}: {text}", file=sys.stderr)
            is_wrong = True
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
