"""Text output: on terminals of three widths no line is longer than the terminal, in a pipe no name
is shortened, and JSON is always the same."""

import json
import re
import subprocess

import numpy as np
import pytest
from load_tool import load_tool
from onnx import TensorProto
from programs import run_program
from small_models import node, normal, save_model, tensor_type
from terminal import run_on_terminal

# Longer than the maximum width for which text is laid out.
LONG = "a_name_that_is_too_long_for_any_terminal/" + "/".join(f"scope_{at}" for at in range(20))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tessera_binary):
    """A model with long names, its costs, its cache, and a memory planning problem."""
    folder = tmp_path_factory.mktemp("width")
    random = np.random.default_rng(0)
    nodes = [node("Conv", "x w1", "c1", f"{LONG}/conv", pads=[1] * 4),
             node("Relu", "c1", [LONG], f"{LONG}/relu"),
             node("Conv", [LONG, "w2"], "c2", "head", pads=[1] * 4),
             node("Concat", ["c2", LONG], "j", "join", axis=1),
             node("ArgMax", "j", "y", "top", axis=1)]
    weights = {"w1": normal(random, 16, 3, 3, 3), "w2": normal(random, 16, 16, 3, 3)}
    for file, name in (("model.onnx", f"{LONG}/conv"), ("other.onnx", f"{LONG}/other")):
        nodes[0].name = name
        save_model(folder / file, nodes, {"x": [1, 3, 16, 16]},
                   {"y": tensor_type(TensorProto.INT64, None)}, weights, name="wide")
    (folder / "buffers.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,128\n")
    np.save(folder / "wrong.npy", np.zeros((1, 1, 16, 16), np.int64))
    run_program(tessera_binary, "bench", "model.onnx", "--optimize", "--threads", "1", "--seconds",
                "0.01", "--cache-dir", "caches", cwd=folder)
    run_program(tessera_binary, "tune", "model.onnx", "--threads", "1", "--output", "costs.json",
                cwd=folder)
    return folder


# Name -> the arguments, and the exit codes that are allowed.
COMMANDS = {
    "run": ("run model.onnx --random 1", {0}),
    "run with a mismatch": ("run model.onnx --random 1 --expect y=wrong.npy", {1}),
    "bench": ("bench model.onnx --seconds 0.01 --costs costs.json", {0}),
    # One stream, because the tests give all commands one thread.
    "bench streams": ("bench model.onnx --seconds 0.01 --streams 1 --no-optimize", {0}),
    "bench requests": ("bench model.onnx --shape x=1..1x3x16x16 --requests 3 --no-optimize", {0}),
    "explain": ("explain model.onnx --runs 1", {0}),
    "explain reference": ("explain model.onnx --runs 1 --backends reference", {0}),
    "explain costs": ("explain model.onnx --runs 1 --costs costs.json --candidates", {0}),
    "explain optimized": ("explain model.onnx --runs 1 --optimize --cache-dir none", {0}),
    "explain node": (f"explain model.onnx --runs 1 --costs costs.json --node {LONG}/relu", {0}),
    "diff": ("diff model.onnx --runs 1 --b=--no-fuse", {0, 1}),
    "diff costs": ("diff model.onnx other.onnx --runs 1 --a=--no-fuse --b=--costs=costs.json", {1}),
    "tune": ("tune model.onnx --table --all", {0}),
    "tune dry run": ("tune model.onnx --dry-run", {0}),
    "bundle": ("bundle model.onnx -o model.bundle", {0}),
    "inspect": ("inspect model.onnx --passes --weights", {0}),
    "inspect memory": ("inspect model.onnx --memory", {0}),
    "plan-memory": ("plan-memory buffers.csv --capacity 150", {1}),
    "version": ("--version", {0}),
    "backends": ("backends", {0}),
    # Tests switch measuring off, which is a finding.
    "doctor": ("doctor --cache-dir caches", {1}),
    "cache ls": ("cache ls --cache-dir caches", {0}),
    "cache stats": ("cache stats --cache-dir caches", {0}),
    "cache fingerprint": ("cache fingerprint model.onnx", {0}),
    "cache why-miss": ("cache why-miss model.onnx", {1}),
    "cache verify": ("cache verify --cache-dir caches", {0}),
    "verify model": ("verify model.onnx", {0, 1}),
}


