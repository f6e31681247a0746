#!/usr/bin/env python3
"""Compares the steps of a decoder of GPT-2's size, with weights of 4 or 8 bits (MatMulNBits) and
caches that have space for all positions (GroupQueryAttention): Tessera and ONNX Runtime, both in one
process, each with the memory of its past caches bound to its present ones.

The model is that of bench/decoder_model.py (StepDecoder), with random weights. All runtimes decode
the same words from the first position to the last, in turns of some steps, so that all attend to as
many positions. ONNX Runtime computes in float32 ("onnxruntime") and, with accuracy_level 4, with
activations of 8 bits ("onnxruntime:int8"); Tessera computes in float32. A ratio is the other's time
for a step over Tessera's: above 1, Tessera is faster; medians over the steps that both took. The
processor time of a step is that of all threads of the process. The rate is that of the weights with
their scales, beside that of copying as many bytes (read once, written once; the bytes read count), on
the same threads in the same process. Logits differ by at most the printed part of the largest one.
Exit codes: 1, logits differ; 2, wrong arguments."""

import dataclasses
import math
import statistics
import sys
import threading
import time

from decoder_model import StepDecoder, step_model
from harness.arguments import Parser, whole_numbers
from harness.report import Table, count_text, cpu_name
from harness.runtimes import OWN, load_tessera
from harness.turns import rest

import numpy as np

TOLERANCE = {"onnxruntime": 1e-4, "onnxruntime:int8": 0.3}  # of the largest logit
COPY_BYTES = 1 << 26


def zeros(shape, element):
    """An array whose memory kernels accept as it is."""
    alignment = 64
    count = math.prod(shape) * np.dtype(element).itemsize
    memory = np.zeros(count + alignment, np.uint8)
    first = -memory.ctypes.data % alignment
    return memory[first:first + count].view(element).reshape(shape)


class TesseraSteps:
    """The caches of a layer stay in one memory from step to step."""

    def __init__(self, decoder, model, threads, backends):
        self.executor = load_tessera(model, threads).bind(
            threads=threads, backends=backends, optimize=False, state_pairs=decoder.caches())
        self.fed = {"ids": zeros((1, 1), np.int64), "last": zeros((1,), np.int32),
                    "total": zeros((1,), np.int32)}
        for past, present in decoder.caches():
            cache = zeros(decoder.cache_shape, np.float32)
            self.executor.bind_input(past, cache)
            self.executor.bind_output(present, cache)
        for name, array in self.fed.items():
            self.executor.bind_input(name, array)
        self.logits = zeros((1, 1, decoder.words), np.float32)
        self.executor.bind_output("y", self.logits)

    def step(self, word, position):
        self.fed["ids"][:] = word
        self.fed["last"][:] = position
        self.fed["total"][:] = position + 1
        begin, spent = time.perf_counter(), time.process_time()
        self.executor.run_bound()
        return time.perf_counter() - begin, time.process_time() - spent


class OnnxRuntimeSteps:
    def __init__(self, decoder, model, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options,
                                                    providers=["CPUExecutionProvider"])
        make_value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.binding = self.session.io_binding()
        self.values = {"ids": make_value(np.zeros((1, 1), np.int64)),
                       "last": make_value(np.zeros(1, np.int32)),
                       "total": make_value(np.zeros(1, np.int32))}
        self.fed = {name: value.numpy() for name, value in self.values.items()}
        for past, present in decoder.caches():
            value = make_value(np.zeros(decoder.cache_shape, np.float32))
            self.values[past] = value
            self.binding.bind_ortvalue_output(present, value)
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        result = make_value(np.zeros((1, 1, decoder.words), np.float32))
        self.values["y"] = result
        self.binding.bind_ortvalue_output("y", result)
        self.logits = result.numpy()

    step = TesseraSteps.step

    @property
    def executor(self):
        return self

    def run_bound(self):
        self.session.run_with_iobinding(self.binding)


