"""Each invalid model or request causes one clear message and the right exit code, and nothing else.
"""

import re

import numpy as np
import pytest

from error_cases import CASES, nested_ifs
from programs import json_of, run_program


def first_message(stderr):
    """The message without the notice that a build without libraries prints first."""
    notice = "tessera: no acceleration library can be used"
    lines = [line for line in stderr.splitlines() if not line.startswith(notice)]
    return lines[0] if lines else ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_says_what_is_wrong(tessera_binary, tmp_path, case):
    arguments = [str(argument) for argument in case.arguments(tmp_path)]
    output = tmp_path / "output"
    if arguments[0] == "run":
        arguments += ["--output", str(output)]
    result = run_program(tessera_binary, *arguments, code=case.exit_code)
    message = first_message(result.stderr)
    assert message.startswith(f"tessera: {case.kind}: "), result.stderr
    for part in case.says:
        assert part in message, f"{part!r} is not in: {message}"
    assert "bug" not in message
    assert not output.exists() or not list(output.iterdir()), "no partial output"


def test_graphs_nested_a_hundred_deep_run(tessera_binary, tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(nested_ifs(100))
    np.save(tmp_path / "c.npy", np.array(True))
    run_program(tessera_binary, "run", model, "--input", f"c={tmp_path / 'c.npy'}", "--output",
                tmp_path / "output")
    assert np.load(tmp_path / "output" / "output_0.npy")


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name)
def test_says_it_in_json_too(tessera_binary, tmp_path, case):
    arguments = [str(argument) for argument in case.arguments(tmp_path)]
    found = json_of(tessera_binary, *arguments, "--json", code=case.exit_code)
    assert found["error"]["kind"] == re.sub(r"\B([A-Z])", r"_\1", case.kind).lower()
