"""The reports of bench/compare.py: rows, geometric means, tables."""

import pathlib
import platform

import numpy as np
from ratios import geometric_mean, ratio_of

OWN = "tessera"
PEERS = ("onnxruntime", "openvino")
BEST = "the better peer"


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def row_of(model, threads, results):
    """The report on one model and number of threads; `results` has one entry for each process."""
    medians = {
        runtime: [float(np.median(result["times"][runtime])) * 1e3 for result in results]
        for runtime in results[0]["times"]
    }
    row = {"model": model, "threads": threads, "runtimes": {},
           "tuning": results[0].get("tuning", {})}
    for runtime, times in medians.items():
        row["runtimes"][runtime] = {
            "median_ms": float(np.median(times)),
            "process_median_ms": times,
            "runs": [len(result["times"][runtime]) for result in results],
            "load_ms": float(np.median([result["load_ms"][runtime] for result in results])),
            **ratio_of(times, medians[OWN]).as_dict(),
        }
    return row


def _times(row, runtime):
    return row["runtimes"][runtime]["process_median_ms"]


def means_of(rows):
    """Geometric means over the models of `rows`, for each runtime; also for the better peer of each
    model."""
    means = {}
    for runtime in rows[0]["runtimes"]:
        if runtime != OWN:
            means[runtime] = geometric_mean(
                [(_times(row, runtime), _times(row, OWN)) for row in rows]
            )
    peers = [name for name in rows[0]["runtimes"] if name in PEERS]
    if len(peers) > 1:
        means[BEST] = geometric_mean(
            [
                (min((_times(row, peer) for peer in peers), key=np.median), _times(row, OWN))
                for row in rows
            ]
        )
    return means


def by_threads(rows):
    """(threads, rows) in the order of `rows`."""
    groups = {}
    for row in rows:
        groups.setdefault(row["threads"], []).append(row)
    return groups.items()


def all_means(rows):
    """The geometric means as plain data."""
    return [
        {"threads": threads, "runtime": runtime, **mean.as_dict()}
        for threads, chosen in by_threads(rows)
        for runtime, mean in means_of(chosen).items()
    ]


def _ratio_text(entry):
    """"1.07 [1.05, 1.09]"; without the interval if there is only one process."""
    text = f"{entry['ratio']:.2f}"
    if entry["ratio_interval"] is not None:
        low, high = entry["ratio_interval"]
        text += f" [{low:.2f}, {high:.2f}]"
    return text


def _print_table(rows, others, means):
    """Compares Tessera with `others`, of which two fit into 100 columns."""
    width = max(len("geometric mean"), *(len(row["model"]) for row in rows)) + 1
    print(f"\n{'':{width}}{OWN:>10}" + "".join(f"{name:>32}" for name in others))
    print(f"{'model':{width}}{'ms':>10}" + f"{'ms':>11}  {'ratio':>19}" * len(others))
    for row in rows:
        cells = "".join(
            f"{entry['median_ms']:11.3f}  {_ratio_text(entry):>19}"
            for entry in (row["runtimes"][name] for name in others)
        )
        print(f"{row['model']:{width}}{row['runtimes'][OWN]['median_ms']:10.3f}{cells}")
    if others:
        cells = "".join(f"{_ratio_text(means[name].as_dict()):>32}" for name in others)
        print(f"{'geometric mean':{width}}{'':10}{cells}")


def print_report(header, rows):
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    print(f"{header['cpu']}; {versions}; {header['date']}")
    print(f"command: {header['command']}")
    for threads, chosen in by_threads(rows):
        print(
            f"\n{threads} thread{'s' if threads > 1 else ''}; medians over processes; "
            "ratio: the other's time / Tessera's [95 %]"
        )
        means = means_of(chosen)
        others = [name for name in chosen[0]["runtimes"] if name != OWN]
        for start in range(0, max(1, len(others)), 2):
            _print_table(chosen, others[start : start + 2], means)
        if BEST in means:
            print(f"\n{BEST} of each model: {_ratio_text(means[BEST].as_dict())}")
