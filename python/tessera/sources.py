"""The kinds of models that tessera.load() and inspect() accept: a path, bytes, or an open file."""

import os


def read_source(model, function="load"):
    """(path, None, "", "") of a file; or (None, buffer, name, folder) of bytes: `name` is for
    messages, and external data is in `folder`, "" means the working folder. Errors are those of
    `function`."""
    if isinstance(model, str) or hasattr(model, "__fspath__"):
        # Text with surrogates, and bytes of __fspath__(), are names that are not UTF-8.
        path = os.fsdecode(model)
        if "\0" in path:
            raise ValueError(f"{function}(): model: expected a path, found a null character in {path!r}")
        return path, None, "", ""
    if _is_buffer(model):
        # A buffer of another shape or with strides is read as one row of bytes.
        is_plain = isinstance(model, bytes | bytearray) or memoryview(model).c_contiguous
        return None, model if is_plain else memoryview(model).tobytes(), "the given bytes", ""
    if hasattr(model, "read"):
        return None, *_read_file(model, function)
    raise TypeError(f"{function}(): model: expected str | os.PathLike | bytes | a file opened with "
                    f"'rb', found {type(model).__name__}")


def _is_buffer(model) -> bool:
    try:
        memoryview(model)
    except TypeError:
        return False
    return True


def _read_file(file, function):
    content = file.read()
    if not _is_buffer(content):
        raise TypeError(f"{function}(): model: expected a file whose read() returns bytes, found "
                        f"{type(content).__name__} from {type(file).__name__}; open it with 'rb'")
    name = getattr(file, "name", None)
    # A file without a name has the number of its descriptor as its name.
    if not isinstance(name, str | bytes) or not name:
        return content, "the given file", ""
    name = os.fsdecode(name)
    return content, name, os.path.dirname(os.path.abspath(name))


def looks_like_a_path(model) -> bool:
    """Whether bytes that are no model were probably meant as the name of a file."""
    if not isinstance(model, bytes | bytearray) or not 0 < len(model) < 1024:
        return False
    return model.endswith(b".onnx") and b"\0" not in model
