"""The C interface from another language: Python's ctypes, which knows nothing but tessera_c.h."""

import concurrent.futures
import ctypes
import pathlib
import sys

import numpy as np
import onnx
import pytest

from installed import environment
from programs import run_program

OK, INVALID_MODEL, INVALID_ARGUMENT, CACHE_MISS = 0, 1, 2, 9
TYPES = {np.dtype(np.float32): 12, np.dtype(np.int64): 5}


class Failure(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("kind", ctypes.c_int32),
                ("where", ctypes.c_char * 512), ("message", ctypes.c_char * 2048)]

    def text(self):
        return f"{self.where.decode()}: {self.message.decode()}"


class CTensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("data_type", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
                ("bytes", ctypes.c_size_t)]


class Value(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("data_type", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("symbols", ctypes.POINTER(ctypes.c_char_p)), ("is_read", ctypes.c_int32),
                ("text", ctypes.c_char_p)]


def made(kind):
    """A struct that says its size."""
    return kind(struct_size=ctypes.sizeof(kind))


class Library:
    """Calls functions of the library; those that fail raise the failure."""

    def __init__(self, file):
        self.library = ctypes.CDLL(file)
        self.library.tessera_version.restype = ctypes.c_char_p
        for name in ("model_input_count", "executor_output_count"):
            getattr(self.library, f"tessera_{name}").restype = ctypes.c_size_t

    def call(self, name, *arguments):
        failure = made(Failure)
        code = getattr(self.library, f"tessera_{name}")(*arguments, ctypes.byref(failure))
        if code != OK:
            assert failure.kind == code
            raise ValueError(failure.kind, failure.text())

    def made_by(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def result(self, executor, index):
        tensor = made(CTensor)
        self.call("executor_result", executor, ctypes.c_size_t(index), ctypes.byref(tensor))
        dtype = next(dtype for dtype, number in TYPES.items() if number == tensor.data_type)
        content = ctypes.string_at(tensor.data, tensor.bytes)
        dims = [tensor.dims[axis] for axis in range(tensor.rank)]
        return tensor.name.decode(), np.frombuffer(content, dtype).reshape(dims)


def tensor_over(name, array):
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    return CTensor(ctypes.sizeof(CTensor), name.encode(), TYPES[array.dtype], array.ndim, dims,
                   array.ctypes.data, array.nbytes)


@pytest.fixture(scope="module")
def library(prefix):
    return Library(prefix / "lib" / "libtessera.so")


@pytest.fixture
def loaded(library, model):
    handle = library.made_by("load", bytes(model), None)
    yield handle
    library.library.tessera_model_destroy(handle)


def bind(library, loaded, **options):
    given = library.made_by("bind_options_create")
    for name, text in {"threads": "1", **options}.items():
        library.call("bind_options_set", given, name.encode(), str(text).encode())
    executor = library.made_by("bind", loaded, given)
    library.library.tessera_bind_options_destroy(given)
    return executor


X = np.array([[1, 0], [2, 3]], np.float32)
RELU = np.array([[1, 0, 0.5], [8, 1, 1.75]], np.float32)


def test_it_runs_in_memory_of_the_caller_and_tells_sizes(library, loaded):
    executor = bind(library, loaded, shapes="x=2x2")
    output = np.zeros((2, 3), np.float32)
    library.call("executor_bind_output", executor, ctypes.byref(tensor_over("relu", output)))
    library.call("executor_run", executor, ctypes.byref(tensor_over("x", X)), ctypes.c_size_t(1))
    np.testing.assert_allclose(output, RELU)
    name, positions = library.result(executor, 1)
    assert name == "positions" and positions.tolist() == [[0, 1, 1], [0, 0, 1]]
    library.call("executor_clear_bindings", executor)
    row = np.array([[5, 5]], np.float32)
    library.call("executor_run", executor, ctypes.byref(tensor_over("x", row)), ctypes.c_size_t(1))
    np.testing.assert_allclose(library.result(executor, 0)[1], [[15, 0, 3.75]])
    library.library.tessera_executor_destroy(executor)


def test_it_describes_what_is_open(library, loaded):
    assert library.library.tessera_model_input_count(loaded) == 1
    value = made(Value)
    library.call("model_input", loaded, ctypes.c_size_t(0), ctypes.byref(value))
    assert (value.name, value.rank, value.dims[0], value.dims[1]) == (b"x", 2, -1, 2)
    assert (value.symbols[0], value.symbols[1]) == (b"batch", b"")


def test_a_bundle_is_a_model_by_path_and_by_bytes(library, loaded, model, tmp_path):
    file = tmp_path / "c.bundle"
    given = library.made_by("bind_options_create")
    library.call("bind_options_set", given, b"shapes", b"x=2x2")
    library.call("bind_options_set", given, b"threads", b"1")
    all_given = (ctypes.c_void_p * 1)(given)
    library.call("model_save_bundle", loaded, bytes(file), all_given, ctypes.c_size_t(1))
    content = file.read_bytes()
    for source in (("load", bytes(file)),
                   ("load_bytes", content, ctypes.c_size_t(len(content)))):
        bundled = library.made_by(*source, None)
        executor = bind(library, bundled, shapes="x=2x2")
        library.call("executor_run", executor, ctypes.byref(tensor_over("x", X)),
                     ctypes.c_size_t(1))
        np.testing.assert_allclose(library.result(executor, 0)[1], RELU)
        library.library.tessera_executor_destroy(executor)
        library.library.tessera_model_destroy(bundled)
    with pytest.raises(ValueError, match="no bundle") as caught:
        library.call("model_save_bundle", loaded, bytes(model), all_given, ctypes.c_size_t(1))
    assert caught.value.args[0] == INVALID_ARGUMENT
    with pytest.raises(ValueError, match="array of bind options"):
        library.call("model_save_bundle", loaded, bytes(file), None, ctypes.c_size_t(1))
    library.library.tessera_bind_options_destroy(given)


def test_failures_have_kind_place_and_message(library, loaded):
    with pytest.raises(ValueError) as caught:
        library.made_by("load_bytes", b"no model", ctypes.c_size_t(8), None)
    assert caught.value.args[0] == INVALID_MODEL
    executor = bind(library, loaded, shapes="x=2x2")
    wrong = tensor_over("x", X.astype(np.int64))
    with pytest.raises(ValueError, match="input 'x': expected float32.* found int64") as caught:
        library.call("executor_run", executor, ctypes.byref(wrong), ctypes.c_size_t(1))
    assert caught.value.args[0] == INVALID_ARGUMENT
    library.library.tessera_executor_destroy(executor)
    with pytest.raises(ValueError, match="did you mean 'threads'"):
        bind(library, loaded, treads=2)


def test_caches_are_saved_and_loaded(library, loaded, model, tmp_path):
    # Where no cache has the plan, binding without measuring is refused.
    folder = {"cache_dir": tmp_path, "shapes": "x=2x2", "optimize": "now", "backends": "reference"}
    with pytest.raises(ValueError) as caught:
        bind(library, loaded, frozen="true", **folder)
    assert caught.value.args[0] == CACHE_MISS
    executor = bind(library, loaded, in_process="true", **folder)
    saved = tmp_path / "saved.cache"
    library.call("executor_save_cache", executor, bytes(saved), b"all", 0)
    library.library.tessera_executor_destroy(executor)
    for file in pathlib.Path(tmp_path).glob("*.cache"):
        if file != saved:
            file.unlink()
    other = library.made_by("load", bytes(model), None)
    library.call("model_load_cache", other, bytes(saved), None)
    executor = bind(library, other, frozen="true", **folder)
    library.library.tessera_model_destroy(other)  # the executor keeps what it needs
    library.call("executor_run", executor, ctypes.byref(tensor_over("x", X)), ctypes.c_size_t(1))
    np.testing.assert_allclose(library.result(executor, 0)[1], RELU)
    library.library.tessera_executor_destroy(executor)


@pytest.fixture
def measured(library, loaded, tmp_path):
    """An executor whose bind measured, and its options."""
    options = {"cache_dir": tmp_path / "work", "shapes": "x=2x2", "optimize": "now",
               "backends": "reference", "in_process": "true"}
    (tmp_path / "work").mkdir()
    executor = bind(library, loaded, **options)
    yield executor, options
    library.library.tessera_executor_destroy(executor)


@pytest.mark.parametrize("kind", [b"all", b"plan", b"reference", None])
def test_a_cache_is_saved_by_type(library, loaded, measured, tmp_path, kind):
    executor, _ = measured
    for name, handle in (("executor", executor), ("model", loaded)):
        file = tmp_path / f"{name}.cache"
        library.call(f"{name}_save_cache", handle, bytes(file), kind, 0)
        assert file.exists()
        library.call("model_load_cache", loaded, bytes(file), kind)


@pytest.mark.parametrize("function", ["executor_save_cache", "model_save_cache",
                                      "executor_load_cache", "model_load_cache"])
def test_a_wrong_type_names_the_likely_one(library, loaded, measured, tmp_path, function):
    executor, _ = measured
    file = tmp_path / "there.cache"
    library.call("executor_save_cache", executor, bytes(file), b"all", 0)
    handle = executor if function.startswith("executor") else loaded
    more = (0,) if "save" in function else ()
    before = file.read_bytes()
    for kind in (b"plann", b"referenc"):
        with pytest.raises(ValueError, match="did you mean") as caught:
            library.call(function, handle, bytes(file), kind, *more)
        assert caught.value.args[0] == INVALID_ARGUMENT
    assert file.read_bytes() == before
    # Nothing has changed: the executor still runs.
    library.call("executor_run", executor, ctypes.byref(tensor_over("x", X)), ctypes.c_size_t(1))
    np.testing.assert_allclose(library.result(executor, 0)[1], RELU)


def test_an_executor_that_loads_a_cache_loses_what_was_bound(library, measured, tmp_path):
    executor, _ = measured
    file = tmp_path / "it.cache"
    library.call("executor_save_cache", executor, bytes(file), None, 0)
    output = np.zeros((2, 3), np.float32)
    library.call("executor_bind_output", executor, ctypes.byref(tensor_over("relu", output)))
    library.call("executor_load_cache", executor, bytes(file), None)
    library.call("executor_run", executor, ctypes.byref(tensor_over("x", X)), ctypes.c_size_t(1))
    assert not output.any()
    np.testing.assert_allclose(library.result(executor, 0)[1], RELU)


def test_threads_share_a_model(library, loaded):
    failures = []

    def work(rows):
        try:
            executor = bind(library, loaded, shapes=f"x={rows}x2", optimize="off")
            value = made(Value)
            for _ in range(20):
                library.call("model_input", loaded, ctypes.c_size_t(0), ctypes.byref(value))
                x = np.full((rows, 2), rows, np.float32)
                library.call("executor_run", executor, ctypes.byref(tensor_over("x", x)),
                             ctypes.c_size_t(1))
                np.testing.assert_allclose(library.result(executor, 0)[1][0],
                                           [3 * rows, 0, 0.75 * rows])
            library.library.tessera_executor_destroy(executor)
        except BaseException as failure:  # raised by the test, not by the thread
            failures.append(failure)

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(1, 5)))
    assert failures == []


