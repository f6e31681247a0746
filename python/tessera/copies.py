"""Copying and pickling of the objects of the compiled part.

A Model is pickled as the absolute path of its file and the arguments of load(), so the process that
unpickles it loads the file itself. Contents of caches that load_cache() added are not part of that.
Copies of a Model are the Model, because several users may share it. An Executor and an array in
memory of a device belong to their process.
"""

import importlib

from . import _core


def load_again(path, options):
    """Called by pickle."""
    return importlib.import_module("tessera").load(path, **options)


def _reduce_model(self):
    if self._origin is None:
        raise TypeError(
            f"{self!r} cannot be pickled, because it was loaded from memory and not from a file: "
            "pass the bytes to the other process and call tessera.load() there, or save them as a "
            "file")
    return load_again, self._origin


def _refuses(reason):
    def reduce(self):
        raise TypeError(f"{self!r} cannot be copied or pickled: {reason}")

    return reduce


def _reduce_sparse(self):
    # Copies the elements, also for copy.copy(): the arrays share no memory with `self`.
    if self.format == "csr":
        return _core.csr_array, (self.indptr, self.indices, self.data, self.shape)
    return _core.row_sparse_array, (self.indices, self.data, self.shape)


def install() -> None:
    """Adds the methods that the modules copy and pickle call."""
    _core.Model.__reduce__ = _reduce_model
    _core.Model.__copy__ = lambda self: self
    _core.Model.__deepcopy__ = lambda self, memo: self
    _core.SparseArray.__reduce__ = _reduce_sparse
    _core.Pin.__reduce__ = lambda self: (_core.Pin, (self.nodes, self.backend, self.algorithm))
    _core.Exclusion.__reduce__ = lambda self: (_core.Exclusion, (self.backend, self.op))
    for type_, reason in (
            (_core.Executor, "call Model.bind() for another one"),
            (_core.DeviceArray, "to_host() gives a copy that can be"),
            (_core.Backends, "make a set in the other process, with the same add_path()")):
        type_.__reduce__ = _refuses(reason)
