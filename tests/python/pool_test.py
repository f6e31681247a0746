"""tessera.Pool: many callers, a bounded queue, cancelling, closing, the end of the process."""

import asyncio
import concurrent.futures
import gc
import pathlib
import queue
import textwrap
import threading
import time

import numpy as np
import pytest
from programs import run_python
from small_models import node


def rows(count, value=1.0):
    return np.full((count, 3), value, np.float32)


@pytest.fixture
def model(tessera, doubling_model):
    return tessera.load(doubling_model)


def occupy(pool, array):
    """Keeps one executor busy until the event that it returns is set, and takes the place that is
    free because the run has ended."""
    main, may_end = threading.current_thread(), threading.Event()
    taken = queue.SimpleQueue()

    def wait(_):
        is_on_executor = threading.current_thread() is not main
        taken.put(is_on_executor)
        if is_on_executor:
            may_end.wait(60)

    is_busy = False
    while not is_busy:  # a request that ends before it has the callback calls it here
        pool.submit(array).add_done_callback(wait)
        is_busy = taken.get(timeout=60)
    pool.submit(array)
    return may_end


def test_many_threads_get_their_own_results(tessera, model):
    wrong = []
    with tessera.Pool(model, {"x": (1, 3)}, executors=3, max_waiting=4) as pool:

        def call(caller):
            for count in range(40):
                array = rows(1 + (caller + count) % 4, caller * 100 + count)
                (found,) = pool.submit({"x": array}).result(60)
                if not np.array_equal(found, 2 * array):
                    wrong.append((caller, count))

        with concurrent.futures.ThreadPoolExecutor(6) as threads:
            list(threads.map(call, range(6)))
    assert not wrong


def test_it_says_what_it_is(tessera, model):
    pool = tessera.Pool(model, {"x": (2, 3)}, executors=2, max_waiting=5)
    assert (pool.executors, pool.threads, pool.max_waiting, pool.waiting) == (2, 1, 5, 0)
    assert [value.name for value in pool.inputs + pool.outputs] == ["x", "y"]
    assert pool.inputs[0].shape == (2, 3)
    assert repr(pool) == "<tessera.Pool of 2 executors; threads of each: 1; waiting: 0 of at most 5>"
    assert tessera.Pool(model, {"x": (2, 3)}, threads=2, executors=1).threads == 2
    assert tessera.Pool(model, {"x": (2, 3)}).executors == model.bind({"x": (2, 3)}).threads


def test_wrong_arguments(tessera, model):
    with pytest.raises(tessera.InvalidArgument, match="option 'executors' of the pool: expected"):
        tessera.Pool(model, {"x": (1, 3)}, executors=-1)
    with pytest.raises(tessera.InvalidArgument, match="option 'max_waiting' of the pool: expected"):
        tessera.Pool(model, {"x": (1, 3)}, max_waiting=-1)
    with pytest.raises(TypeError, match="thread.*did you mean 'threads'"):
        tessera.Pool(model, {"x": (1, 3)}, thread=1)
    with pytest.raises(TypeError, match="expected a tessera.Model"):
        tessera.Pool("model.onnx")


def test_without_shapes_requests_decide(tessera, model):
    with tessera.Pool(model, executors=1) as pool:
        for count in (2, 1, 5):
            [y] = pool.submit(rows(count)).result(60)
            assert y.shape == (count, 3)


def test_an_error_stays_with_its_request(tessera, model):
    with tessera.Pool(model, {"x": (1, 3)}, executors=1) as pool:
        futures = [pool.submit({}), pool.submit({"x": np.zeros((1, 3))}),
                   pool.submit({"z": rows(1)}), pool.submit(np.zeros((1, 4), np.float32))]
        np.testing.assert_array_equal(pool.submit(rows(1)).result(60)[0], rows(1, 2))
        for future in futures:
            assert isinstance(future.exception(60), tessera.InvalidArgument)
        with pytest.raises(ValueError, match="float64"):
            futures[1].result()
        # Arguments that cannot become a request are the caller's error.
        with pytest.raises(tessera.InvalidArgument, match="one array for each of 1 inputs"):
            pool.submit(rows(1), rows(1))
        with pytest.raises(tessera.InvalidArgument, match="input 'x'"):
            pool.submit(object())


def test_a_full_queue_and_cancelled_requests(tessera, model):
    with tessera.Pool(model, {"x": (1, 3)}, executors=1, max_waiting=2) as pool:
        may_end = occupy(pool, rows(1))
        first, second = pool.submit(rows(1)), pool.try_submit(rows(2))
        assert pool.waiting == 3 and pool.try_submit(rows(3)) is None
        assert not first.running() and not first.done()
        called = []
        first.add_done_callback(called.append)
        assert first.cancel() and first.cancel() and first.cancelled()
        assert called == [first]
        # wait() knows of cancelled futures only if they were notified.
        done, _ = concurrent.futures.wait([first], timeout=10)
        assert done == {first}
        with pytest.raises(concurrent.futures.CancelledError):
            first.result()
        third = pool.try_submit(rows(3))
        assert third is not None
        may_end.set()
        assert [future.result(60)[0].shape for future in (second, third)] == [(2, 3), (3, 3)]
        assert not second.cancel() and not second.cancelled() and not second.running()


