"""onnxruntime's interface to Tessera. A program that was written for onnxruntime runs on Tessera
with one line changed:

    import tessera.onnxruntime as ort

docs/onnxruntime.md says which options and providers mean what here.
"""

from tessera import __version__ as _version

from . import capi
from .inference_session import InferenceSession
from .io_binding import IOBinding
from .node_arg import ModelMetadata, NodeArg
from .ort_value import OrtDevice, OrtValue
from .providers import get_all_providers, get_available_providers, get_device
from .session_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "capi",
    "copy_tensors",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

__version__ = _version


def get_version_string():
    """The version of Tessera."""
    return __version__


def get_build_info():
    """The name and version of Tessera, as a text for people."""
    return f"Tessera {__version__}"


def has_collective_ops():
    """False: a model runs in one process."""
    return False


def copy_tensors(source_ortvalues, destination_ortvalues, stream=None):
    """Copies the elements of each OrtValue of the first list into that of the second."""
    for source, destination in zip(source_ortvalues, destination_ortvalues, strict=True):
        destination.update_inplace(source.numpy())


def disable_telemetry_events():
    """Does nothing: Tessera sends nothing to anybody."""


def enable_telemetry_events():
    """Does nothing: Tessera sends nothing to anybody."""


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Does nothing: plug-ins find their libraries themselves."""
