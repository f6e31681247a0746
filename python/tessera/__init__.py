"""Tessera runs ONNX models with whatever libraries the machine has.

    import numpy as np
    import tessera

    model = tessera.load("squeezenet.onnx")
    executor = model.bind()
    probabilities, = executor.run({"data_0": np.zeros((1, 3, 224, 224), np.float32)})

Several threads may use a Model concurrently. An Executor runs once at a time: the run of a second
thread waits. For concurrent runs bind one executor for each thread, or make a Pool of executors; both
share the model's weights. Loading, binding and running release the interpreter's lock, so other Python
threads continue.
"""

import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import BinaryIO

from . import _core, calls, copies

# Must come before the names are imported from there.
calls.check_calls(_core)
copies.install()

# pool_future is imported here and not by the first Pool.submit(): a process forked while another thread
# imports a module waits for that import for ever.
from . import descriptions, pool_future
from ._core import (
    Backends,
    DeviceArray,
    Exclusion,
    Executor,
    Model,
    Pin,
    Pool,
    SparseArray,
    csr_array,
    row_sparse_array,
)
from ._core import inspect as _inspect
from ._core import inspect_bytes as _inspect_bytes
from ._core import load as _load
from ._core import load_bytes as _load_bytes
from ._core import version as _version
from .descriptions import *
from .errors import (
    CacheMiss,
    Cancelled,
    Corrupt,
    DeviceFailed,
    Error,
    Internal,
    InvalidArgument,
    InvalidModel,
    OutOfMemory,
    Unsupported,
)
from .messages import tell_loaded
from .sources import looks_like_a_path, read_source

__all__ = [
    "Backends",
    "CacheMiss",
    "Cancelled",
    "Corrupt",
    "DeviceArray",
    "DeviceFailed",
    "Error",
    "Exclusion",
    "Executor",
    "Internal",
    "InvalidArgument",
    "InvalidModel",
    "Model",
    "OutOfMemory",
    "Pin",
    "Pool",
    "SparseArray",
    "Unsupported",
    "backends",
    "csr_array",
    "from_dlpack",
    "inspect",
    "load",
    "load_backend",
    "new_array",
    "row_sparse_array",
    "to_device",
]
__all__ += descriptions.__all__

__version__ = _version()

# Names of tessera.onnxruntime that are also attributes of this module. That module is imported when
# one of them is first used, so `import tessera` stays fast.
_ONNXRUNTIME_NAMES = (
    "InferenceSession",
    "IOBinding",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
)


# For editors and type checkers, which read this as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .onnxruntime import (
        InferenceSession,
        IOBinding,
        OrtValue,
        RunOptions,
        SessionOptions,
        get_available_providers,
    )


def __getattr__(name):
    if name in _ONNXRUNTIME_NAMES:
        return getattr(importlib.import_module("tessera.onnxruntime"), name)
    if name in ("onnxruntime", "backend"):
        return importlib.import_module(f"tessera.{name}")
    raise AttributeError(f"module 'tessera' has no attribute '{name}'", name=name,
                         obj=sys.modules[__name__])


def __dir__():
    return sorted({*globals(), *_ONNXRUNTIME_NAMES, "onnxruntime", "backend"})


@functools.cache
def _default_backends() -> Backends:
    return Backends()


