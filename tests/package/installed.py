"""Runs programs as a user of an installed copy does, without the settings of the tests."""

import os
import pathlib
import shutil

import pytest
from programs import run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def environment(**more):
    """The environment of a user, in which nothing is measured."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("TESSERA_", "LD_", "PYTHON", "PKG_CONFIG", "CMAKE"))}
    return kept | {"TESSERA_OPTIMIZE": "0"} | {name: str(value) for name, value in more.items()}


def run(*command, returncode=0, cwd=None, **more):
    return run_program(*command, code=returncode, cwd=cwd, env=environment(**more))


def needed(program):
    """`program`, unless it is missing; then the test is skipped."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: tools/setup check")
    return program
