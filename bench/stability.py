#!/usr/bin/env python3
"""Tunes one model in many fresh processes, and says whether they choose the same.

Each process has nothing stored, measures, chooses and writes its costs. Then every plan that was
chosen is run in processes of its own, in turns, so that drift of the machine meets all of them. The
verdict is `same` where there is one plan, `as fast` where the medians of all differ by less than the
noise (the spread of one plan's own processes, or 2 % where that is less), else `different`, with exit
code 1."""

import argparse
import pathlib
import sys
import tempfile

import compare

LEAST_NOISE = 0.02


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/stability.py resnet50 --processes 20 --threads 2")
    parser.add_argument("model", help="a name of the zoo, or a file")
    parser.add_argument("--processes", type=compare.whole_number, default=20, metavar="N")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[2], metavar="N")
    parser.add_argument("--tune-budget", type=compare.seconds, default=60.0, metavar="S")
    parser.add_argument("--runs", type=compare.whole_number, default=30, metavar="N",
                        help="of each plan in each of its processes (default: 30)")
    parser.add_argument("--turns", type=compare.whole_number, default=3, metavar="N",
                        help="processes that run each plan (default: 3)")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return compare.parse_with_cores(parser)


def noise_of(times):
    """How far processes of one plan lie apart, relative to their median; the largest of all."""
    import numpy as np

    spreads = [(max(one) - min(one)) / np.median(one) for one in times.values()]
    return max(LEAST_NOISE, *spreads)


def verdict_of(times):
    """`times`: digest -> milliseconds of its processes."""
    import numpy as np

    if len(times) == 1:
        return "same"
    medians = [float(np.median(one)) for one in times.values()]
    return "as fast" if max(medians) / min(medians) - 1 < noise_of(times) else "different"


def main():
    arguments = parse_arguments()
    compare.enter_environment(arguments.module_dir)
    import numpy as np

    file, = compare.find_models(arguments.model).values()
    task = {"model": str(file), "threads": arguments.threads[0], "costs_in": "", "costs_out": "",
            "budget_seconds": arguments.tune_budget, "module_dir": str(arguments.module_dir),
            "cores": compare.choose_cores(arguments.threads[0]), "runs": 0}
    with tempfile.TemporaryDirectory() as folder:
        costs, counts, seconds = {}, {}, []
        for index in range(arguments.processes):
            path = str(pathlib.Path(folder) / f"{index}.json")
            result, failure = compare.run_process({**task, "costs_out": path}, "plan_process.py")
            if failure:
                compare.fail(failure)
            costs.setdefault(result["digest"], path)
            counts[result["digest"]] = counts.get(result["digest"], 0) + 1
            seconds.append(result["tuning_seconds"])
        times = {digest: [] for digest in costs}
        for _ in range(arguments.turns):
            for digest, path in costs.items():
                again = {**task, "costs_in": path, "runs": arguments.runs}
                result, failure = compare.run_process(again, "plan_process.py")
                if failure:
                    compare.fail(failure)
                if result["digest"] != digest:
                    compare.fail(f"costs of plan {digest} led another process to "
                                 f"{result['digest']}")
                times[digest].append(result["measured_ms"])
    print(f"{arguments.processes} processes tuned {file.parent.name} for {arguments.threads[0]} "
          f"threads, {np.median(seconds):.1f} s each")
    print(f"{'plan':14}{'processes':>10}{'median ms':>12}{'least':>10}{'most':>10}")
    for digest, one in sorted(times.items(), key=lambda entry: -counts[entry[0]]):
        print(f"{digest:14}{counts[digest]:>10}{np.median(one):>12.3f}{min(one):>10.3f}"
              f"{max(one):>10.3f}")
    verdict = verdict_of(times)
    print(f"noise {100 * noise_of(times):.1f} %; the plans are: {verdict}")
    return 1 if verdict == "different" else 0


if __name__ == "__main__":
    sys.exit(main())