def copy_rate(threads):
    """Bytes a second that `threads` threads copy."""
    parts = COPY_BYTES // threads
    pairs = [(np.ones(parts, np.uint8), np.zeros(parts, np.uint8)) for _ in range(threads)]
    times = []
    for _ in range(7):
        workers = [threading.Thread(target=np.copyto, args=(to, source)) for source, to in pairs]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter() - begin)
    return COPY_BYTES / min(times)


def decode(decoder, runtimes, arguments):
    """The times of all steps by name, each with its processor time, and the largest differences of
    logits."""
    words = np.random.default_rng(1).integers(0, decoder.words, decoder.past)
    times = {name: [] for name in runtimes}
    differences = dict.fromkeys(runtimes, 0)
    for first in range(0, decoder.past, arguments.turn):
        turn = range(first, min(first + arguments.turn, decoder.past))
        names = [name for name in runtimes if name == OWN or
                 sum(step for step, _ in times[name]) < arguments.most_seconds]
        if first // arguments.turn % 2:
            names.reverse()
        found = {}
        for name in names:
            rest()
            for position in turn:
                times[name].append(runtimes[name].step(words[position], position))
            found[name] = runtimes[name].logits.copy()
        for name, logits in found.items():
            difference = np.abs(logits - found[OWN]).max() / np.abs(logits).max()
            differences[name] = max(differences[name], float(difference))
    return times, differences


def compare(decoder, threads, arguments, table):
    model = step_model(decoder).SerializeToString()
    runtimes = {OWN: TesseraSteps(decoder, model, threads, arguments.backends),
                "onnxruntime": OnnxRuntimeSteps(decoder, model, threads)}
    rough = step_model(dataclasses.replace(decoder, accuracy=4)).SerializeToString()
    runtimes["onnxruntime:int8"] = OnnxRuntimeSteps(decoder, rough, threads)
    del model, rough
    times, differences = decode(decoder, runtimes, arguments)
    copied = copy_rate(threads)
    for name, steps in times.items():
        seconds, processor = (statistics.median(each) for each in zip(*steps, strict=True))
        own = statistics.median(step for step, _ in times[OWN][:len(steps)])
        rate = decoder.weight_bytes / seconds
        table.print(decoder.bits, threads, name, len(steps), 1 / seconds, 1e3 * seconds,
                    1e3 * processor, rate / 1e9, rate / copied, seconds / own, differences[name])
    return any(differences[name] > most for name, most in TOLERANCE.items())


def main():
    parser = Parser(__doc__, "--bits 4 --threads 1,2")
    parser.option("--bits", [4, 8], "bits of a weight", whole_numbers)
    parser.option("--turn", 16, "steps that a runtime takes before the next one")
    parser.option("--backends", [], "of Tessera (default: all)",
                  lambda text: [name for name in text.split(",") if name], "LIST")
    parser.option("--most-seconds", 120.0, "for the steps of a runtime")
    parser.share("threads", "module_dir")
    for name, default in (("past", 512), ("layers", 12), ("key-heads", 12)):
        parser.option("--" + name, default, "of the decoder")
    arguments = parser.parse()
    print(f"{cpu_name()}; a decoder of GPT-2's size, {arguments.past} steps\n")
    table = Table(("bits", "<6d"), ("threads", "<9d"), ("runtime", "<18"), ("steps", "6d"),
                  ("tokens/s", "9.1f"), ("step ms", "9.2f"), ("cpu ms", "9.2f"), ("GB/s", "8.2f"),
                  ("of copy", "9.2f"), ("ratio", "8.2f"), ("difference", "12.1e"))
    table.print_titles()
    failed = False
    for bits in arguments.bits:
        decoder = StepDecoder(bits=bits, past=arguments.past, layers=arguments.layers,
                              key_heads=arguments.key_heads)
        for threads in arguments.threads:
            failed = compare(decoder, threads, arguments, table) or failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
