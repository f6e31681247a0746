#!/usr/bin/env python3
"""Errors of the algorithms that multiply less, against sums in float64.

Each of the random layers is one convolution of 3 x 3 taps or one matrix product, and is computed by
native's Winograd or Strassen algorithm, by oneDNN's kernel, and in float64. An error is the largest
difference to float64, as a share of the largest element. Half of the inputs are as after a Relu:
sums of positive numbers lose fewer digits. Exit code 1 if an error exceeds the limit that the
decisions state (docs/decisions/0050, 0061)."""

import sys

from harness.arguments import Parser
from harness.processes import Progress
from harness.report import Table
from networks.graph_writer import GraphWriter

import numpy as np

# Of the algorithm: the limit of its errors.
LIMITS = {"winograd_4x4": 5e-6, "winograd_2x2": 2e-6, "strassen": 2e-5}
PLAIN = "onednn"


def values(random, shape, is_positive):
    made = random.standard_normal(shape, dtype=np.float32)
    return np.maximum(made, 0) if is_positive else made


def convolution(random, is_positive):
    """The model, its input, and the sums in float64."""
    channels_in, channels_out = 16 * random.integers(1, 17, 2)
    rows, columns = random.integers(14, 40, 2)
    x = values(random, (1, channels_in, rows, columns), is_positive)
    w = values(random, (channels_out, channels_in, 3, 3), False) / np.sqrt(9 * channels_in)
    w = w.astype(np.float32)
    graph = GraphWriter()
    y = graph.op("Conv", "x", w, pads=[1, 1, 1, 1])
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    exact = np.zeros((channels_out, rows * columns))
    for tap in range(9):
        part = padded[:, tap // 3:tap // 3 + rows, tap % 3:tap % 3 + columns]
        exact += w[:, :, tap // 3, tap % 3].astype(np.float64) @ part.reshape(channels_in, -1)
    return graph.model({"x": x.shape}, y), x, exact.reshape(1, channels_out, rows, columns)


def product(random, is_positive):
    rows = int(random.integers(64, 260))
    depth = 2 * int(random.integers(128, 700))
    columns = int(random.integers(256, 1200))
    x = values(random, (rows, depth), is_positive)
    w = (values(random, (depth, columns), False) / np.sqrt(depth)).astype(np.float32)
    graph = GraphWriter()
    y = graph.op("MatMul", "x", w)
    return graph.model({"x": x.shape}, y), x, x.astype(np.float64) @ w.astype(np.float64)


def error_of(model, x, exact, backend, algorithm):
    import tessera

    bound = tessera.load(model).bind(
        threads=1, optimize=False, pins=[tessera.Pin("*", backend, algorithm)],
        precision="bfloat16" if algorithm == "strassen" else "float32")
    return float(np.abs(bound.run({"x": x})[0] - exact).max() / np.abs(exact).max())


def main():
    parser = Parser(__doc__, "--layers 100")
    parser.option("--layers", 1000, "how many layers")
    parser.option("--seed", 1, "of the layers", int)
    parser.share("module_dir")
    arguments = parser.parse()
    errors = {(algorithm, backend): [] for algorithm in LIMITS for backend in ("native", PLAIN)}
    progress = Progress(arguments.layers)
    for index in range(arguments.layers):
        random = np.random.default_rng([arguments.seed, index])
        algorithm = list(LIMITS)[index % 3]
        progress.say(algorithm)
        make = product if algorithm == "strassen" else convolution
        model, x, exact = make(random, is_positive=index % 2 == 0)
        for backend, name in (("native", algorithm), (PLAIN, "")):
            errors[algorithm, backend].append(
                error_of(model.SerializeToString(), x, exact, backend, name))
    progress.clear()
    table = Table(("algorithm", "<14"), ("layers", "8"), ("median", "10.1e"), ("99 %", "10.1e"),
                  ("largest", "10.1e"), ("limit", "10.1e"), ("oneDNN: median", "18.1e"),
                  ("largest", "10.1e"))
    table.print_titles()
    is_fine = True
    for algorithm, limit in LIMITS.items():
        own, plain = (np.array(errors[algorithm, backend] or [np.nan])
                      for backend in ("native", PLAIN))
        is_fine &= not own.max() > limit
        table.print(algorithm, len(own), np.median(own), np.quantile(own, 0.99), own.max(), limit,
                    np.median(plain), plain.max())
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
