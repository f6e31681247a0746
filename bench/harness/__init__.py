"""What the programs of bench/ share: arguments, processes, turns, ratios, reports, runtimes.

Importing this package restarts a program of bench/ in .venv, which has NumPy, onnx and the other
runtimes, if there is one."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
PYTHON = ROOT / ".venv" / "bin" / "python"


def enter_environment():
    program = pathlib.Path(getattr(sys.modules["__main__"], "__file__", None) or "-").resolve()
    is_inside = pathlib.Path(sys.prefix).resolve() == PYTHON.parent.parent.resolve()
    if program.parent == BENCH and PYTHON.exists() and not is_inside:
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


enter_environment()
