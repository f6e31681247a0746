"""Forks again and again while a pool answers requests; prints how many new processes hung.
fork_often.py FORKS

The threads of a pool become known to the interpreter for each result. In Python 3.11, a process that
is forked meanwhile waits for ever before it runs the first line."""

import os
import signal
import sys
import threading
import time

import numpy as np
import tessera
from small_models import model_bytes, node

REQUESTERS = 3
REQUESTS = 16
SECONDS_OF_A_PROCESS = 30  # far more than it takes on a busy machine


def make_pool():
    model = tessera.load(model_bytes([node("Relu")], {"x": [4]}, {"y": [4]}))
    return tessera.Pool(model, {"x": (4,)}, executors=4)


def hangs():
    child = os.fork()
    if not child:
        os._exit(0)
    end = time.monotonic() + SECONDS_OF_A_PROCESS
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def main():
    pool = make_pool()
    x = np.ones(4, np.float32)
    is_ended = threading.Event()

    def request():
        while not is_ended.is_set():
            for future in [pool.submit({"x": x}) for _ in range(REQUESTS)]:
                future.result()

    threads = [threading.Thread(target=request) for _ in range(REQUESTERS)]
    for thread in threads:
        thread.start()
    hung = sum(hangs() for _ in range(int(sys.argv[1])))
    is_ended.set()
    for thread in threads:
        thread.join()
    print(f"hung: {hung}")


main()
