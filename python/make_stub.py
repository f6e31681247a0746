"""Writes the stub of tessera._core for editors and type checkers: make_stub.py FOLDER FILE, with
the folder that contains the package. nanobind's stub generator reads its own functions, so the
compiled part is imported without tessera/__init__.py, which replaces them."""

import pathlib
import re
import sys
import types

from nanobind.stubgen import StubGen


def main(folder: str, file: str) -> None:
    package = types.ModuleType("tessera")
    package.__path__ = [str(pathlib.Path(folder, "tessera"))]
    sys.modules["tessera"] = package
    from tessera import _core

    stub = StubGen(_core, quiet=True)
    stub.put(_core)
    text = stub.get()
    # mypy --strict asks for the arguments of generic types, which nanobind does not know.
    for given, complete in ((r"os\.PathLike\b(?!\[)", "os.PathLike[str]"),
                            (r"(: |-> )Callable\b(?!\[)", r"\1Callable[..., object]"),
                            (r"(: |-> )dict\b(?!\[)", r"\1dict[str, object]")):
        text = re.sub(given, complete, text)
    pathlib.Path(file).write_text(text)


main(*sys.argv[1:])
