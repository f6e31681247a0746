#!/usr/bin/env python3
"""Quantised networks beside ONNX Runtime and OpenVINO, and beside Tessera's own float32. All run in
one process, by turns.

onnxruntime.quantization quantises the models: "static" with QuantizeLinear and DequantizeLinear
around each op, weights of int8 with a scale for each channel, activations of uint8; "dynamic" only
the products, with scales that each run computes.

  error   root mean square of the difference from ONNX Runtime's quantised result, as a share of
          that result's own: runtimes round products to quanta in different ways
  peer    the time of the better peer over Tessera's
  float   Tessera's time over its own time for the float32 model

Exit code 1 if an error is above --most-error."""

import json
import statistics
import sys

from harness.arguments import Parser, some_of
from harness.processes import Progress
from harness.report import Table
from harness.runtimes import PEERS, Tessera, random_inputs
from harness.turns import take_turns, timer_of

import numpy as np
import onnx
import onnx.version_converter

KINDS = ["static", "dynamic"]
CALIBRATION_RUNS = 4
# The first operator set in which DequantizeLinear has scales of channels.
PER_CHANNEL_OPSET = 13


class Calibration:
    """What quantize_static() reads: inputs of CALIBRATION_RUNS runs."""

    def __init__(self, inputs):
        self.feeds = [{name: self.varied(array, index) for name, array in inputs.items()}
                      for index in range(CALIBRATION_RUNS)]

    @staticmethod
    def varied(array, index):
        return np.roll(array, index, axis=-1)

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


class NotQuantised(Exception):
    """The tool refuses a model."""


def quantise(model, kind, inputs, folder):
    """The file of the quantised model, which is made if it is missing. Raises NotQuantised."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    place = folder / f"{model.parent.name if model.stem == 'model' else model.stem}_{kind}.onnx"
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    # With its weights inside: the tool looks for others beside its own temporary files.
    prepared = place.with_suffix(".prepared.onnx")
    loaded = onnx.load(str(model))
    if loaded.opset_import[0].version < PER_CHANNEL_OPSET:
        loaded = onnx.version_converter.convert_version(loaded, PER_CHANNEL_OPSET)
    onnx.save(loaded, str(prepared))
    try:
        # Folds normalisations of channels into convolutions.
        quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)
        if kind == "static":
            quantization.quantize_static(
                str(prepared), str(place), Calibration(inputs), per_channel=True,
                quant_format=quantization.QuantFormat.QDQ, weight_type=quantization.QuantType.QInt8,
                activation_type=quantization.QuantType.QUInt8)
        else:
            quantization.quantize_dynamic(str(prepared), str(place),
                                          weight_type=quantization.QuantType.QInt8)
    except Exception as error:  # of many types, from several libraries
        raise NotQuantised(str(error).splitlines()[0]) from error
    finally:
        prepared.unlink()
    return place


def error_of(expected, found):
    worst = 0.0
    for wanted, given in zip(expected, found, strict=True):
        scale = np.sqrt(np.mean(wanted.astype(np.float64) ** 2)) or 1.0
        difference = given.astype(np.float64) - wanted
        worst = max(worst, float(np.sqrt(np.mean(difference ** 2)) / scale))
    return worst


def measure(model, kind, threads, arguments):
    inputs = random_inputs(model, dict(arguments.shape))
    quantised = str(quantise(model, kind, inputs, arguments.quantised_dir))
    options = {"optimize": arguments.optimize}
    loaded = {name: PEERS[name](quantised, inputs, threads) for name in arguments.peers}
    loaded["tessera"] = Tessera(quantised, inputs, threads, arguments.backends, **options)
    loaded["float32"] = Tessera(str(model), inputs, threads, arguments.backends, **options)
    outputs = {name: list(each.run()) for name, each in loaded.items()}
    times = take_turns({name: timer_of(each.run) for name, each in loaded.items()},
                       arguments.seconds)
    ms = {name: 1e3 * statistics.median(times[name]) for name in loaded}
    row = {"kind": kind, "threads": threads, **{f"{name}_ms": each for name, each in ms.items()},
           "float_ratio": ms["tessera"] / ms["float32"]}
    if arguments.peers:
        row["error"] = error_of(outputs[arguments.peers[0]], outputs["tessera"])
        row["peer_ratio"] = min(ms[name] for name in arguments.peers) / ms["tessera"]
    return row


def main():
    parser = Parser(__doc__, "--models resnet18,bert_mini --threads 1")
    parser.share("models", "threads", "shape", "json", "module_dir")
    parser.option("--kinds", KINDS, "how models are quantised, separated by commas",
                  some_of(KINDS), "LIST")
    parser.option("--peers", list(PEERS), "the others, separated by commas; \"\" for none",
                  some_of(PEERS), "LIST")
    parser.option("--backends", [], "of Tessera", lambda text: text.split(","), "LIST")
    parser.option("--seconds", 2.0, "for each runtime and model")
    parser.option("--most-error", 0.2, "the largest error")
    parser.option("--quantised-dir", parser.get_default("module_dir").parent.parent / "quantised",
                  "where quantised models are kept")
    parser.flag("--optimize", "Tessera chooses by measured prices")
    arguments = parser.parse()
    columns = [f"{name}_ms" for name in (*arguments.peers, "tessera", "float32")]
    table = Table(("model", "<16"), ("kind", "<8"), ("threads", "8"), ("error", "8.3f"),
                  *((name.replace("_ms", ", ms"), "16.2f") for name in columns), ("peer", "6.2f"),
                  ("float", "6.2f"))
    table.print_titles()
    rows = []
    progress = Progress(len(arguments.models) * len(arguments.kinds) * len(arguments.threads))
    for name, model in arguments.models.items():
        for kind in arguments.kinds:
            for threads in arguments.threads:
                progress.say(f"{name} {kind}")
                try:
                    row = {"model": name, **measure(model, kind, threads, arguments)}
                except NotQuantised as error:
                    progress.clear()
                    print(f"{name} is left out of {kind}, which the tool refuses: {error}")
                    break
                progress.clear()
                rows.append(row)
                table.print(name, kind, str(threads), row.get("error"),
                            *(row[column] for column in columns), row.get("peer_ratio"),
                            row["float_ratio"])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(row.get("error", 0) > arguments.most_error for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
