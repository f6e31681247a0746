"""Uses that are wrong or unusual: each ends with an error that helps, or works; none hangs."""

import concurrent.futures
import signal
import threading
import time

import numpy as np
import pytest
from programs import end_of, run_python, start_python

X = np.ones((2, 3), np.float32)


@pytest.fixture
def executor(tessera, doubling_model):
    return tessera.load(doubling_model).bind({"x": (2, 3)})


@pytest.mark.parametrize(("given", "message"), [
    (X.astype(np.float64), "input 'x': expected float32 2x3, found float64 2x3"),
    (X[0], "input 'x': the model declares float32 rowsx3, but the shape given is 3"),
    (np.ones((2, 4), np.float32),
     "input 'x': the model declares float32 rowsx3, but the shape given is 2x4"),
    (bytearray(24), "input 'x': expected float32 2x3, found uint8 24"),
])
def test_a_wrong_array_is_named_with_what_was_expected(tessera, executor, given, message):
    with pytest.raises(ValueError) as caught:
        executor.run({"x": given})
    assert str(caught.value) == message and isinstance(caught.value, tessera.InvalidArgument)
    np.testing.assert_array_equal(executor.run({"x": X})[0], X * 2)


@pytest.mark.parametrize(("options", "message"), [
    ({"tuning_inputs": {"xx": X}}, "tuning_inputs 'xx': expected the name of an input"),
    ({"layouts": {"xx": "row_major"}}, "layout of 'xx': expected the name of an input or output"),
    ({"layouts": {"xx": "row_major@cpu"}}, "layout of 'xx': expected the name of an input or output"),
    ({"layouts": {"xx": "csr"}}, "layout of 'xx': expected the name of an input or output"),
    ({"margin_search_seconds": -1}, "margin_search_seconds"),
    ({"margin_search_seconds": float("nan")}, "margin_search_seconds"),
    ({"cost_table": "/"}, "costs '/': expected a file"),
    ({"cost_table": "/dev/zero"}, "costs '/dev/zero': expected a file"),
    ({"cost_table": "/nowhere"}, "costs '/nowhere': expected a file"),
])
def test_options_without_a_meaning_are_refused(tessera, doubling_model, options, message):
    with pytest.raises(tessera.InvalidArgument, match=message):
        tessera.load(doubling_model).bind({"x": (2, 3)}, **options, optimize="now")


def test_one_executor_on_many_threads(executor):
    """Each thread gets the results of its own arrays."""
    wrong = []

    def run(number):
        x = np.full((1 + number % 3, 3), number, np.float32)
        for _ in range(50):
            (y,) = executor.run({"x": x})
            if y.shape != x.shape or not (y == 2 * number).all():
                wrong.append(number)

    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        list(threads.map(run, range(12)))
    assert wrong == []


def test_bindings_change_while_another_thread_runs(executor):
    """bind_output() and run() take turns: run() returns the array that it wrote to, not one that
    was bound in the meantime, which still has zeros."""
    is_ended = threading.Event()

    def bind():
        while not is_ended.is_set():
            for _ in range(4):
                executor.bind_output("y", np.zeros((2, 3), np.float32))
            executor.clear_bindings()

    other = threading.Thread(target=bind)
    other.start()
    try:
        for _ in range(2000):
            (y,) = executor.run({"x": X})
            assert (y == 2).all()
    finally:
        is_ended.set()
        other.join()