def test_submit_waits_for_a_place_and_lets_others_run(tessera, model):
    with tessera.Pool(model, {"x": (1, 3)}, executors=1, max_waiting=0) as pool:
        may_end = occupy(pool, rows(1))
        threading.Timer(0.1, may_end.set).start()
        assert pool.submit(rows(2)).result(60)[0].shape == (2, 3)


def test_whoever_has_a_result_is_not_refused(tessera, model):
    with tessera.Pool(model, {"x": (1, 3)}, executors=1, max_waiting=0) as pool:
        for _ in range(300):
            assert pool.try_submit(rows(1)).result(60)[0].shape == (1, 3)


def test_closing(tessera, model):
    pool = tessera.Pool(model, {"x": (1, 3)}, executors=1)
    may_end = occupy(pool, rows(1))
    run, cancelled = pool.submit(rows(1)), pool.submit(rows(1))
    assert cancelled.cancel()
    pool.close(wait=False)
    with pytest.raises(tessera.InvalidArgument, match="closed"):
        pool.submit(rows(1))
    assert not run.done()
    may_end.set()
    pool.close()
    assert run.done() and run.result()[0].shape == (1, 3)
    pool.close()

    pool = tessera.Pool(model, {"x": (1, 3)}, executors=1)
    may_end = occupy(pool, rows(1))
    waiting = pool.submit(rows(1))
    pool.close(wait=False, cancel_waiting=True)
    assert waiting.cancelled()
    assert concurrent.futures.wait([waiting], timeout=10).done == {waiting}
    may_end.set()


def test_callbacks_do_not_wait_for_themselves(tessera, model):
    found = queue.SimpleQueue()

    def call(_):
        while pool.try_submit(rows(1)) is not None:
            pass
        for action in (lambda: pool.submit(rows(1)), pool.close):
            try:
                action()
            except tessera.InvalidArgument as error:
                found.put(str(error))
            else:
                found.put("no error")

    with tessera.Pool(model, {"x": (1, 3)}, executors=1, max_waiting=1) as pool:
        may_end = occupy(pool, rows(1))
        pool.submit(rows(1)).add_done_callback(call)
        assert pool.try_submit(rows(1)) is None
        may_end.set()
        assert "callback" in found.get(timeout=60) and "callback" in found.get(timeout=60)


def test_a_future_outlives_its_pool(tessera, model):
    future = tessera.Pool(model, {"x": (1, 3)}).submit(rows(5))
    gc.collect()
    assert future.result(60)[0].shape == (5, 3)
    for _ in range(20):  # the last owner of the pool is one of its own threads, or this one
        futures = [tessera.Pool(model, {"x": (1, 3)}, executors=2).submit(rows(1)) for _ in range(4)]
        assert all(future.result(60)[0].shape == (1, 3) for future in futures)


def test_asyncio(tessera, model):
    async def calls(pool):
        arrays = [rows(1, value) for value in range(20)]
        found = await asyncio.gather(
            *(asyncio.wrap_future(pool.submit(array)) for array in arrays))
        assert all(np.array_equal(y, 2 * x) for x, (y,) in zip(arrays, found, strict=True))
        may_end = occupy(pool, rows(1))
        waiting = asyncio.wrap_future(pool.submit(rows(1)))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.01)
        assert waiting.cancelled() and pool.waiting == 1
        may_end.set()

    with tessera.Pool(model, {"x": (1, 3)}, executors=1, max_waiting=20) as pool:
        asyncio.run(calls(pool))


def test_arrays_of_requests_are_let_go(tessera, model):
    class Array(np.ndarray):
        ended = 0

        def __del__(self):
            Array.ended += self.base is None

    with tessera.Pool(model, {"x": (1, 3)}, executors=2) as pool:
        futures = []
        for _ in range(30):
            array = Array((4, 3), np.float32)
            array.fill(1)
            futures.append(pool.submit(array))
        del array
        assert all(np.array_equal(future.result(60)[0], rows(4, 2)) for future in futures)
    gc.collect()
    assert Array.ended == 30


def products(save_model, count, size):
    rng = np.random.default_rng(0)
    weights = {f"w{at}": (rng.standard_normal((size, size)) / np.sqrt(size)).astype(np.float32)
               for at in range(count)}
    nodes = [node("MatMul", f"v{at} w{at}", f"v{at + 1}") for at in range(count)]
    return save_model(nodes, {"v0": ["rows", size]}, {f"v{count}": ["rows", size]}, weights,
                      name="products")