def arguments_of(name):
    command = COMMANDS[name][0].split()
    binds = "model.onnx" in command and name != "inspect"
    return [*command, *(["--threads", "1"] if binds else [])]


def on_terminal(command, columns, folder):
    """The exit code and the text on stdout, which is a terminal of `columns` columns."""
    done = run_on_terminal(command, "stdout", columns, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL, cwd=folder)
    return done.returncode, done.stdout.decode().replace("\r\n", "\n")


def in_pipe(command, folder):
    done = run_program(*command, code=None, cwd=folder)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_longer_than_the_terminal(tessera_binary, folder, name):
    command = [tessera_binary, *arguments_of(name)]
    for columns in (60, 100, 160):
        code, text = on_terminal(command, columns, folder)
        assert code in COMMANDS[name][1] and text, text
        too_long = [line for line in text.splitlines() if len(line) > columns]
        assert not too_long, f"at {columns} columns"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_name_is_cut_in_a_pipe(tessera_binary, folder, name):
    code, text = in_pipe([tessera_binary, *arguments_of(name)], folder)
    assert code in COMMANDS[name][1] and "…" not in text
    # Sentences are wrapped between words, so only long words make long lines.
    if name in ("explain", "explain costs", "inspect", "tune"):
        assert LONG in text


def test_a_wide_terminal_shows_more_than_a_narrow_one(tessera_binary, folder):
    # Without --passes, because that prints times.
    command = [tessera_binary, "inspect", "model.onnx", "--weights"]
    texts = {columns: on_terminal(command, columns, folder)[1] for columns in (20, 60, 160, 300)}
    assert texts[20] == texts[60], "narrower ones count as 60"
    assert texts[300] == texts[160], "wider ones as 160"
    assert max(map(len, texts[60].splitlines())) <= 60 < max(map(len, texts[160].splitlines()))
    # A terminal that does not know its width, or is closed, counts as 100 columns wide.
    assert max(map(len, on_terminal(command, 0, folder)[1].splitlines())) in range(61, 101)


@pytest.mark.parametrize("name", ("inspect", "backends", "plan-memory", "cache ls"))
def test_json_does_not_depend_on_the_width(tessera_binary, folder, name):
    command = [tessera_binary, *arguments_of(name), "--json"]
    texts = {on_terminal(command, columns, folder)[1] for columns in (60, 160)}
    texts.add(in_pipe(command, folder)[1])
    if name == "inspect":  # prints the times of passes
        texts = {json.dumps(without_times(json.loads(text))) for text in texts}
    if name == "plan-memory":
        texts = {json.dumps({key: value for key, value in json.loads(text).items()
                             if not isinstance(value, float)}) for text in texts}
    assert len(texts) == 1


def without_times(report):
    for entry in report["passes"]:
        for key in [key for key, value in entry.items() if isinstance(value, float)]:
            del entry[key]
    return report


def verbs_of(tessera_binary):
    """The verbs that `tessera --help` lists."""
    text = in_pipe([tessera_binary, "--help"], None)[1]
    return re.findall(r"^  ([a-z-]+) ", text.partition("Commands:\n")[2].partition("\n\n")[0], re.M)


def test_help_fits_too(tessera_binary, folder):
    for command in ("", *verbs_of(tessera_binary), "cache why-miss"):
        for columns in (60, 100, 160):
            code, text = on_terminal([tessera_binary, *command.split(), "--help"], columns, folder)
            assert code == 0 and "--help" in text
            # Example commands stay on one line, so that users can copy them.
            sentences = [line for line in text.splitlines() if not line.startswith("  tessera ")]
            assert max(map(len, sentences)) <= columns, command


def test_no_verb_is_forgotten(tessera_binary):
    """Each verb is tested here, and tools/transcript shows it to readers."""
    verbs = set(verbs_of(tessera_binary))
    assert len(verbs) > 5
    # A script has no width.
    assert verbs - {"completion"} <= {arguments.split()[0] for arguments, _ in COMMANDS.values()}
    assert verbs <= {command.split()[0] for command in load_tool("transcript").COMMANDS}
