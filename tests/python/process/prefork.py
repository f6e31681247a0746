"""Forks workers as prefork servers do, while threads of the parent are at work; prints what went
wrong. prefork.py FOLDER ACTIVITY [--rounds N] [--workers N] [--backends NAME,...] [--start METHOD]

ACTIVITY: the work of the parent's threads meanwhile, a key of ACTIVITIES."""

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
import tessera
import tessera.onnxruntime as ort
from small_models import model_bytes, node, normal

SECONDS_OF_A_WORKER = 240  # far more than it takes on a busy machine: then it hangs


def network(seed, width=32):
    random = np.random.default_rng(seed)
    weights = {"w": normal(random, 8, 3, 3, 3) / 8, "m": normal(random, 8 * 14 * 14, width) / 8}
    return model_bytes(
        [node("Conv", "x w", "c", "conv"), node("Relu", "c", "r", "relu"), node("Mul", "r r", "q"),
         node("Tanh", "q", "t"), node("Flatten", "t", "f"), node("MatMul", "f m", "s", "product"),
         node("Softmax", "s")],
        {"x": ["batch", 3, 16, 16]}, {"y": ["batch", width]}, weights, name=f"net{seed}")


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 3, 16, 16)).astype(np.float32)


class Parent:
    """The objects that a server loads before it forks."""

    def __init__(self, folder, options):
        self.folder = folder
        self.options = options
        self.path = folder / "net.onnx"
        self.path.write_bytes(network(0))
        self.model = tessera.load(self.path)
        self.executor = self.bind(1)
        self.x = rows(1)
        self.expected = {count: self.bind(count).run(rows(count))[0] for count in (1, 2, 3)}
        self.session = ort.InferenceSession(self.path)
        self.session.run(None, {"x": self.x})
        self.pool = tessera.Pool(self.model, {"x": (1, 3, 16, 16)}, executors=2, **self.options)
        self.is_ended = threading.Event()
        self.counter = itertools.count(100)

    def bind(self, count, **more):
        return self.model.bind({"x": (count, 3, 16, 16)}, **{**self.options, **more})

    def check(self, what, count, found):
        expected = self.expected[count]
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-5):
            raise AssertionError(f"{what}: error {np.abs(found - expected).max()}")

    def repeat(self, work):
        if work is None:
            return []
        threads = [threading.Thread(target=self._repeat, args=(work,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        return threads

    def _repeat(self, work):
        while not self.is_ended.is_set():
            work(self)

    def end(self, threads):
        self.is_ended.set()
        for thread in threads:
            thread.join()


def load_another(parent):
    tessera.load(network(next(parent.counter))).bind({"x": (2, 3, 16, 16)}, **parent.options)


def run_pooled(parent):
    for future in [parent.pool.submit({"x": parent.x}) for _ in range(4)]:
        future.result()


def run_behind(parent):
    model = tessera.load(network(next(parent.counter)))
    executor = model.bind({"x": (1, 3, 16, 16)}, **{**parent.options, "optimize": "behind"})
    end = time.monotonic() + 1
    while time.monotonic() < end and not parent.is_ended.is_set():
        executor.run(parent.x)


def run_with_binding(parent):
    binding = parent.session.io_binding()
    binding.bind_cpu_input("x", parent.x)
    binding.bind_output("y")
    parent.session.run_with_iobinding(binding)


ACTIVITIES = {
    "nothing": None,
    "bind": lambda parent: parent.bind(2),
    "replan": lambda parent: parent.bind(1).run(rows(3)),
    "load": load_another,
    "measure": lambda parent: parent.bind(2, optimize="now", retune=True),
    "behind": run_behind,
    "run": lambda parent: parent.executor.run(parent.x),
    "pool": run_pooled,
    "session": lambda parent: parent.session.run(None, {"x": parent.x}),
    "binding": run_with_binding,
}


def mixed(parent):
    (ACTIVITIES["bind"], load_another, run_pooled, ACTIVITIES["session"])[
        next(parent.counter) % 4](parent)


ACTIVITIES["mixed"] = mixed


def work(parent, number):
    """The work of a worker; raises an exception if something is wrong."""
    try:
        parent.check("the parent's executor", 1, parent.executor.run(parent.x)[0])
    except tessera.Unsupported as error:
        if "when the process was forked" not in str(error):
            raise
    for count in (2, 3, 1):
        executor = parent.bind(count)
        parent.check("the parent's model", count, executor.run(rows(count))[0])
        parent.check("again", count, executor.run(rows(count))[0])
    parent.check("another shape", 3, executor.run(rows(3))[0])
    executor = tessera.load(parent.path).bind({"x": (1, 3, 16, 16)}, **parent.options)
    parent.check("loaded again", 1, executor.run(parent.x)[0])
    tessera.load(network(1000 + number)).bind({"x": (1, 3, 16, 16)}, **parent.options).run(parent.x)
    parent.check("the parent's session", 1, parent.session.run(None, {"x": parent.x})[0])
    session = ort.InferenceSession(parent.path)
    parent.check("a session", 2, session.run(None, {"x": rows(2)})[0])
    try:
        parent.pool.submit({"x": parent.x})
        raise AssertionError("the parent's pool took a request")
    except tessera.Unsupported:
        pass
    with tessera.Pool(parent.model, {"x": (1, 3, 16, 16)}, executors=2, **parent.options) as pool:
        for future in [pool.submit({"x": parent.x}) for _ in range(4)]:
            parent.check("a pool", 1, future.result()[0])
    behind = parent.bind(1, optimize="behind")
    for _ in range(3):
        parent.check("measured behind", 1, behind.run(parent.x)[0])


def start_worker(parent, number, ends_at_once):
    child = os.fork()
    if child:
        return child
    faulthandler.dump_traceback_later(SECONDS_OF_A_WORKER - 5, exit=False)
    work(parent, number)
    if ends_at_once:
        os._exit(0)
    sys.exit(0)  # runs the handlers and destructors of the process, as a worker of gunicorn does


def end_of(child, deadline):
    """The problem, or ""."""
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"ended with {code}"
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def fork_round(parent, workers, method, turn):
    if method == "multiprocessing":
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=work, args=(parent, number))
                     for number in range(workers)]
        for process in processes:
            process.start()
        found = []
        for process in processes:
            process.join(SECONDS_OF_A_WORKER)
            if process.is_alive():
                process.kill()
                found.append("hangs")
            elif process.exitcode:
                found.append(f"ended with {process.exitcode}")
        return found
    children = []
    for number in range(workers):
        children.append(start_worker(parent, number, turn % 2 == 0))
    deadline = time.monotonic() + SECONDS_OF_A_WORKER
    return list(filter(None, (end_of(child, deadline) for child in children)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("activity", choices=ACTIVITIES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--backends", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", choices=("fork", "multiprocessing"), default="fork")
    arguments = parser.parse_args()
    options = {"threads": arguments.threads, "optimize": "off"}
    if arguments.backends:
        options["backends"] = arguments.backends.split(",")
    parent = Parent(arguments.folder, options)
    threads = parent.repeat(ACTIVITIES[arguments.activity])
    wrong = []
    longest = 0
    for turn in range(arguments.rounds):
        begin = time.monotonic()
        wrong += fork_round(parent, arguments.workers, arguments.start, turn)
        longest = max(longest, time.monotonic() - begin)
    parent.end(threads)
    print(f"{arguments.rounds * arguments.workers} workers, wrong: {wrong or 'none'}; "
          f"longest round {longest:.1f} s", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
