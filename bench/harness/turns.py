"""Work that takes turns in one process: runtimes in blocks of runs, or calls one by one."""

import gc
import random
import time

# In its first runs, a runtime selects kernels, fills caches and grows memory pools.
WARM_UP_SECONDS = 0.2
WARM_UP_RUNS = 3
BLOCK_SECONDS = 0.05
MIN_BLOCKS = 3
# Limits for waiting until all threads are idle; ONNX Runtime's spin for about 40 ms.
REST_SLICE_SECONDS = 0.005
REST_MOST_SECONDS = 1.0


def rest():
    """Returns as soon as no thread of this process computes any more, so that waiting threads of
    one runtime take no time from the next."""
    deadline = time.perf_counter() + REST_MOST_SECONDS
    while time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(REST_SLICE_SECONDS)
        if time.process_time() - before < REST_SLICE_SECONDS / 10:
            return


def timer_of(run):
    """A function that calls `run` and returns the seconds that this took."""
    def timed():
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    return timed


def run_for(timer, seconds, runs=1):
    """The times of at least `runs` runs in at least so many seconds."""
    times = []
    started = time.perf_counter()
    while len(times) < runs or time.perf_counter() - started < seconds:
        times.append(timer())
    return times


def take_turns(timers, seconds, block_seconds=BLOCK_SECONDS, warm_up_seconds=WARM_UP_SECONDS,
               seed=0):
    """For each name, the times that its timer returned. After a warm-up of all, every timer has one
    block in each round, in a new random order; those that ran for `seconds` are skipped. The first
    run of a block, which wakes threads and warms caches, is not counted."""
    for timer in timers.values():
        run_for(timer, warm_up_seconds, WARM_UP_RUNS)
    gc.disable()
    order = random.Random(seed)
    times = {name: [] for name in timers}
    spent, blocks = dict.fromkeys(timers, 0), dict.fromkeys(timers, 0)
    while pending := [name for name in timers
                      if spent[name] < seconds or blocks[name] < MIN_BLOCKS]:
        order.shuffle(pending)
        for name in pending:
            rest()
            timers[name]()
            started = time.perf_counter()
            times[name] += run_for(timers[name], block_seconds)
            spent[name] += time.perf_counter() - started
            blocks[name] += 1
    gc.enable()
    return times


def alternate(timers, rounds, warm_ups):
    """For each name, the times of `rounds` rounds after some that are not counted; in each of them,
    every timer runs once."""
    times = {name: [] for name in timers}
    for turn in range(-warm_ups, rounds):
        for name, timer in timers.items():
            seconds = timer()
            if turn >= 0:
                times[name].append(seconds)
    return times
