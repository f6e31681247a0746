"""One process of `make demo`: loads the network in one runtime and prints, as JSON, the time of the
first result (time.monotonic_ns()) and the median of later runs. It reads its task, also JSON, from
stdin."""

import json
import os
import pathlib
import statistics
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP_SECONDS = 0.3
TIMED_SECONDS = 0.5


def inputs_of(task):
    return {task["input"]: numpy.load(task["picture"])}


class TesseraByDefault:
    """Tessera with default options."""

    def __init__(self, task):
        sys.path.insert(0, str(ROOT / "build" / "release" / "python"))
        import tessera

        threads = task["threads"]
        self.inputs = inputs_of(task)
        self.executor = tessera.load(task["model"], threads=threads).bind(threads=threads)

    def run(self):
        return self.executor.run(self.inputs)

    def settle_and_report(self):
        """How many steps each library runs, and the cache file from which binding got its plan."""
        self.executor.wait_for_swap()
        counts = {}
        for step in self.executor.plan().steps:
            is_kernel = step.backend and not step.op.startswith("convert")
            name = step.backend if is_kernel else "conversions and copies"
            counts[name] = counts.get(name, 0) + 1
        cache = self.executor.cache_report()
        return {"steps": counts, "cache": cache.file, "is_known": cache.is_hit}


def load(task):
    if task["runtime"] == "tessera":
        return TesseraByDefault(task)
    sys.path.insert(0, str(ROOT / "bench"))
    from harness import runtimes

    more = {"CACHE_DIR": task["openvino_cache"]} if task["runtime"] == "openvino" else {}
    return runtimes.PEERS[task["runtime"]](task["model"], inputs_of(task), task["threads"], **more)


def main():
    task = json.load(sys.stdin)
    loaded = load(task)
    outputs = loaded.run()
    answer = {"first_ns": time.monotonic_ns()}
    if isinstance(loaded, TesseraByDefault):
        answer.update(loaded.settle_and_report())
    warm = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < warm:
        loaded.run()
    times = []
    end = time.perf_counter() + TIMED_SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        loaded.run()
        times.append(time.perf_counter() - began)
    # From the final plan, after all measurements.
    outputs = loaded.run()
    answer["run_s"] = statistics.median(times)
    numpy.save(task["output"], numpy.asarray(outputs[0]))
    print(json.dumps(answer), flush=True)
    # Threads of a runtime may run longer than the objects that they use.
    os._exit(0)


if __name__ == "__main__":
    main()
