"""One process of bench/compare.py: loads one model in every runtime, checks that their outputs
agree, and times them in turns. Reads its task as JSON from stdin, writes its result to stdout."""

import gc
import json
import os
import random
import sys
import time

# In its first runs, a runtime selects kernels, fills caches and grows memory pools.
WARM_UP_SECONDS = 0.2
WARM_UP_RUNS = 3
MIN_BLOCKS = 3
# Limits for waiting until all threads are idle; ONNX Runtime's spin for about 40 ms.
REST_SLICE_SECONDS = 0.005
REST_MOST_SECONDS = 1.0


def load_all(task):
    """The runtimes of `task["runtimes"]`, by name, and the milliseconds that each took to load."""
    import runtimes

    # OpenVINO's copy of oneTBB is the newest, so it is loaded first and used by all.
    if "openvino" in task["runtimes"]:
        import openvino  # noqa: F401
    sys.path.insert(0, task["module_dir"])
    inputs = runtimes.random_inputs(task["model"], task["shapes"])
    loaded, load_ms = {}, {}
    for name, backends in task["runtimes"].items():
        started = time.perf_counter()
        if name in runtimes.PEERS:
            loaded[name] = runtimes.PEERS[name](task["model"], inputs, task["threads"])
        else:
            loaded[name] = runtimes.Tessera(task["model"], inputs, task["threads"],
                                             backends, task.get("costs", {}).get(name, ""),
                                             **runtimes.bind_options_of(name))
        load_ms[name] = (time.perf_counter() - started) * 1e3
    versions = {name: loaded[name].version() for name in loaded if ":" not in name}
    return loaded, load_ms, versions


def differences(loaded):
    """For each runtime, how its outputs differ from the first peer's; "" if they do not."""
    import runtimes

    standard = next((name for name in loaded if name in runtimes.PEERS), next(iter(loaded)))
    expected = loaded[standard].run()
    return {
        name: runtimes.explain_difference(expected, runtime.run())
        for name, runtime in loaded.items()
    }


def warm_up(runtime):
    started = time.perf_counter()
    runs = 0
    while runs < WARM_UP_RUNS or time.perf_counter() - started < WARM_UP_SECONDS:
        runtime.run()
        runs += 1


def rest():
    """Returns as soon as no thread of this process computes any more, so that waiting threads of
    one runtime take no time from the next."""
    deadline = time.perf_counter() + REST_MOST_SECONDS
    while time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(REST_SLICE_SECONDS)
        if time.process_time() - before < REST_SLICE_SECONDS / 10:
            return


def run_block(runtime, seconds):
    """The time of each run in a block of about `seconds`, in seconds; the first run, which wakes
    threads and warms caches, is not counted."""
    runtime.run()
    times = []
    started = time.perf_counter()
    while not times or time.perf_counter() - started < seconds:
        begin = time.perf_counter()
        runtime.run()
        times.append(time.perf_counter() - begin)
    return times


def measure(loaded, seconds, block_seconds, seed):
    """Every runtime's times: in each round, every runtime has one block, in a new random order.
    Runtimes that have been timed for `seconds` are skipped."""
    order = random.Random(seed)
    times = {name: [] for name in loaded}
    blocks = dict.fromkeys(loaded, 0)
    while True:
        pending = [
            name for name in loaded if sum(times[name]) < seconds or blocks[name] < MIN_BLOCKS
        ]
        if not pending:
            return times
        order.shuffle(pending)
        for name in pending:
            rest()
            times[name].extend(run_block(loaded[name], block_seconds))
            blocks[name] += 1


def main():
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, task["cores"])
    # Runtimes may print to stdout; send that to stderr and keep stdout for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    loaded, load_ms, versions = load_all(task)
    result = {"differences": differences(loaded), "load_ms": load_ms, "versions": versions}
    if not any(result["differences"].values()):
        for runtime in loaded.values():
            warm_up(runtime)
        gc.disable()
        times = measure(loaded, task["seconds"], task["block_seconds"], task["seed"])
        result["times"] = times
    json.dump(result, answer)
    answer.flush()
    # Skips destructors: runtimes that share a process may depend on the order in which they are
    # destroyed.
    os._exit(0)


if __name__ == "__main__":
    main()
