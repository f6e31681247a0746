"""The first bind of a process that measures for more than a moment prints a notice: time and gain,
where the plan is kept, and how to switch measuring off. All other binds print nothing."""

import subprocess

import numpy as np
import pytest
from small_models import node, save_model
from terminal import run_on_terminal

pytestmark = pytest.mark.alone

NOTICE = "the first bind of a model measures"
SIDE = 1024


@pytest.fixture
def long_model(tmp_path, needs_a_library):
    """One run takes some milliseconds; faster models are measured in a tenth of a second."""
    weight = np.random.default_rng(1).standard_normal((SIDE, SIDE)).astype(np.float32) / SIDE
    return save_model(tmp_path / "long.onnx",
                      [node("MatMul", "x w", "h"), node("Tanh", "h", "r"),
                       node("MatMul", "r w", "y")], {"x": [SIDE, SIDE]}, {"y": [SIDE, SIDE]},
                      {"w": weight})


LISTEN = """
import logging
heard = []
class Listener(logging.Handler):
    def emit(self, record):
        heard.append([record.levelname, record.getMessage()])
logging.getLogger("tessera").addHandler(Listener())
logging.getLogger("tessera").setLevel(logging.%s)
warned = []
"""
TELL = "\nprint(json.dumps([line for line in heard if 'measures' in line[1]]))\n"


def bind(path="sys.argv[1]", options="", load=""):
    return (f"tessera.load({path}{load}).bind(threads=1, tune_budget_seconds=2, cache_dir='kept'"
            f"{options})\n")


def test_python_hears_it_once_at_level_info(python, long_model, work):
    program = LISTEN % "INFO" + bind() + bind(options=", nan='fast'") + TELL
    heard, = python(program, long_model)
    level, text = heard
    assert level == "INFO" and NOTICE in text
    assert f"the plan is kept in '{work / 'kept'}'" in text
    assert "the fastest: about 2 s, gain unknown" in text
    assert "optimize=False, --no-optimize or TESSERA_OPTIMIZE=0" in text
    assert list((work / "kept").glob("*.cache"))
    # The plan is known now.
    assert python(program, long_model) == []


def test_a_log_for_warnings_does_not_hear_it(python, long_model):
    program = LISTEN % "INFO" + bind(load=", log=warned.append") + "assert warned == []" + TELL
    assert len(python(program, long_model)) == 1
    program = LISTEN % "WARNING" + bind(options=", optimize_for='start'") + TELL
    assert python(program, long_model) == [], "Python's default level"


@pytest.mark.parametrize("options, variables", [
    (", optimize=False", {}), ("", {"TESSERA_OPTIMIZE": "0"}), (", retune=True", {})])
def test_who_asked_for_it_or_switched_it_off_hears_nothing(python, long_model, options, variables):
    assert python(LISTEN % "INFO" + bind(options=options) + TELL, long_model, **variables) == []


def test_what_takes_a_moment_is_not_worth_a_word(python, model):
    program = LISTEN % "INFO" + """
executor = tessera.load(sys.argv[1]).bind({'x': (1, 16, 8, 8)}, threads=1)
assert executor.plan().tuning.measured > 0
""" + TELL
    assert python(program, model) == []


@pytest.fixture
def watch(tessera_binary, environment, work):
    """The text that `tessera` writes to stderr if that is a terminal."""

    def run(*arguments):
        done = run_on_terminal([tessera_binary, *map(str, arguments)], "stderr",
                               stdout=subprocess.DEVNULL, cwd=work, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr.decode()

    return run


def test_the_program_says_it_once_where_somebody_watches(call, watch, long_model, work):
    arguments = ("run", long_model, "--random", "1", "--threads", "1", "--tune-budget", "2")
    _, output, errors = call(*arguments, "--optimize", "--cache-dir", "other")
    assert NOTICE not in output + errors, "a pipe gets no progress either"
    assert NOTICE not in watch(*arguments), "one run is not worth measuring"
    text = watch(*arguments, "--optimize")
    assert text.count(NOTICE) == 1 and f"tessera: {NOTICE}" in text
    assert f"the plan is kept in '{work}'" in text
    assert NOTICE not in watch(*arguments, "--optimize"), "the plan is known"
    assert NOTICE not in watch("tune", *arguments[1:]), "whoever tunes knows"
