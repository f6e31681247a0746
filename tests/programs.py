"""Runs programs to their end, and checks how they end."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

# The default limit of a program: far beyond what any takes, also with --long or under sanitizers.
MOST_SECONDS = 1500


def plain_environment(**variables):
    """The environment without Tessera's variables except TESSERA_OPTIMIZE, and with `variables`."""
    return {name: text for name, text in os.environ.items()
            if name == "TESSERA_OPTIMIZE" or not name.startswith("TESSERA_")} | variables


def prepared(command, variables, options):
    """The words of a command as text, and `options` with pipes, text and these variables."""
    pipe = subprocess.PIPE
    options = {"text": True, "stdout": pipe, "stderr": pipe} | options
    if variables:
        options["env"] = {**options.get("env", os.environ),
                          **{name: str(text) for name, text in variables.items()}}
    return [word if isinstance(word, bytes) else str(word) for word in command], options


def run_program(*command, code=0, variables=None, **options):
    """Runs a command, whose words may be paths and numbers, and returns what subprocess.run()
    returns, with text unless the input is bytes. Fails the test if the exit code is not `code`;
    None allows each. `variables` are added to the environment; `options` are those of
    subprocess.run()."""
    is_text = not isinstance(options.get("input"), bytes)
    words, options = prepared(command, variables, {"text": is_text, "timeout": MOST_SECONDS} | options)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(words, check=False, **options)
    assert code in (None, done.returncode), (
        f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def start_program(*command, variables=None, **options):
    """Starts a command as run_program() does, with the options of subprocess.Popen(), which it
    returns."""
    words, options = prepared(command, variables, options)
    return subprocess.Popen(words, **options)


def end_of(process, code=0, number=None, timeout=60):
    """Stdout and stderr of a process that ends with `code`, after a signal if `number` is one."""
    if number is not None:
        process.send_signal(number)
    output, errors = process.communicate(timeout=timeout)
    assert code in (None, process.returncode), (process.returncode, output, errors)
    return output, errors


def catches(process, number):
    """Whether the process has a handler for the signal, according to proc(5)."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return int(caught, 16) >> (number - 1) & 1 == 1


def wait_for(process, condition=lambda: True):
    """Waits until the process has a handler for SIGINT and `condition()` holds."""
    deadline = time.monotonic() + 60
    while not (catches(process, signal.SIGINT) and condition()):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)


def json_of(*command, **options):
    """What a program prints, which is JSON."""
    return json.loads(run_program(*command, **options).stdout)


def outcome_of(*command, **options):
    """Exit code, stdout and stderr of a program."""
    done = run_program(*command, **options)
    return done.returncode, done.stdout, done.stderr


def module_path(tessera):
    """The PYTHONPATH with which a program can import `tessera` and the modules beside this one."""
    folders = pathlib.Path(tessera.__file__).parents[1], pathlib.Path(__file__).parent
    return os.pathsep.join(map(str, folders))


def python_command(tessera, program, variables):
    """The first words of a command that runs a Python program (a text, or a file by its path), and
    `variables` with that PYTHONPATH."""
    words = [program] if isinstance(program, pathlib.Path) else ["-c", textwrap.dedent(program)]
    return [sys.executable, *words], {"PYTHONPATH": module_path(tessera), **(variables or {})}


def run_python(tessera, program, *arguments, variables=None, **options):
    """Runs a Python program with that PYTHONPATH: a text, or a file by its path."""
    command, variables = python_command(tessera, program, variables)
    return run_program(*command, *arguments, variables=variables, **options)


def start_python(tessera, program, *arguments, variables=None, **options):
    """Starts a Python program as run_python() does."""
    command, variables = python_command(tessera, program, variables)
    return start_program(*command, *arguments, variables=variables, **options)