def test_a_forked_process_loads_binds_and_runs(tessera, doubling_model, tmp_path):
    """With the executor of its parent, too, on each side of a fork."""
    result = run_python(tessera, f"""
        import os, numpy as np, tessera
        model = tessera.load({str(doubling_model)!r})
        executor = model.bind({{"x": (2, 3)}})
        x = np.ones((2, 3), np.float32)
        executor.run(x)
        child = os.fork()
        total = executor.run(x)[0].sum() + model.bind({{"x": (4, 3)}}).run(
            np.ones((4, 3), np.float32))[0].sum()
        total += tessera.load({str(doubling_model)!r}).bind({{"x": (1, 3)}}).run(x[:1])[0].sum()
        if child == 0:
            os._exit(int(total))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(total))
        """, cwd=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == ("42 42\n", "", 0)


def test_an_executor_that_ran_during_a_fork_is_refused(tessera, doubling_model, tmp_path):
    """The thread that has its turn does not exist in the new process, and would be waited for."""
    result = run_python(tessera, f"""
        import os, threading, numpy as np, tessera
        model = tessera.load({str(doubling_model)!r})
        executor = model.bind({{"x": (2, 3)}}, optimize=True, retune=True)
        x = np.ones((2, 3), np.float32)
        is_ended = threading.Event()
        def repeat():
            while not is_ended.is_set():
                executor.measure_dispatch_ns()
        other = threading.Thread(target=repeat)
        other.start()
        codes = []
        while 50 not in codes and len(codes) < 2000:  # the thread may begin late
            child = os.fork()
            if child == 0:
                try:
                    code = int(executor.run(x)[0].sum())
                except tessera.Unsupported as error:
                    code = 50 if "when the process was forked" in str(error) else 51
                os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        is_ended.set()
        other.join()
        print(set(codes) <= {{12, 50}}, 50 in codes, int(executor.run(x)[0].sum()))
        """, cwd=tmp_path)
    assert (result.stdout, result.returncode) == ("True True 12\n", 0), result.stderr


@pytest.mark.alone
def test_the_process_ends_after_ctrl_c(tessera, doubling_model, tmp_path):
    """With KeyboardInterrupt as the reason, and no crash while work that was left ends."""
    for wait in (0.0, 0.02, 0.05, 0.1, 0.2):
        program = start_python(tessera, f"""
            import tessera
            print("begun", flush=True)
            while True:
                tessera.load({str(doubling_model)!r}).bind(
                    {{"x": (2, 3)}}, optimize=True, retune=True)
            """, cwd=tmp_path)
        assert program.stdout.readline() == "begun\n"
        time.sleep(wait)
        _, errors = end_of(program, -signal.SIGINT, signal.SIGINT)
        assert errors.splitlines()[-1] == "KeyboardInterrupt", errors
        assert "leaked" not in errors and "terminate" not in errors


def test_a_bound_array_that_refers_to_the_executor(tessera, doubling_model, tmp_path):
    """No complaint about objects that the end of the process finds in use."""
    result = run_python(tessera, f"""
        import numpy as np, tessera
        executor = tessera.load({str(doubling_model)!r}).bind({{"x": (2, 3)}})

        class Mine:
            def __init__(self):
                self.values = np.zeros((2, 3), np.float32)
                self.owner = executor
            def __dlpack__(self, **wishes):
                return self.values.__dlpack__(**wishes)
            def __dlpack_device__(self):
                return 1, 0

        executor.bind_output("y", Mine())
        print(executor.run(np.ones((2, 3), np.float32))[0].values.sum())
        """, cwd=tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == ("12.0\n", "", 0)


@pytest.mark.alone
def test_import_is_fast_and_loads_no_library(tessera, tmp_path):
    """In time of the processor, of which other processes take none."""
    seconds = []
    for _ in range(5):
        printed = run_python(tessera, """
            import time
            start = time.process_time()
            import tessera
            took = time.process_time() - start
            loaded = open("/proc/self/maps").read()
            print(took, *(name for name in ("LLVM", "openvino", "dnnl", "nvrtc", "OpenCL")
                          if name in loaded))
            """, cwd=tmp_path).stdout.split()
        assert printed[1:] == []
        seconds.append(float(printed[0]))
    assert min(seconds) < 0.06


@pytest.mark.parametrize("given", [
    {"xx": X}, {"x": X.astype(np.int32)}, {"x": np.ones((3, 3), np.float32)}],
    ids=["name", "type", "shape"])
def test_wrong_tuning_inputs_are_refused_where_the_plan_is_known(tessera, doubling_model, tmp_path, given):
    def bind(**options):
        return tessera.load(doubling_model).bind({"x": (2, 3)}, optimize=True,
                                                 cache_dir=str(tmp_path), **options)

    bind()
    bind(tuning_inputs={"x": X})
    with pytest.raises(tessera.InvalidArgument):
        bind(tuning_inputs=given)
