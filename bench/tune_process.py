"""One process of bench/compare.py --optimize: measures the candidates of one model, and writes the
costs to a file. Reads its task as JSON from stdin, writes its report to stdout."""

import json
import os
import pathlib
import sys
import tempfile


def fused_groups(plan):
    """How many groups the plan computes by kernels that are compiled, and their share of its time."""
    chosen = [one for one in plan.candidates if one.is_chosen]
    groups = [one for one in chosen if one.algorithm == "fused"]
    total = sum(one.price_seconds for one in chosen)
    return {"groups": len(groups),
            "share": sum(one.price_seconds for one in groups) / total if total else 0}


def main():
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, task["cores"])
    # An empty cache folder, so that the process neither finds nor leaves artifacts.
    folder = tempfile.TemporaryDirectory()
    os.environ["TESSERA_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = folder.name
    sys.path.insert(0, task["module_dir"])
    import runtimes
    import tessera

    inputs = runtimes.random_inputs(task["model"], task["shapes"])
    shapes = {name: array.shape for name, array in inputs.items()}
    executor = tessera.load(task["model"], log=lambda message: None, threads=task["threads"]).bind(
        shapes, threads=task["threads"], backends=task["backends"], optimize=True,
        retune=True, tune_budget_seconds=task["budget_seconds"], tuning_inputs=inputs,
        **runtimes.bind_options_of(task.get("row", "")))
    pathlib.Path(task["costs"]).write_text(executor.costs)
    plan = executor.plan()
    json.dump({
        "seconds": plan.tuning.seconds, "measured": plan.tuning.measured,
        "offered": plan.tuning.offered, "is_out_of_time": plan.tuning.is_out_of_time,
        "predicted_ms": 1e3 * plan.placement.predicted_seconds,
        "fused": fused_groups(plan),
        "contenders": {one.name: 1e3 * one.seconds for one in plan.placement.contenders},
    }, sys.stdout)


if __name__ == "__main__":
    main()
