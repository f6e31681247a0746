"""The exceptions that onnxruntime's programs catch. Each is also an error of Tessera, with its
attributes `where` and `message`."""

from tessera import errors

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidBinding",
    "InvalidGraph",
    "InvalidInput",
    "InvalidProtobuf",
    "InvalidType",
    "ModelLoaded",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
    "compatible",
]


class Fail(errors.Error):
    """A run was cancelled, or failed for a reason that has no exception of its own."""


class InvalidArgument(errors.InvalidArgument):
    """An input, an output's name or an option is wrong."""


class InvalidBinding(InvalidArgument, RuntimeError):
    """A bound input or output is wrong; onnxruntime raises RuntimeError."""


class InvalidType(InvalidArgument, TypeError):
    """An argument has a wrong Python type; onnxruntime raises TypeError."""


class InvalidInput(InvalidArgument, RuntimeError):
    """No array can be made of the value of an input; onnxruntime raises RuntimeError."""


class NoSuchFile(errors.InvalidArgument):
    """The model's file does not exist."""


class InvalidProtobuf(errors.InvalidModel):
    """The bytes are no ONNX model."""


class InvalidGraph(errors.InvalidModel):
    """The model contradicts itself."""


class NotImplemented(errors.Unsupported):
    """Valid, but this build does not support it."""


class RuntimeException(errors.Error, RuntimeError):
    """A device failed, memory is missing, or a file cannot be used."""


class NoModel(errors.Error):
    """Only for programs that catch it; never raised."""


class ModelLoaded(errors.Error):
    """Only for programs that catch it; never raised."""


class EngineError(errors.Error):
    """Only for programs that catch it; never raised."""


class EPFail(errors.Error):
    """Only for programs that catch it; never raised."""


class RunCancelled(Fail, errors.Cancelled):
    """RunOptions.terminate was set."""


class RunFailed(Fail, errors.InvalidModel):
    """The model cannot be computed for inputs of these shapes."""


class NodeFailed(Fail, InvalidArgument):
    """A node cannot be computed for the values that reach it; onnxruntime raises Fail for most ops
    and InvalidArgument for others (an index of Gather)."""


class OutOfMemory(RuntimeException, errors.OutOfMemory):
    """More memory is needed than available."""


class DeviceFailed(RuntimeException, errors.DeviceFailed):
    """A device failed, or a file has changed."""


class Corrupt(RuntimeException, errors.Corrupt):
    """A file that Tessera wrote is damaged."""


class Internal(RuntimeException, errors.Internal):
    """A bug in Tessera: please report it."""


_COMPATIBLE = {
    errors.InvalidArgument: InvalidArgument,
    errors.Unsupported: NotImplemented,
    errors.InvalidModel: InvalidGraph,
    errors.OutOfMemory: OutOfMemory,
    errors.DeviceFailed: DeviceFailed,
    errors.Corrupt: Corrupt,
    errors.Cancelled: RunCancelled,
    errors.Internal: Internal,
}


def compatible(error, **classes):
    """`error` as the exception that onnxruntime raises in this case.

    classes: for kinds of Tessera's errors, by name, another class than the usual one.
    """
    if error.kind in classes:
        return classes[error.kind](error.where, error.message)
    if type(error) is errors.InvalidArgument and error.where.startswith("node "):
        return NodeFailed(error.where, error.message)
    for kind, compatible_class in _COMPATIBLE.items():
        if type(error) is kind:
            return compatible_class(error.where, error.message)
    return error
