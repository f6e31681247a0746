"""The errors that Tessera raises. Each is also the built-in exception that a Python program expects
in its place, so that `except ValueError` works without knowing Tessera."""

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
    """The base of all. Only its subclasses are raised.

    where: a place that the user can find, as "node 'conv1' (Conv), input 'W'"; may be "".
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
    """The model's file says something that cannot be."""


class InvalidArgument(Error, ValueError):
    """The caller asked for something that cannot be."""


class Unsupported(Error, NotImplementedError):
    """Legal, but not something that this build can do."""


class OutOfMemory(Error, MemoryError):
    """More memory is needed than there is."""


class DeviceFailed(Error, RuntimeError):
    """A device failed, or a file that had to be written."""


class Corrupt(Error, RuntimeError):
    """Bytes that Tessera itself once wrote are damaged."""


class Cancelled(Error, RuntimeError):
    """The caller ended a run, or its time was up."""


class CacheMiss(Error, LookupError):
    """Nothing may be measured (frozen=True), and no cache has what is needed."""


class Internal(Error, RuntimeError):
    """A broken promise of Tessera's own: a bug, please report it."""
