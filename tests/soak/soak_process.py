"""The processes of a soak test. Each prints one line of JSON for each case.

usage:
  soak_process.py work MODELS OUT SEED COUNT PAUSE  binds and runs COUNT random cases, with PAUSE
                                                    seconds between them; writes outputs and plans
                                                    to OUT. Waits while OUT/full exists, ends as
                                                    soon as OUT/stop exists
  soak_process.py check MODELS CASE PLAN OUTPUT     runs one case with a saved plan
"""

import json
import os
import pathlib
import random
import sys
import time

import numpy as np
import tessera
from catalog import PLUGINS
from soak_models import OPS, all_cases

TUNE_SECONDS = 0.3
SHIPPED = {*PLUGINS, "null"}


def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def exclusions():
    """Excludes all backends except those in SOAK_BACKENDS, the reference, and the plug-ins that
    come and go. A list of backends would be an ingredient of each plan, so no plan would ever be
    found with other libraries."""
    wanted = {*os.environ["SOAK_BACKENDS"].split(","), "reference"}
    found = {backend.name for backend in tessera.backends()}
    if not wanted <= found:
        sys.exit(f"no such backends: {sorted(wanted - found)}")
    return [tessera.Exclusion(name, op) for name in sorted(SHIPPED & found - wanted) for op in OPS]


def run_case(models, case, out, name, swap):
    """Binds and runs; returns the result of the plan look-up. The outputs and the plan are in files
    when it returns."""
    model = tessera.load(models / case.model)
    executor = model.bind({"x": case.shape}, threads=1, optimize=True, swap=swap,
                          exclude=exclusions(), tune_budget_seconds=TUNE_SECONDS)
    x = numbers(case.shape, name)
    output, = executor.run({"x": x})
    if swap:  # the plan that is kept is the one in use at the end
        executor.wait_for_swap()
        output, = executor.run({"x": x})
    np.save(out / f"{name}.npy", output)
    executor.save_cache(out / f"{name}.cache")
    return executor.cache_report()


def work(models, out, seed, count, pause):
    draw = random.Random(seed)
    cases = all_cases()
    for index in range(count):
        while (out / "full").exists() and not (out / "stop").exists():
            time.sleep(0.05)
        if (out / "stop").exists():
            break
        number = draw.randrange(len(cases))
        name = seed * 10_000 + index
        report = run_case(models, cases[number], out, name, draw.random() < 0.3)
        print(json.dumps({
            "name": name, "case": number, "is_hit": report.is_hit, "reason": report.reason,
            "is_outdated": bool(report.change),
            "resident_bytes": resident_bytes(),
            "descriptors": len(os.listdir("/proc/self/fd")) - 1}), flush=True)
        time.sleep(pause)


def check(models, number, plan, output):
    case = all_cases()[number]
    model = tessera.load(models / case.model)
    model.load_cache(plan)
    executor = model.bind({"x": case.shape}, threads=1, optimize=True, swap=False, frozen=True,
                          exclude=exclusions())
    result, = executor.run({"x": numbers(case.shape, int(plan.stem))})
    np.save(output, result)


def main():
    action, models, *rest = sys.argv[1:]
    if action == "work":
        out, seed, count, pause = rest
        work(pathlib.Path(models), pathlib.Path(out), int(seed), int(count), float(pause))
    else:
        number, plan, output = rest
        check(pathlib.Path(models), int(number), pathlib.Path(plan), pathlib.Path(output))


main()