def test_executors_share_weights(tessera, save_model):
    """Four executors of a model with 67 MB of weights take little more memory than one."""
    program = textwrap.dedent("""\
        import os, sys
        import numpy as np
        import tessera

        def resident_bytes():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        model = tessera.load(sys.argv[1])
        x = np.ones((4, 1024), np.float32)
        one = tessera.Pool(model, {"v0": (4, 1024)}, executors=1)
        one.submit(x).result()
        before = resident_bytes()
        pool = tessera.Pool(model, {"v0": (4, 1024)}, executors=4, max_waiting=100)
        for future in [pool.submit(x) for _ in range(40)]:
            future.result()
        print(resident_bytes() - before)
        """)
    path = products(save_model, 16, 1024)
    done = run_python(tessera, program, path)
    assert int(done.stdout) < 25e6, "67 MB would be one more copy"


def thread_ticks():
    """Processor time of each thread of this process."""
    ticks = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        ticks[int(task.name)] = int(fields[11]) + int(fields[12])
    return ticks


def test_executors_of_one_thread_wake_no_others(tessera, save_model):
    """Only the pool's two threads compute, although the process has other threads for kernels."""
    model = tessera.load(products(save_model, 8, 512))
    x = np.ones((64, 512), np.float32)
    every_core = model.bind({"v0": x.shape}, threads=4)  # so these threads exist
    every_core.run(x)
    with tessera.Pool(model, {"v0": x.shape}, executors=2) as pool:
        for _ in range(4):
            pool.submit(x).result(60)
        before = thread_ticks()
        deadline = time.monotonic() + 60
        while sum(thread_ticks().values()) - sum(before.values()) < 60:
            concurrent.futures.wait([pool.submit(x) for _ in range(8)])
            assert time.monotonic() < deadline
        used = {task: ticks - before.get(task, 0) for task, ticks in thread_ticks().items()}
    this = threading.get_native_id()
    busy = sorted((ticks for task, ticks in used.items() if task != this), reverse=True)
    assert sum(busy[2:]) <= 3, used


# Last actions of programs before they end; `pool` has one executor, `futures` are 200 requests.
ENDS = {
    "requests wait": "pass",
    "nobody closed it": "del pool, futures",
    "closed without waiting": "pool.close(wait=False)",
    "sys.exit": "sys.exit()",
    "an exception": "sys.excepthook = lambda *_: None; raise KeyError",
    "daemon threads submit": """\
        def submit():
            try:
                while True:
                    pool.submit(x)
            except tessera.Cancelled as error:
                assert "the process is ending" in str(error)
        for _ in range(3):
            threading.Thread(target=submit, daemon=True).start()
        time.sleep(0.05)""",
    "a thread waits": "threading.Thread(target=futures[-1].result).start()",
    "a global with a callback": "futures[-1].add_done_callback(lambda future: future.cancelled())",
}


# The beginning of a program: a pool with many requests.
BUSY = """\
import os, sys, threading, time
import numpy as np
import tessera

model = tessera.load(sys.argv[1])
x = np.ones((64, 256), np.float32)
pool = tessera.Pool(model, {"v0": x.shape}, executors=2, max_waiting=1000)
futures = [pool.submit(x) for _ in range(200)]
"""


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_with_work_in_flight(tessera, save_model, end):
    path = products(save_model, 4, 256)
    for _ in range(3):
        done = run_python(tessera, BUSY + textwrap.dedent(ENDS[end]), path, code=None)
        assert done.stderr == "" and done.returncode == (1 if end == "an exception" else 0)


def test_a_forked_process_is_told_why(tessera, save_model):
    """And it ends, also if it destroys the pool; a pool of its own works there."""
    path = products(save_model, 4, 256)
    program = BUSY + textwrap.dedent("""\
        expected = futures[0].result()[0]

        def explain(action):
            try:
                action()
            except tessera.Unsupported as error:
                assert "forked" in str(error) and "after the fork" in str(error), error
            else:
                raise AssertionError("no error")

        child = os.fork()
        if child == 0:
            explain(lambda: pool.submit(x))
            explain(lambda: pool.try_submit(x))
            explain(futures[-1].result)
            explain(futures[-1].exception)
            assert futures[0].result()[0] is expected
            assert not futures[-1].cancel() and not futures[-1].cancelled()
            assert pool.waiting == 0
            pool.close()
            del pool, futures
            with tessera.Pool(model, {"v0": x.shape}, executors=2) as own:
                assert np.array_equal(own.submit(x).result(20)[0], expected)
            sys.exit(5)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 5, status
        assert all(np.array_equal(future.result()[0], expected) for future in futures)
        """)
    for _ in range(3):
        done = run_python(tessera, program, path)
        assert done.stderr == ""
