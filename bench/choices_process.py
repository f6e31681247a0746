"""One process of bench/choices.py: tunes one model with the store in a given folder, or runs
several of its plans in turns. Reads its task as JSON from stdin, writes its report to stdout."""

import json
import os
import pathlib
import random
import sys
import tempfile

import plan_process

# A turn of a plan lasts about this long, but it has one run at least.
TURN_MS = 20


def steps_of(plan):
    """The steps of a plan in their order, a text for each, conversions included. Two plans with
    equal texts do the same work."""
    return [
        f"{step.op} {step.backend}:{step.algorithm} x{step.threads} {'+'.join(step.nodes)} "
        f"{step.name} ({' '.join(port.layout for port in step.inputs)} -> "
        f"{' '.join(port.layout for port in step.outputs)})"
        for step in plan.steps]


def time_shuffled(executors, inputs, turns, rng):
    """For each executor, the milliseconds of each turn: the lower quartile of a few runs after one
    that loads its weights into the caches again. Each turn has an order of its own."""
    one = min(plan_process.lower_quartile_ms(executor, inputs, 3) for executor in executors)
    runs = max(1, round(TURN_MS / one))
    times = [[] for _ in executors]
    for _ in range(turns):
        for index in rng.sample(range(len(executors)), len(executors)):
            times[index].append(
                plan_process.lower_quartile_ms(executors[index], inputs, runs, warm_ups=1))
    return times


def tune(model, shapes, task):
    """Binds as users do; writes the costs with the plan to the file `costs` unless that is ""."""
    executor = model.bind(shapes, threads=task["threads"], optimize="now")
    if task["costs"]:
        pathlib.Path(task["costs"]).write_text(executor.costs)
    plan = executor.plan()
    return {"seconds": plan.tuning.seconds, "measured": plan.tuning.measured,
            "reused": plan.tuning.reused, "offered": plan.tuning.offered,
            "contenders": [one.name for one in plan.placement.contenders],
            "steps": steps_of(plan)}


def main():
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, task["cores"])
    empty = tempfile.TemporaryDirectory()
    store = pathlib.Path(task.get("store") or empty.name)
    os.environ["TESSERA_CACHE_DIR"] = str(store / "work")
    os.environ["XDG_CACHE_HOME"] = str(store / "user")
    sys.path.insert(0, task["module_dir"])
    import runtimes
    import tessera

    inputs = runtimes.random_inputs(task["model"], {})
    shapes = {name: array.shape for name, array in inputs.items()}
    model = tessera.load(task["model"], log=lambda message: None, threads=task["threads"])
    if "plans" in task:
        executors = [model.bind(shapes, threads=task["threads"], cost_table=costs)
                     for costs in task["plans"]]
        report = {"steps": [steps_of(executor.plan()) for executor in executors],
                  "times_ms": time_shuffled(executors, inputs, task["turns"],
                                            random.Random(task["seed"]))}
    else:
        report = tune(model, shapes, task)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
