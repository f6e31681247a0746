"""Completion and the manual page have all commands, options, and their values."""

import re
import shutil

import pytest
from programs import run_program

CASES = [
    # The words, of which the last is to be completed, and all or some of the offered words.
    (["ru"], {"run"}),
    (["cache", "why"], {"why-miss"}),
    (["run", "--precision", ""], {"float32", "bfloat16"}),
    (["run", "model.onnx", "--nan", "f"], {"fast"}),
    (["run", "--nan", "=", "ex"], {"exact"}),
    (["run", "--nan", "="], {"exact", "fast"}),
    (["run", "--no-op"], {"--no-optimize"}),
    (["bench", "--secon"], {"--seconds"}),
    # A value that is called like a command is none.
    (["run", "--output", "bench", "--precision", "b"], {"bfloat16"}),
    (["--vers"], {"--version"}),
    (["completion", "--js"], {"--json"}),
    # Files are left to the shell.
    (["run", "--output", ""], set()),
    (["run", "mod"], set()),
    (["plan-memory", "--nan", ""], None),
]


@pytest.fixture(scope="module")
def print_text(tessera_binary):
    return lambda kind: run_program(tessera_binary, "completion", kind).stdout


def completions(script, words):
    """The completions that bash offers for the last of `words`, without file names."""
    program = (f"{script}\nCOMP_WORDS=(tessera \"$@\"); COMP_CWORD=$#\n"
               "compopt() { :; }\n_tessera\nprintf '%s\\n' \"${COMPREPLY[@]}\"")
    done = run_program("bash", "-uc", program, "bash", *words)
    assert done.stderr == ""
    return {line for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("words, expected", CASES,
                         ids=[" ".join(words) or "-" for words, _ in CASES])
def test_bash_completes(print_text, words, expected):
    offered = completions(print_text("bash"), words)
    if expected is None:
        # No option of this command: its own words are offered.
        assert "--capacity" in offered
    else:
        assert offered == expected


def options_of_help(tessera_binary, *command):
    text = run_program(tessera_binary, *command, "--help").stdout
    return set(re.findall(r"^  (?:-\w, ?)?(--[a-z-]+)", text, re.M))


@pytest.mark.parametrize("command", [["run"], ["tune"], ["cache", "prune"], ["verify"]])
def test_nothing_of_help_is_forgotten(tessera_binary, print_text, command):
    options = options_of_help(tessera_binary, *command)
    assert len(options) > 1
    assert options <= completions(print_text("bash"), [*command, "-"])
    zsh, page = print_text("zsh"), print_text("man").replace("\\-", "-")
    function = zsh.partition("_".join(["_tessera", *command]) + "() {")[2].partition("\n}")[0]
    section = page.partition(f'.SS "{" ".join(command)}"')[2].partition(".SS")[0]
    for option in options:
        assert f"{option}[" in function and f"{option}\\fR" in section


def test_the_shells_accept_the_scripts(print_text, tmp_path):
    for shell in ("bash", "zsh"):
        if shutil.which(shell):
            script = tmp_path / shell
            script.write_text(print_text(shell))
            done = run_program(shell, "-n", script)
            assert done.stderr == ""


def test_the_manual_page_has_no_fault(print_text):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: tools/setup check")
    done = run_program("groff", "-man", "-ww", "-Tutf8", "-rLL=100n", input=print_text("man"))
    assert done.stderr == ""
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "NAME" in plain and "--tune-budget SECONDS" in plain
    # Backslashes, hyphens and lines that begin with dots are printed as they are.
    assert "\\-" not in plain and "3  the machine failed" in plain


def test_an_unknown_kind_is_refused(tessera_binary):
    done = run_program(tessera_binary, "completion", "bach", code=2)
    assert "did you mean 'bash'" in done.stderr
