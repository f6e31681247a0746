"""What processes do that tune one model, or run plans that were chosen before."""

import pathlib
import random
import time

import numpy as np

from harness.processes import run_process, task_of
from harness.runtimes import bind_options_of, load_tessera, random_inputs, shapes_of

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


def fused_groups(plan):
    """How many groups the plan computes by kernels that are compiled, and their share of its
    time."""
    chosen = [one for one in plan.candidates if one.is_chosen]
    groups = [one for one in chosen if one.algorithm == "fused"]
    total = sum(one.price_seconds for one in chosen)
    return {"groups": len(groups),
            "share": sum(one.price_seconds for one in groups) / total if total else 0}


def tune(task):
    """For run_process(): measures the candidates of one model with the options `task["options"]` of
    bind, and writes the costs to the file `task["costs"]`, unless that is ""."""
    inputs = random_inputs(task["model"], task["shapes"])
    options = dict(task["options"])
    if options.get("retune"):
        options["tuning_inputs"] = inputs
    executor = load_tessera(task["model"], task["threads"]).bind(
        shapes_of(inputs), threads=task["threads"], **options)
    if task["costs"]:
        pathlib.Path(task["costs"]).write_text(executor.costs)
    plan = executor.plan()
    placement, told = plan.placement, plan.tuning
    return {
        "seconds": told.seconds, "measured": told.measured, "offered": told.offered,
        "reused": told.reused, "is_out_of_time": told.is_out_of_time,
        "predicted_ms": 1e3 * placement.predicted_seconds,
        "isolated_ms": 1e3 * (placement.isolated_seconds or 0),
        "is_proven": placement.is_proven_optimal, "solve_ms": 1e3 * placement.solve_seconds,
        "contenders": {one.name: 1e3 * one.seconds for one in placement.contenders},
        "fused": fused_groups(plan), "steps": steps_of(plan)}


def tune_anew(arguments, model, threads, costs, row="", backends=(), **more):
    """The report of a process that tunes with empty caches."""
    options = {"optimize": True, "retune": True, "backends": list(backends),
               "tune_budget_seconds": arguments.tune_budget, **bind_options_of(row)}
    return run_process(tune, task_of(arguments, model, threads, options=options, costs=str(costs),
                                     **more), caches="")


def lower_quartile_ms(run, runs, warm_ups=3):
    """The lower quartile of the times of `runs` runs after a few warm-up runs; disturbances only
    make runs slower."""
    times = []
    for _ in range(warm_ups + runs):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.quantile(times[warm_ups:], 0.25))


def run_plans(task):
    """For run_process(): binds the plans to which the files `task["plans"]` with costs lead. For
    each: its steps, and the milliseconds of each turn: the lower quartile of a few runs after one
    that loads its weights into the caches again. Each turn has an order of its own."""
    inputs = random_inputs(task["model"], task["shapes"])
    model = load_tessera(task["model"], task["threads"])
    executors = [model.bind(shapes_of(inputs), threads=task["threads"], cost_table=costs)
                 for costs in task["plans"]]
    calls = [lambda executor=executor: executor.run(inputs) for executor in executors]
    runs = max(1, round(TURN_MS / min(lower_quartile_ms(call, 3) for call in calls)))
    rng = random.Random(task["seed"])
    times = [[] for _ in calls]
    for _ in range(task["turns"]):
        for index in rng.sample(range(len(calls)), len(calls)):
            times[index].append(lower_quartile_ms(calls[index], runs, warm_ups=1))
    return {"steps": [steps_of(executor.plan()) for executor in executors], "times_ms": times}
