"""Runs programs to their end, and checks how they end."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap


def plain_environment(**variables):
    """The environment without Tessera's variables except TESSERA_OPTIMIZE, and with `variables`."""
    return {name: text for name, text in os.environ.items()
            if name == "TESSERA_OPTIMIZE" or not name.startswith("TESSERA_")} | variables


def run_program(*command, code=0, variables=None, **options):
    """Runs a command, whose words may be paths and numbers, and returns what subprocess.run()
    returns, with text. Fails the test if the exit code is not `code`; None allows each. `variables`
    are added to the environment; `options` are those of subprocess.run()."""
    pipe = subprocess.PIPE
    options = {"text": True, "timeout": 300, "stdout": pipe, "stderr": pipe} | options
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    if variables:
        options["env"] = {**options.get("env", os.environ),
                          **{name: str(text) for name, text in variables.items()}}
    words = [word if isinstance(word, bytes) else str(word) for word in command]
    done = subprocess.run(words, check=False, **options)
    assert code in (None, done.returncode), (
        f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def json_of(*command, **options):
    """What a program prints, which is JSON."""
    return json.loads(run_program(*command, **options).stdout)


def outcome_of(*command, **options):
    """Exit code, stdout and stderr of a program."""
    done = run_program(*command, **options)
    return done.returncode, done.stdout, done.stderr


def module_folder(tessera):
    """What PYTHONPATH has to contain so that a program can import the module `tessera`."""
    return str(pathlib.Path(tessera.__file__).parents[1])


def run_python(tessera, program, *arguments, variables=None, **options):
    """Runs a Python program that can import the module `tessera`: a text, or a file by its path."""
    words = [program] if isinstance(program, pathlib.Path) else ["-c", textwrap.dedent(program)]
    return run_program(sys.executable, *words, *arguments, **options,
                       variables={"PYTHONPATH": module_folder(tessera), **(variables or {})})
