"""One process of bench/stability.py and bench/predictions.py: tunes one model, or runs it with
costs that were measured before, or runs several of its plans in turns. Reads its task as JSON from
stdin, writes its measurements to stdout."""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np


def digest_of(plan):
    """Equal for equal choices: the chosen candidates with their nodes and layouts."""
    chosen = sorted(
        (one.nodes, one.backend, one.algorithm, one.threads,
         [port.layout for port in (*one.inputs, *one.outputs)])
        for one in plan.candidates if one.is_chosen)
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:12]


def lower_quartile_ms(executor, inputs, runs, warm_ups=3):
    """The lower quartile of the times of `runs` runs after a few warm-up runs; disturbances only
    make runs slower."""
    for _ in range(warm_ups):
        executor.run(inputs)
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        executor.run(inputs)
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.quantile(times, 0.25))


def time_in_turns(executors, inputs, turns):
    """For each executor, the milliseconds of each turn: the minimum of two runs, of which the first
    loads its weights into the caches again. Each turn begins with another executor."""
    times = [[] for _ in executors]
    for turn in range(-2, turns):
        for place in range(len(executors)):
            index = (place + turn) % len(executors)
            least = min(lower_quartile_ms(executors[index], inputs, 1, 0) for _ in range(2))
            if turn >= 0:
                times[index].append(least)
    return times


def main():
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, task["cores"])
    # An empty cache folder, so that the process neither finds nor leaves artifacts.
    folder = tempfile.TemporaryDirectory()
    os.environ["TESSERA_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = folder.name
    sys.path.insert(0, task["module_dir"])
    import runtimes
    import tessera

    inputs = runtimes.random_inputs(task["model"], task.get("shapes", {}))
    shapes = {name: array.shape for name, array in inputs.items()}
    model = tessera.load(task["model"], log=lambda message: None, threads=task["threads"])
    if "plans" in task:
        executors = [model.bind(shapes, threads=task["threads"], cost_table=costs)
                     for costs in task["plans"]]
        json.dump({"digests": [digest_of(executor.plan()) for executor in executors],
                   "times_ms": time_in_turns(executors, inputs, task["turns"])}, sys.stdout)
        return
    if task["costs_in"]:
        executor = model.bind(shapes, threads=task["threads"], cost_table=task["costs_in"])
    else:
        executor = model.bind(shapes, threads=task["threads"], optimize=True, retune=True,
                              tuning_inputs=inputs,
                              tune_budget_seconds=task["budget_seconds"])
        pathlib.Path(task["costs_out"]).write_text(executor.costs)
    plan = executor.plan()
    placement = plan.placement
    result = {
        "digest": digest_of(plan), "predicted_ms": 1e3 * placement.predicted_seconds,
        "isolated_ms": 1e3 * (placement.isolated_seconds or 0),
        "is_proven": placement.is_proven_optimal, "solve_ms": 1e3 * placement.solve_seconds,
        "tuning_seconds": plan.tuning.seconds, "measured": plan.tuning.measured,
        "offered": plan.tuning.offered, "is_out_of_time": plan.tuning.is_out_of_time,
    }
    if task["runs"]:
        result["measured_ms"] = lower_quartile_ms(executor, inputs, task["runs"])
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
