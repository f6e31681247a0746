"""Ctrl-C is answered at once, during any call of the module, and nothing is broken afterwards."""

import os
import signal
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import small_models

from lifetime_test import slow_model
from programs import run_program
from small_models import node

# These tests watch the clock and send SIGINT.
pytestmark = pytest.mark.alone

# The module answers within a third of this; the rest is for a busy machine.
MAX_SECONDS = 1.0
SIZE = 1024
PRODUCTS = 50


def send_later(seconds, sent):
    """Sends SIGINT to this process, and notes when."""

    def send():
        time.sleep(seconds)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def interrupt(call, after):
    """The seconds from SIGINT to KeyboardInterrupt; None if the call ended before."""
    sent = []
    thread = send_later(after, sent)
    try:
        call()
        thread.join()
        return None
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        thread.join()


@pytest.fixture
def slow_to_load(save_model):
    """Products of constants, which load() computes by a reference kernel without a pause."""
    square = np.eye(SIZE, dtype=np.float32)
    names = ["one"] + [f"product{index}" for index in range(PRODUCTS)]
    nodes = [node("MatMul", [factor, "one"], [product])
             for factor, product in zip(names, names[1:])]
    nodes.append(node("Add", ["x", names[-1]], "y"))
    return save_model(nodes, {"x": [SIZE, SIZE]}, {"y": [SIZE, SIZE]}, {"one": square},
                      name="slow_to_load")


PROGRAM = """
    import sys, time
    sys.path[:0] = {folders}
    import tessera
    from signals_test import interrupt
    start = time.monotonic()
    tessera.load({path!r}, threads=1)
    whole = time.monotonic() - start
    print(whole, interrupt(lambda: tessera.load({path!r}, threads=1), whole / 4))
    # The module can be used as before, while the first load goes on.
    print(len(tessera.load({other!r}).bind({{"x": (2, 3)}}).outputs))
"""


def test_load(tessera, slow_to_load):
    """In a process of its own, because the work that is left goes on for some seconds."""
    program = PROGRAM.format(folders=sys.path, path=str(slow_to_load),
                             other=str(doubling(slow_to_load)))
    result = run_program(sys.executable, "-c", textwrap.dedent(program))
    assert result.stderr == "", result.stderr
    times, outputs = result.stdout.splitlines()
    whole, seconds = map(float, times.split())
    assert outputs == "1"
    assert seconds < MAX_SECONDS, f"load takes {whole:.1f} s"
    assert whole > 1.5 * MAX_SECONDS, "add products: a load that is not interrupted would pass"


def test_bind(tessera, slow_to_load):
    """A callback of the caller that takes long is interrupted as any code of Python, on the thread
    that called bind()."""
    model = tessera.load(doubling(slow_to_load))
    threads = set()

    def progress(told):
        threads.add(threading.get_ident())
        time.sleep(20)

    seconds = interrupt(lambda: model.bind({"x": (2, 3)}, optimize=True, on_progress=progress), 0.3)
    assert seconds is not None and seconds < MAX_SECONDS
    assert threads == {threading.get_ident()}
    assert (model.bind({"x": (2, 3)}).run(np.ones((2, 3), np.float32))[0] == 2).all()


def doubling(path):
    """Another model, in the folder of `path`."""
    return small_models.save_model(path.parent / "doubling.onnx", [node("Add", "x x", "y")],
                                   {"x": ["n", 3]}, {"y": ["n", 3]}, opset=20)


def test_a_signal_at_any_moment_of_bind(tessera, slow_to_load):
    """Loads and binds again and again, with signals at other moments each time."""
    path = doubling(slow_to_load)
    model = tessera.load(path)

    def repeat():
        while True:
            tessera.load(path).bind({"x": (2, 3)})
            model.bind({"x": (4, 3)})

    for turn in range(20):
        seconds = interrupt(repeat, 0.01 + 0.003 * turn)
        assert seconds is not None and seconds < MAX_SECONDS
    assert (model.bind({"x": (2, 3)}).run(np.ones((2, 3), np.float32))[0] == 2).all()


def test_a_run_that_waits_for_its_turn(tessera, save_model):
    executor = tessera.load(slow_model(save_model, 4000)).bind(threads=1, backends=["reference"])
    x = np.zeros((256, 256), np.float32)
    begun = threading.Event()

    def run():
        begun.set()
        try:
            executor.run(x)
        except tessera.Cancelled:
            pass

    other = threading.Thread(target=run)
    other.start()
    begun.wait()
    time.sleep(0.1)
    seconds = interrupt(lambda: executor.run(x), 0.2)
    is_running = other.is_alive()
    executor.cancel()
    other.join()
    assert is_running, "the other run must take longer, or this test tells nothing"
    assert seconds is not None and seconds < MAX_SECONDS


def test_other_handlers_run(tessera, slow_to_load):
    """A handler that raises nothing does not disturb load()."""
    told = []
    previous = signal.signal(signal.SIGUSR1, lambda *arguments: told.append(time.monotonic()))
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        tessera.load(slow_to_load, threads=1)
        end = time.monotonic()
        timer.join()
        time.sleep(0.1)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert len(told) == 1 and told[0] < end
