"""Tessera runs ONNX models with whatever libraries the machine has.

    import numpy as np
    import tessera

    model = tessera.load("squeezenet.onnx")
    executor = model.bind()
    probabilities, = executor.run({"data_0": np.zeros((1, 3, 224, 224), np.float32)})

A Model may be used from many threads at once. An Executor runs once at a time: a second thread's
run waits. For runs at the same time bind one executor a thread; they share the model's weights.
Loading, binding and running let other Python threads go on.
"""

import functools
import logging
import os
from collections.abc import Callable

from ._core import (
    Backends,
    Exclusion,
    Executor,
    Model,
    Pin,
    SparseArray,
    csr_array,
    row_sparse_array,
)
from ._core import load as _load
from ._core import version as _version
from .descriptions import (
    BackendDescription,
    BackendRefusal,
    CacheReport,
    CacheTypeReport,
    CandidateDescription,
    ContenderDescription,
    ConversionDescription,
    MeasuredTime,
    MemoryBlock,
    MemoryDescription,
    ModelDescription,
    NodeDescription,
    PassDescription,
    PlacementDescription,
    PlanDescription,
    PlanPort,
    PlanStep,
    ShapePlanDescription,
    ShapesDescription,
    StageRecord,
    StepRecord,
    TuneProgress,
    TuningDescription,
    ValueDescription,
)
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

__all__ = [
    "BackendDescription",
    "BackendRefusal",
    "Backends",
    "CacheMiss",
    "CacheReport",
    "CacheTypeReport",
    "Cancelled",
    "CandidateDescription",
    "ContenderDescription",
    "ConversionDescription",
    "Corrupt",
    "DeviceFailed",
    "Error",
    "Exclusion",
    "Executor",
    "Internal",
    "InvalidArgument",
    "InvalidModel",
    "MeasuredTime",
    "MemoryBlock",
    "MemoryDescription",
    "Model",
    "ModelDescription",
    "NodeDescription",
    "OutOfMemory",
    "PassDescription",
    "Pin",
    "PlacementDescription",
    "PlanDescription",
    "PlanPort",
    "PlanStep",
    "ShapePlanDescription",
    "ShapesDescription",
    "SparseArray",
    "StageRecord",
    "StepRecord",
    "TuneProgress",
    "TuningDescription",
    "Unsupported",
    "ValueDescription",
    "backends",
    "csr_array",
    "load",
    "load_backend",
    "row_sparse_array",
]

__version__ = _version()


@functools.cache
def _default_backends() -> Backends:
    return Backends()


def load(
    model: str | os.PathLike | bytes,
    *,
    strict: bool = False,
    keep_all_values: bool = False,
    backends: Backends | None = None,
    log: Callable[[str], object] | None = None,
    threads: int = 0,
    copies_weights: bool = False,
    strict_stamps: bool = False,
) -> Model:
    """Loads an ONNX file, or the bytes of one, such as SerializeToString() gives; files of external
    data that bytes name are looked for in the working folder.

    strict: a declared shape of an inner value that contradicts the inferred one is an error, not a
        warning.
    keep_all_values: every value of the file can be fetched; costs speed and memory.
    backends: the libraries that the model may run on; None means the set that load_backend() adds
        to.
    log: receives each distinct warning once, on any thread; None means the logger "tessera" of
        Python's logging. What it raises is raised by load() and bind(). What is no warning goes to
        that logger at level INFO in any case: before the first bind() that measures, how long that
        takes, where the plan is kept and how to switch it off.
    threads: for the work at load (constants that are computed); 0 means all cores.
    copies_weights: weights from files beside the model are copied into memory, so that these files
        may change; else they are mapped, and whoever writes to them or cuts them meanwhile changes
        results or ends the process.
    strict_stamps: what loading came to is kept for the next process, and taken from the last one,
        only where the system granted a read lease on every file of the model while it was read; only
        the owner of a file gets one. Else a writer who is seen keeps it from being kept.

    Raises InvalidArgument (cannot be read), InvalidModel, Unsupported (an op or version that this
    build does not know) or OutOfMemory.

        model = tessera.load("squeezenet.onnx")
        print(model.inputs)
    """
    return _load(
        model,
        strict=strict,
        keep_all_values=keep_all_values,
        backends=_default_backends() if backends is None else backends,
        log=logging.getLogger("tessera").warning if log is None else log,
        information_log=logging.getLogger("tessera").info,
        threads=threads,
        copies_weights=copies_weights,
        strict_stamps=strict_stamps,
    )


def load_backend(path: str | os.PathLike) -> None:
    """Opens a plug-in, for all models that are loaded afterwards without a set of their own.

    Raises Unsupported with the reason where it cannot be used.

        tessera.load_backend("libtessera_example.so")
    """
    _default_backends().load_backend(path)


def backends() -> list[BackendDescription]:
    """The libraries that models run on by default, opened to see whether they can be used.

        for backend in tessera.backends():
            print(backend.name, backend.version or backend.reason)
    """
    return _default_backends().describe()