RELATIVE = """
import ctypes, os, sys
library = ctypes.CDLL("./libtessera.so")
os.chdir("/")
model, executor = ctypes.c_void_p(), ctypes.c_void_p()
assert library.tessera_load(os.fsencode(sys.argv[1]), None, ctypes.byref(model), None) == 0
assert library.tessera_bind(model, None, ctypes.byref(executor), None) == 0
"""


def test_it_finds_plug_ins_though_its_name_was_relative(prefix, model, needs_a_library):
    static = str(model).replace("small", "static")
    proto = onnx.load(model)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(proto, static)
    done = run_program(sys.executable, "-c", RELATIVE, static, cwd=prefix / "lib",
                       env=environment())
    assert done.stderr == ""


PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.tessera_version.restype = ctypes.c_char_p
import tessera
print(library.tessera_version().decode(), tessera.load(sys.argv[2]).bind({"x": (1, 2)}).threads)
"""


def test_it_lives_beside_the_python_module(prefix, bin_dir, model):
    if not any((bin_dir.parent / "python").glob("tessera/_core*")):
        pytest.skip("this build has no Python module")
    done = run_program(sys.executable, "-c", PROGRAM, prefix / "lib" / "libtessera.so", model,
                       env=environment(PYTHONPATH=bin_dir.parent / "python"))
    assert done.stdout.startswith("0.1.0 ")
