"""The program's promises: exit codes, its output and where it is printed, and its files."""

import json
import os

import numpy as np
import pytest
from programs import outcome_of
from small_models import node, save_model

PICTURE = np.arange(6, dtype=np.float32).reshape(2, 3)
OUTPUT = "out/y=1"


@pytest.fixture
def model(tmp_path):
    """Doubles its input; no node reads its second input."""
    path = save_model(tmp_path / "model.onnx",
                      [node("Add", "picture picture", "h", "double"),
                       node("Identity", "h", [OUTPUT])], {"picture": ["batch", 3], "unused": ["q"]},
                      {OUTPUT: ["batch", 3]})
    np.save(tmp_path / "picture.npy", PICTURE)
    np.save(tmp_path / "right.npy", 2 * PICTURE)
    return path


@pytest.fixture
def tessera(tessera_binary, tmp_path):
    """Calls the program in the test's folder; returns its exit code, stdout and stderr."""
    return lambda *arguments, **options: outcome_of(
        tessera_binary, *arguments, cwd=tmp_path, **options)


GIVEN = ("--input", "#0=picture.npy")


def test_right_outputs_match_and_wrong_ones_are_explained(tessera, model, tmp_path):
    _, text, _ = tessera("run", model, *GIVEN, "--expect", f"{OUTPUT}=right.npy")
    assert "is as expected" in text
    wrong = 2 * PICTURE
    wrong[1, 1] = 7
    np.save(tmp_path / "wrong.npy", wrong)
    arguments = ("run", model, *GIVEN, "--expect", "#0=wrong.npy")
    _, text, _ = tessera(*arguments, code=1)
    assert "worst element (1, 1): expected 7, found 8" in text and "1 of 6 elements" in text
    code, text, _ = tessera(*arguments, "--json", code=None)
    report = json.loads(text)
    assert code == 1 and report["is_match"] is False
    assert report["mismatches"][0]["worst_indices"] == [1, 1]
    tessera(*arguments, "--atol", "1.5")


def test_writes_what_it_is_asked_to(tessera, model, tmp_path):
    folders = ("--output", "new/out", "--save-inputs", "in", "--dump-values", "values")
    _, text, _ = tessera("run", model, *GIVEN, *folders, "--trace", "trace.json", "--json")
    assert json.loads(text)["outputs"][0]["file"] == "output_0.npy"
    [entry] = json.loads((tmp_path / "new/out/outputs.json").read_text())
    assert entry == {
        "name": OUTPUT, "type": "float32", "shape": [2, 3], "file": "output_0.npy"
    }  # fmt: skip
    np.testing.assert_array_equal(np.load(tmp_path / "new/out/output_0.npy"), 2 * PICTURE)
    values = json.loads((tmp_path / "values/values.json").read_text())
    assert [(value["name"], value["node"]) for value in values][0] == ("h", "double")
    assert {value["name"] for value in values} == {"h", OUTPUT}
    np.testing.assert_array_equal(np.load(tmp_path / "in/input_0.npy"), PICTURE)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    stages = [event["name"] for event in events if event["cat"] == "stage"]
    assert stages[0] == "load" and stages[-1] == "run" and "bind" in stages
    assert "double" in [event["name"] for event in events if event["cat"] == "Add"]
    assert not [path for path in tmp_path.rglob("*staged*")]


def test_random_inputs_depend_on_the_seed_alone(tessera, model, tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        _, _, errors = tessera("run", model, "--random", seed, "--shape", "picture=4x3",
                               "--save-inputs", folder)
    a, b, c = (np.load(tmp_path / folder / "input_0.npy") for folder in "abc")
    assert a.shape == (4, 3)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_a_failed_write_leaves_nothing(tessera, model, tmp_path):
    before = set(tmp_path.rglob("*"))
    arguments = ("run", model, *GIVEN, "--output", "out", "--dump-values", "values")
    _, _, errors = tessera(*arguments, "--trace", "/dev/full", code=3)
    assert errors.startswith("tessera: DeviceFailed: '/dev/full'")
    (tmp_path / "file").touch()
    _, _, errors = tessera(*arguments, "--save-inputs", "file/in", code=2)
    assert "--save-inputs 'file/in': 'file' is a file, not a folder" in errors
    assert set(tmp_path.rglob("*")) == before | {tmp_path / "file"}


def test_a_closed_stdout_is_no_crash(tessera, model):
    with open("/dev/full", "w") as full:
        tessera("inspect", model, stdout=full, code=3)
    reader, writer = os.pipe()
    os.close(reader)
    code, _, errors = tessera("inspect", model, code=None, stdout=writer)
    os.close(writer)
    assert code == 3 and errors == ""
    tessera("inspect", model, stdout=None, preexec_fn=lambda: os.close(1), code=3)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frobnicate",),
        ("run",),
        ("run", "model.onnx", "--frobnicate"),
        ("run", "model.onnx", "--random", "-1"),
        ("run", "model.onnx", "--threads", "some"),
        ("run", "model.onnx", "--random", "1", "--shape", "picture=4xN"),
        ("run", "model.onnx", *GIVEN, "--input", "picture=picture.npy"),
        ("run", "model.onnx", *GIVEN, "--rtol", "nan"),
        ("run", "model.onnx", *GIVEN, "--expect", "#1=right.npy"),
        ("inspect", "absent.onnx"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_exit_code_2(tessera, model, arguments):
    _, text, errors = tessera(*arguments, code=2)
    assert text == "" and errors != "" and "bug" not in errors
    _, text, _ = tessera(*arguments, "--json", code=2)
    assert json.loads(text)["error"]["kind"] == "invalid_argument"


def test_inspect_cuts_no_names_in_a_pipe_and_marks_unread_inputs(tessera, model):
    _, text, _ = tessera("inspect", model, "--passes", "--weights", "--shape", "#0=2x3")
    assert "…" not in text
    assert "may be left out" in next(line for line in text.splitlines() if line.startswith("unused"))
    inputs = json.loads(tessera("inspect", model, "--json")[1])["inputs"]
    assert [(entry["shape"], entry["is_read"]) for entry in inputs] == [
        (["batch", 3], True),
        (["q"], False),
    ]


def test_version_and_backends(tessera):
    first, backends = tessera("--version")[1].splitlines()[:2]
    assert first.startswith("tessera ")
    assert backends.startswith("backends: ") and f"reference {first.split()[1]}" in backends
    assert "reference" in tessera("backends")[1]
    listed = json.loads(tessera("backends", "--json")[1])["backends"]
    assert "reference" in [entry["backend"] for entry in listed]
