"""Which objects keep others alive, and which calls wait for others."""

import concurrent.futures
import gc
import os
import signal
import threading
import weakref

import numpy as np
from programs import end_of, start_python
from small_models import node


def slow_model(save_model, steps):
    """A chain of matrix products of 256 x 256 that does not change its values."""
    nodes = [node("MatMul", f"v{index} one", f"v{index + 1}") for index in range(steps)]
    return save_model(nodes, {"v0": [256, 256]}, {f"v{steps}": [256, 256]},
                      {"one": np.eye(256, dtype=np.float32)}, name="slow")


def test_an_executor_outlives_its_model_and_an_array_its_executor(tessera, save_model):
    weight = np.arange(300_000, dtype=np.float32)
    path = save_model([node("Add", "x weight", "y")], {"x": [300_000]}, {"y": [300_000]},
                      {"weight": weight})
    model = tessera.load(path)
    executor = model.bind()
    del model
    gc.collect()
    (output,) = executor.run({"x": np.ones(300_000, np.float32)})
    del executor
    gc.collect()
    np.testing.assert_array_equal(output, weight + 1)


def test_a_model_and_the_owner_of_its_log_go_together(tessera, doubling_model):
    class Owner:
        def __init__(self):
            self.model = tessera.load(doubling_model, log=self.log)

        def log(self, message):
            pass

    owner = weakref.ref(Owner())
    gc.collect()
    assert owner() is None


def test_memory_of_inputs_and_outputs_is_given_back(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (1_000_000, 3)})
    values = np.ones((1_000_000, 3), np.float32)
    given = weakref.ref(values)

    def resident_bytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    for _ in range(5):
        executor.run(values)
    before = resident_bytes()
    for _ in range(40):
        executor.run(values)  # 24 MB of inputs and outputs; the allocator may keep some
    assert resident_bytes() - before < 150e6
    del values
    gc.collect()
    assert given() is None


def test_two_executors_run_in_two_threads_at_once(tessera, save_model):
    """Both results are right, and other Python code runs meanwhile."""
    model = tessera.load(slow_model(save_model, 20))
    executors = [model.bind(threads=1) for _ in range(2)]
    inputs = [np.full((256, 256), value, np.float32) for value in (3, 4)]
    wrong = []

    def run(executor, values):
        for _ in range(5):
            (output,) = executor.run(values)
            if not np.array_equal(output, values):
                wrong.append(output)

    threads = [
        threading.Thread(target=run, args=pair)
        for pair in zip(executors, inputs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_is_free_while_an_executor_runs(tessera, save_model):
    executor = tessera.load(slow_model(save_model, 200)).bind(threads=1)
    values = np.ones((256, 256), np.float32)
    is_done = threading.Event()

    def run():
        executor.run(values)
        is_done.set()

    thread = threading.Thread(target=run)
    thread.start()
    turns = 0
    while not is_done.wait(0.0005):
        turns += 1
    thread.join()
    assert turns > 3, "the main thread got no turn while the other ran"


def test_one_executor_may_be_used_from_many_threads(tessera, save_model):
    executor = tessera.load(slow_model(save_model, 5)).bind()
    wrong = []

    def run(value):
        values = np.full((256, 256), value, np.float32)
        for _ in range(5):
            if not np.array_equal(executor.run(values)[0], values):
                wrong.append(value)

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(4)))
    assert not wrong


def test_an_interrupt_ends_the_program_after_the_run(tessera, save_model):
    """Ctrl-C during a run raises KeyboardInterrupt as soon as the run has ended."""
    path = slow_model(save_model, 300)
    program = f"""
        import numpy, tessera
        executor = tessera.load({str(path)!r}).bind(threads=1)
        try:
            print("started", flush=True)
            while True:
                executor.run(numpy.ones((256, 256), numpy.float32))
        except KeyboardInterrupt:
            print("interrupted", executor.run(numpy.ones((256, 256), numpy.float32))[0].sum())
        """
    with start_python(tessera, program) as process:
        try:
            assert process.stdout.readline() == "started\n"
            output, _ = end_of(process, 0, signal.SIGINT)
        finally:
            process.kill()
    assert output == "interrupted 65536.0\n"
