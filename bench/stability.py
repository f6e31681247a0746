#!/usr/bin/env python3
"""Tunes one model in many new processes, and checks whether they choose the same plan.

Each process starts without stored artifacts, measures, chooses and writes its costs. Then one
process binds every chosen plan, the most frequent one twice, and runs them in turns, each turn in a
different order, so that noise affects all of them alike. Two plans are compared by the ratio of
their times within a turn: its median over the turns, with a 95 % interval of order statistics. The
noise is the larger distance from 1 of the ends of this interval for the plan and its own twin. A
plan differs from the fastest if the interval of their ratio does not contain 1 and the interval's
nearer end exceeds the noise. The verdict is `same` if there is one plan, `as fast` if none differs,
otherwise `different`, with exit code 1."""

import argparse
import pathlib
import sys
import tempfile

import compare


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/stability.py resnet50 --processes 20 --threads 2")
    parser.add_argument("model", help="a name of the zoo, or a file")
    parser.add_argument("--processes", type=compare.whole_number, default=20, metavar="N")
    parser.add_argument("--threads", type=compare.whole_numbers, default=[2], metavar="N")
    parser.add_argument("--tune-budget", type=compare.seconds, default=60.0, metavar="S")
    parser.add_argument("--turns", type=compare.whole_number, default=40, metavar="N",
                        help="in each of which every plan runs (default: 40)")
    parser.add_argument("--module-dir", type=pathlib.Path, metavar="DIR",
                        default=compare.ROOT / "build" / "release" / "python",
                        help="folder of the Python module (default: build/release/python)")
    return compare.parse_with_cores(parser)


def ratio_interval(times, others):
    """The median of `times` over `others`, turn by turn, and its 95 % interval (Conover, Practical
    Nonparametric Statistics, 3.2)."""
    import numpy as np

    ratios = np.sort(np.asarray(times) / np.asarray(others))
    count = len(ratios)
    reach = 0.98 * np.sqrt(count)  # 1.96 standard deviations of binomial(count, 1/2)
    low = max(0, int(np.floor(count / 2 - reach)) - 1)
    high = min(count - 1, int(np.ceil(count / 2 + reach)))
    return float(np.median(ratios)), float(ratios[low]), float(ratios[high])


def noise_of(times, twin):
    """The maximum distance from 1 of the ratio of a plan to itself."""
    _, low, high = ratio_interval(times, twin)
    return max(1 - low, high - 1)


def compare_plans(times, twin):
    """`times`: digest -> milliseconds for each turn; `twin`: those of the first plan's twin.
    Returns for each digest the ratio to the fastest with its interval; the noise; and the verdict.
    """
    import numpy as np

    first = next(iter(times.values()))
    fastest = min(times.values(), key=np.median)
    intervals = {digest: ratio_interval(one, fastest) for digest, one in times.items()}
    noise = noise_of(first, twin)
    verdict = "same" if len(times) == 1 else "as fast"
    # If `low` is below 1, the interval contains 1, or the plan is the faster one.
    if any(low > 1 + noise for _, low, _ in intervals.values()):
        verdict = "different"
    return intervals, noise, verdict


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
        digests = sorted(costs, key=lambda digest: -counts[digest])
        again = {**task, "plans": [costs[digests[0]], *(costs[digest] for digest in digests)],
                 "turns": arguments.turns}
        result, failure = compare.run_process(again, "plan_process.py")
        if failure:
            compare.fail(failure)
    twin, *rest = result["times_ms"]
    if result["digests"][1:] != digests:
        compare.fail(f"costs of plans {digests} led another process to {result['digests'][1:]}")
    times = dict(zip(digests, rest))
    intervals, noise, verdict = compare_plans(times, twin)
    print(f"{arguments.processes} processes tuned {file.parent.name} for {arguments.threads[0]} "
          f"threads, {np.median(seconds):.1f} s each")
    print(f"{'plan':14}{'processes':>10}{'median ms':>12}{'ratio to the fastest':>30}")
    for digest in digests:
        middle, low, high = intervals[digest]
        print(f"{digest:14}{counts[digest]:>10}{np.median(times[digest]):>12.3f}"
              f"{f'{middle:.3f} [{low:.3f}, {high:.3f}]':>30}")
    print(f"noise {100 * noise:.1f} % (one plan beside itself); the plans are: {verdict}")
    return 1 if verdict == "different" else 0


if __name__ == "__main__":
    sys.exit(main())
