"""Runs the code blocks of "First steps" in README.md, like a user who has run only `make demo`: in
a folder from which build/ and .venv can be reached, without our settings."""

import json
import os
import re
import shlex

import pytest
from catalog import PLUGINS
from load_tool import ROOT
from programs import run_program

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
NETWORK = ROOT / "build" / "demo" / "squeezenet.onnx"


def first_steps():
    """(language, text) of each code block of the section."""
    text = (ROOT / "README.md").read_text()
    section = text.partition("## First steps\n")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def block_of(language):
    [text] = [text for found, text in first_steps() if found == language]
    return text


def shell_lines():
    return [line for line in block_of("").splitlines() if line.strip()]


@pytest.fixture(scope="module")
def place(bin_dir, why_unusable, tmp_path_factory):
    """The folder to run in, and the environment."""
    if bin_dir != ROOT / "build" / "release" / "bin":
        pytest.skip("README names build/release")
    reasons = {name: reason for name, reason in why_unusable.items() if reason}
    if reasons:
        pytest.skip(f"README is about a build that has all libraries: {reasons}")
    if not NETWORK.exists():
        run_program(ROOT / ".venv" / "bin" / "python", ROOT / "tools" / "demo_network.py",
                    NETWORK.parent)
    folder = tmp_path_factory.mktemp("newcomer")
    for name in ("build", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("TESSERA_", "PYTHON", "LC_"))}
    # bash prints a warning if the locale is not installed.
    return folder, {**environment, "LANG": "C.UTF-8", "XDG_CACHE_HOME": str(folder / "user")}


def run(place, command, **more):
    folder, environment = place
    done = run_program(*command, cwd=folder, env={**environment, **more})
    # No warning that could worry a new user.
    assert done.stderr == "", command
    return done.stdout


def test_every_block_is_run_by_a_test_below():
    assert sorted(language for language, _ in first_steps()) == ["", "cmake", "cpp", "python"]


@pytest.mark.alone
def test_the_shell_lines_work(place):
    lines = shell_lines()
    assert len(lines) >= 7
    outputs = {}
    for line in lines:
        command = shlex.split(line, comments=True)
        outputs[command[1]] = run(place, command)
    folder, _ = place
    assert list((folder / "results").glob("*.npy"))
    assert (folder / "plan.html").stat().st_size > 10_000
    assert "<svg" in (folder / "memory.svg").read_text()
    assert list(folder.glob("*.cache")), "the second command knows what the first measured"
    for name in ("bench", "explain", "tune"):
        assert set(PLUGINS) & set(re.findall(r"\w+", outputs[name])), outputs[name]


def test_the_python_lines_work(place):
    text = block_of("python") + "\nimport json\nprint(json.dumps([list(probabilities.shape), " \
        "sorted({step.backend for step in executor.plan().steps}), float(probabilities.sum())]))\n"
    output = run(place, [str(ROOT / ".venv" / "bin" / "python"), "-c", text],
                 PYTHONPATH="build/release/python")
    shape, backends, total = json.loads(output)
    assert shape == [1, 1000, 1, 1]
    assert set(PLUGINS) & set(backends)
    assert abs(total - 1) < 1e-3


def test_the_cpp_block_works(place):
    # Only this step runs in the project's own folder, because it reads CMakePresets.json.
    run(place, [str(ROOT / "tools" / "build"), "release", "readme_example"])
    assert run(place, ["build/release/bin/readme_example"]) == "1x1000x1x1\n"


def test_the_prose_names_what_the_tests_use():
    text = (ROOT / "README.md").read_text()
    assert "PYTHONPATH=build/release/python .venv/bin/python" in text
    assert "tools/build release readme_example" in text
    assert "build/release/bin/readme_example" in text
