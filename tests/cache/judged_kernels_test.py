"""Compiled kernels run once on guarded memory before anything uses them, in every mode. The plug-in
tests/backends/compiler makes kernels that are wrong in a way that the environment names."""

import json
import os
import subprocess

import pytest
from leaky_model import save_model

SLOPES = [0.1, 0.2, 0.3]
MODES = {"off": ["--no-optimize"], "now": ["--optimize"], "behind": ["--optimize", "behind"]}


@pytest.fixture
def call(tessera_binary, bin_dir, tmp_path):
    """Runs `tessera` with the plug-in, and returns what it prints."""
    library = bin_dir.parent / "tests" / "backends" / "compiler.so"
    assert library.exists(), f"{library} is not built: tools/build release compiler"

    def start(command, model, *options, fault="none", mode=""):
        names = {name: text for name, text in os.environ.items() if not name.startswith("TESSERA_")}
        names |= {"XDG_CACHE_HOME": str(tmp_path / "user"),
                  "TESSERA_CACHE_DIR": str(tmp_path / "project"),
                  "TESSERA_TEST_COMPILER_FAULT": fault, "TESSERA_TEST_COMPILER": mode,
                  "TESSERA_TEST_COMPILER_RUNS": str(tmp_path / "runs")}
        done = subprocess.run(
            [tessera_binary, command, model, "--json", "--threads", "1", "--backend-path", library,
             "--backends", "compiler,reference", *options],
            env=names, cwd=tmp_path, text=True, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return start


def runs(tmp_path):
    file = tmp_path / "runs"
    count = len(file.read_text()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return count


FAULTS = {
    "behind": "guard bytes: output 0: writes up to byte {end} of {bytes}",
    "before": "guard bytes: output 0: writes 4 bytes before its start",
    "input": "inputs unchanged: input 0",
    "wrong": "numbers: element {last}",
}


@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_kernel_is_refused_and_the_choice_repeated(call, tmp_path, fault, size):
    model = save_model(tmp_path / "model.onnx", SLOPES, size)
    text = call("explain", model, "--no-optimize", fault=fault)
    expected = FAULTS[fault].format(bytes=4 * size, end=4 * size + 4, last=size - 1)
    assert "its compiled kernel failed the check before its first use" in text
    assert expected in text
    nodes = [step for step in json.loads(text)["steps"] if step["kind"] == "kernel"]
    assert nodes and all(step["backend"] == "reference" for step in nodes)
    assert '"backend": "reference"' in call("explain", model, "--no-optimize", fault=fault)


@pytest.mark.parametrize("mode", ["", "saves"])
@pytest.mark.parametrize("optimize", MODES)
def test_no_mode_uses_a_faulty_kernel(call, tmp_path, optimize, mode):
    model = save_model(tmp_path / "model.onnx", SLOPES, 100)
    for _ in range(2):
        text = call("bench", model, "--seconds", "0.05", *MODES[optimize], fault="behind",
                    mode=mode)
        assert '"backend": "compiler"' not in text.split('"codegen"')[0]


def test_large_tensors_are_judged_too(call, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 1_000_003)
    text = call("explain", model, "--no-optimize", fault="large")
    assert "guard bytes: output 0: writes up to byte 4000016 of 4000012" in text


def test_a_kernel_is_judged_once_on_a_machine(call, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 50)
    # Binding with `optimize` keeps what it finds out.
    call("explain", model, "--optimize", "--pin", "leaky*=compiler")
    assert runs(tmp_path) > 0
    call("explain", model, "--optimize", "--pin", "leaky*=compiler")
    assert runs(tmp_path) == 0
    # Another mode, another model with the same kernels.
    call("explain", model, "--no-optimize", "--pin", "leaky*=compiler")
    other = save_model(tmp_path / "other.onnx", SLOPES, 50, ["Neg"])
    call("explain", other, "--no-optimize", "--pin", "leaky*=compiler")
    assert runs(tmp_path) == 0
    # Tensors of another size are another computation.
    call("explain", save_model(tmp_path / "larger.onnx", SLOPES, 51), "--no-optimize", "--pin",
         "leaky*=compiler")
    assert runs(tmp_path) > 0


def test_the_verdict_on_a_faulty_kernel_is_kept(call, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 50)
    call("bench", model, "--optimize", "--seconds", "0.01", fault="behind")
    runs(tmp_path)
    text = call("explain", model, "--no-optimize", fault="behind")
    assert "writes up to byte 204 of 200" in text or "compiler" not in text