@calls.suggests_keywords
def load(
    model: str | os.PathLike | bytes | bytearray | memoryview | BinaryIO,
    *,
    strict: bool = False,
    keep_all_values: bool = False,
    backends: Backends | None = None,
    log: Callable[[str], object] | None = None,
    threads: int = 0,
    copies_weights: bool = False,
    strict_stamps: bool = False,
    free_inputs: Collection[str] = (),
) -> Model:
    """Loads an ONNX file or a bundle (Model.save_bundle()) from its path; from its bytes, such as
    SerializeToString() returns, or another object with the buffer protocol; or from a file that is
    open for reading bytes. If bytes name files of external data, these must be in the working
    folder; those of an open file that has a name, in its folder.

    strict: a declared shape of an inner value that contradicts the inferred one is an error, not a
        warning.
    keep_all_values: every value of the file can be fetched; this costs speed and memory.
    backends: the backends that the model may run on; None means the set to which load_backend()
        adds.
    log: receives each distinct warning once, on any thread; None means the logger "tessera" of
        Python's logging. Exceptions that it raises are raised again by load() and bind(). Other
        information always goes to that logger. Level INFO: before the first bind() that measures,
        how long that takes, where the plan is kept and how to switch it off. Level DEBUG: what
        load() and bind() did, what caches knew, and what was measured.
    threads: number of threads for loading (to compute constants); 0 means all cores.
    copies_weights: weights from external files are copied into memory, so these files may change.
        Otherwise the files are mapped: writing to them or truncating them changes results or ends
        the process.
    strict_stamps: the index of the model (the loaded and rewritten graph) is kept for later
        processes, and used, only if the system granted a read lease on every file of the model
        while it was read; only the owner of a file gets one. Otherwise the index is not kept if a
        writer is noticed.
    free_inputs: inputs that are fed in each run although the file has a value for them; otherwise
        this value is a constant of the model.

    A model from a path can be pickled, and so be passed to other processes: they load the file.
    Ctrl-C is answered at once, here and in bind(); what was begun may go on in the background for a
    moment.

    Raises InvalidArgument (cannot be read), InvalidModel, Unsupported (saying all operators, types
    and versions that the model needs and this build lacks; inspect() lists them), OutOfMemory, or
    Corrupt for a damaged bundle.

        model = tessera.load("squeezenet.onnx")
        print(model.inputs)
    """
    path, content, name, folder = read_source(model)
    options = {
        "strict": strict,
        "keep_all_values": keep_all_values,
        "threads": threads,
        "copies_weights": copies_weights,
        "strict_stamps": strict_stamps,
        "free_inputs": set(free_inputs),
    }
    logger = logging.getLogger("tessera")
    arguments = {
        "backends": _default_backends() if backends is None else backends,
        "log": logger.warning if log is None else log,
        "information_log": logger.info,
    }
    if path is not None:
        origin = (os.path.abspath(path), {**options, "backends": backends, "log": log})
        loaded = _load(path, **options, **arguments, origin=origin)
    else:
        try:
            loaded = _load_bytes(content, name=name, folder=folder, **options, **arguments,
                                 origin=None)
        except InvalidModel as error:
            if looks_like_a_path(model):
                raise InvalidModel(
                    error.where, f"{error.message}; bytes are the content of a model, and "
                    "os.fsdecode() makes a path of the name of a file") from None
            raise
    tell_loaded(loaded)
    return loaded


@calls.suggests_keywords
def inspect(
    model: str | os.PathLike | bytes | bytearray | memoryview | BinaryIO,
    *,
    strict: bool = False,
    backends: Backends | None = None,
    log: Callable[[str], object] | None = None,
) -> ModelInspection:
    """Describes a model, also if this build lacks something that the model needs: then `missing` of
    the result lists all that is missing, and `model` is what the file declares. Otherwise `model`
    is that of load(model).describe(). The arguments are those of load().

    Raises as load() does, but not Unsupported for missing parts.

        for part in tessera.inspect("model.onnx").missing:
            print(part.reason, part.count, part.places)
    """
    path, content, name, folder = read_source(model, "inspect")
    arguments = {
        "strict": strict,
        "backends": _default_backends() if backends is None else backends,
        "log": logging.getLogger("tessera").warning if log is None else log,
    }
    if path is not None:
        return _inspect(path, **arguments)
    return _inspect_bytes(content, name=name, folder=folder, **arguments)


@calls.suggests_keywords
def load_backend(path: str | os.PathLike) -> None:
    """Opens a plug-in for all models that are loaded later without the argument `backends`.

    Raises Unsupported with the reason if it cannot be used.

        tessera.load_backend("libtessera_example.so")
    """
    _default_backends().load_backend(path)


@calls.suggests_keywords
def backends() -> list[BackendDescription]:
    """Opens all default backends to find out whether they can be used, and describes them.

        for backend in tessera.backends():
            print(backend.name, backend.version or backend.reason)
    """
    return _default_backends().describe()


@calls.suggests_keywords
def to_device(array: "numpy.typing.ArrayLike | DeviceArray", device: str) -> DeviceArray:
    """Copies an array to memory of a device of the default backends.

    Raises InvalidArgument if there is no such device, or if it has no memory of its own.

        executor = model.bind(backends=["opencl"], layouts={"x": "row_major@opencl"})
        y, = executor.run(tessera.to_device(numpy.zeros((1, 8), numpy.float32), "opencl"))
    """
    return _default_backends().to_device(array, device)


@calls.suggests_keywords
def new_array(shape: Sequence[int], dtype: "numpy.typing.DTypeLike", device: str) -> DeviceArray:
    """Allocates an array in memory of a device of the default backends; its elements are undefined.

    Raises as to_device() does.

        executor.bind_output("y", tessera.new_array((1, 8), numpy.float32, "opencl"))
    """
    return _default_backends().new_array(shape, dtype, device)


@calls.suggests_keywords
def from_dlpack(array: object) -> DeviceArray:
    """An array of another library in memory of a device of the default backends, without a copy.

    Raises InvalidArgument if no backend has the device, and for arrays that are not dense and
    row-major.

        x = tessera.from_dlpack(array)
    """
    return _default_backends().from_dlpack(array)
