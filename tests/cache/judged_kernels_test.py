"""Compiled kernels run once on guarded memory before anything uses them, in every mode. The plug-in
tests/backends/compiler makes kernels that are wrong in a way that the environment names."""

import json
import os

import pytest
from leaky_model import save_model
from programs import run_program

SLOPES = [0.1, 0.2, 0.3]
MODES = {"off": ["--no-optimize"], "now": ["--optimize"]}
BEHIND = """
backends = tessera.Backends()
backends.load_backend(sys.argv[2])
executor = tessera.load(sys.argv[1], backends=backends).bind(
    threads=1, optimize="behind", backends=["compiler", "reference"])
feeds = {name: np.full(100, -1, np.float32) for name in ("x0", "x1", "x2")}
def used():
    executor.run(feeds)
    return sorted({step.backend for step in executor.plan().steps})
first = used()
executor.wait_for_swap()
print(json.dumps([first, used()]))
"""


@pytest.fixture
def call(tessera_binary, built_plugin, tmp_path):
    """Runs `tessera` with the plug-in, and returns what it prints."""
    library = built_plugin("compiler")

    def start(command, model, *options, fault="none", mode=""):
        names = {name: text for name, text in os.environ.items() if not name.startswith("TESSERA_")}
        names |= {"XDG_CACHE_HOME": str(tmp_path / "user"),
                  "TESSERA_CACHE_DIR": str(tmp_path / "project"),
                  "TESSERA_TEST_COMPILER_FAULT": fault, "TESSERA_TEST_COMPILER": mode}
        return run_program(tessera_binary, command, model, "--json", "--threads", "1",
                           "--backend-path", library, "--backends", "compiler,reference", *options,
                           env=names, cwd=tmp_path).stdout

    return start


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
@pytest.mark.parametrize("fault", ["behind", "none"])
def test_measuring_behind_the_runs_uses_no_faulty_kernel(python, bin_dir, tmp_path, fault, mode):
    model = save_model(tmp_path / "model.onnx", SLOPES, 100)
    for _ in range(2):
        first, last = python(BEHIND, model, bin_dir.parent / "tests" / "backends" / "compiler.so",
                             TESSERA_TEST_COMPILER_FAULT=fault, TESSERA_TEST_COMPILER=mode)
        if fault == "none":
            assert "compiler" in first + last
        else:
            assert first == last == ["reference"]


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
