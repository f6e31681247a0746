"""The errors that Tessera raises. Each is also a subclass of the built-in exception for this kind
of error, so that for example `except ValueError` works."""

__all__ = [
    "CacheMiss",
    "Cancelled",
    "Corrupt",
    "DeviceFailed",
    "Error",
    "Internal",
    "InvalidArgument",
    "InvalidModel",
    "OutOfMemory",
    "Unsupported",
]


class Error(Exception):
    """The base class of all errors. Only its subclasses are raised.

    where: the location in the model or request, as "node 'conv1' (Conv), input 'W'"; may be "".
    message: what was expected and what was found.
    kind: the name of the subclass.
    """

    kind = "Error"

    def __init__(self, where: str, message: str):
        super().__init__(where, message)
        self.where = where
        self.message = message

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        cls.kind = cls.__name__

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InvalidModel(Error, ValueError):
    """The model's file is invalid."""


class InvalidArgument(Error, ValueError):
    """The caller passed something invalid."""


class Unsupported(Error, NotImplementedError):
    """Valid, but this build does not support it."""


class OutOfMemory(Error, MemoryError):
    """More memory is needed than available."""


class DeviceFailed(Error, RuntimeError):
    """A device failed, or a file could not be written or has changed."""


class Corrupt(Error, RuntimeError):
    """A file that Tessera wrote is damaged."""


class Cancelled(Error, RuntimeError):
    """The caller cancelled a run, or its time limit expired."""


class CacheMiss(Error, LookupError):
    """Measuring is forbidden (frozen=True), and no cache has what is needed."""


class Internal(Error, RuntimeError):
    """A bug in Tessera: please report it."""
