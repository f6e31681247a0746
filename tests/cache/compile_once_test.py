"""How often the same kernel is compiled: once, by whichever thread, process or model wants it first.
The plug-in tests/backends/compiler counts compilations in a file, those of measuring processes
included."""

import collections
import json
import os
import signal
import time

import numpy as np
import pytest
from leaky_model import save_model
from programs import end_of, run_program, start_program
from settled import wait_until_settled

SLOPES = [round(0.1 * at, 1) for at in range(1, 11)]


@pytest.fixture
def library(built_plugin):
    return built_plugin("compiler")


@pytest.fixture
def start(tessera_binary, library, tmp_path):
    """Starts `tessera bench` with a model; compiled.txt lists the compilations."""

    def call(model, *options, mode="", **variables):
        names = {name: text for name, text in os.environ.items() if not name.startswith("TESSERA_")}
        names |= {"XDG_CACHE_HOME": str(tmp_path / "user"),
                  "TESSERA_CACHE_DIR": str(tmp_path / "project"),
                  "TESSERA_TEST_COMPILER_LOG": str(tmp_path / "compiled.txt"),
                  "TESSERA_TEST_COMPILER": mode, **variables}
        return start_program(
            tessera_binary, "bench", model, "--json", "--seconds", "0.01", "--threads", "1",
            "--backend-path", library, "--backends", "compiler,reference", *options, env=names,
            cwd=tmp_path)

    return call


def result_of(process):
    return json.loads(end_of(process, timeout=300)[0])


def counts_of(result):
    codegen, = [row for row in result["codegen"] if row["backend"] == "compiler"]
    return codegen["compiled_count"], codegen["loaded_from_store_count"]


def compilations(tmp_path):
    """How often each slope was compiled, in all processes."""
    log = tmp_path / "compiled.txt"
    return collections.Counter(map(float, log.read_text().split())) if log.exists() else {}


ONCE = dict.fromkeys(SLOPES, 1)


def test_what_the_measuring_process_compiled_is_not_compiled_again(start, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 1000)
    compiled, loaded = counts_of(result_of(start(model)))
    assert compilations(tmp_path) == ONCE
    assert compiled == len(SLOPES), "what the other process compiled is counted"
    assert loaded > 0, "the plan has some of them"
    # Another model with the same kernels: also its measuring process loads them.
    other = save_model(tmp_path / "other.onnx", SLOPES, 2000, ["Neg"])
    assert counts_of(result_of(start(other)))[0] == 0
    assert compilations(tmp_path) == ONCE


def test_without_a_folder_of_the_user_nothing_is_compiled_twice(start, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 1000)
    result_of(start(model, XDG_CACHE_HOME="", HOME=""))
    assert compilations(tmp_path) == ONCE
    assert not (tmp_path / "user").exists()


def test_frozen_writes_nothing_and_compiles_once(start, tmp_path):
    model = save_model(tmp_path / "model.onnx", SLOPES, 1000)
    # A frozen bind needs a plan. Its kernels are then removed. The reference is as fast, so the
    # choice between them would be left to chance.
    pin = ["--pin", "leaky*=compiler"]
    result_of(start(model, *pin))
    for path in list((tmp_path / "user").rglob("kernel.packs")):
        path.unlink()
        path.parent.rmdir()
    (tmp_path / "compiled.txt").unlink()
    before = sorted(tmp_path.rglob("*"))
    result_of(start(model, *pin, "--frozen"))
    assert set(compilations(tmp_path).values()) == {1}
    assert set(tmp_path.rglob("*")) - set(before) == {tmp_path / "compiled.txt"}


@pytest.mark.alone
@pytest.mark.parametrize("count", (2, 8))
def test_processes_that_bind_at_once_compile_once(start, tmp_path, count):
    # Different models, because processes that bind the same one wait for its plan.
    models = [save_model(tmp_path / f"{at}.onnx", SLOPES, 1000 + at, ["Neg"] * at)
              for at in range(count)]
    processes = [start(model, TESSERA_TEST_COMPILER_MS="100") for model in models]
    for process in processes:
        result_of(process)
    assert compilations(tmp_path) == ONCE
    assert not list((tmp_path / "user").rglob("*.lock"))


@pytest.mark.alone
def test_a_process_that_is_killed_while_it_compiles_blocks_nobody(start, tmp_path):
    model = save_model(tmp_path / "model.onnx", [0.5], 1000)
    hanging = start(model, mode="hangs")
    deadline = time.monotonic() + 60
    while not compilations(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert compilations(tmp_path) == {0.5: 1}
    other = start(save_model(tmp_path / "other.onnx", [0.5], 2000))
    time.sleep(1)
    end_of(hanging, -signal.SIGKILL, signal.SIGKILL)
    began = time.monotonic()
    result_of(other)
    assert time.monotonic() - began < 15
    assert compilations(tmp_path) == {0.5: 2}


def test_models_of_one_process_share_a_kernel_that_is_saved_as_a_whole(tessera, library, tmp_path,
                                                                      monkeypatch):
    monkeypatch.setenv("TESSERA_TEST_COMPILER_LOG", str(tmp_path / "compiled.txt"))
    monkeypatch.setenv("TESSERA_TEST_COMPILER", "saves")
    backends = tessera.Backends()
    backends.load_backend(library)
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    executors = []
    for at, also in enumerate(([], ["Neg"], ["Neg", "Neg"])):
        model = save_model(tmp_path / f"{at}.onnx", [0.3, 0.3, 0.6], 100, also)
        executors.append(tessera.load(model, backends=backends).bind(
            backends=["compiler", "reference"], optimize=False))
    assert compilations(tmp_path) == {0.3: 1, 0.6: 1}
    assert [executor.shapes().plans[0].reused_kernels for executor in executors[1:]] == [3, 3]
    for executor, sign in zip(executors, (1, -1, 1)):
        outputs = executor.run(*[x] * 3)
        for output, slope in zip(outputs, (0.3, 0.3, 0.6)):
            np.testing.assert_array_equal(output, sign * np.where(x < 0, np.float32(slope) * x, x))
    # Nobody uses the kernels any more.
    del executors, executor
    tessera.load(tmp_path / "0.onnx", backends=backends).bind(
        backends=["compiler", "reference"], optimize=False)
    assert compilations(tmp_path) == {0.3: 2, 0.6: 2}


def test_another_model_loads_a_kernel_that_was_saved_as_a_whole(tessera, library, tmp_path,
                                                               monkeypatch):
    monkeypatch.setenv("TESSERA_TEST_COMPILER", "saves")
    # Else nothing is kept of models that are loaded.
    monkeypatch.delenv("TESSERA_OPTIMIZE")
    loaded = []
    for also in ([], ["Neg"]):
        # These share nothing but the user's folder, like processes.
        backends = tessera.Backends()
        backends.load_backend(library)
        model = save_model(tmp_path / f"{len(also)}.onnx", [0.5], 1000, also)
        wait_until_settled()
        executor = tessera.load(model, backends=backends).bind(
            backends=["compiler", "reference"], pins=[tessera.Pin("leaky*", "compiler")],
            optimize=True, swap=False, threads=1)
        loaded.append(executor.shapes().plans[0].loaded_kernels)
    assert loaded == [0, 1]


def explained(tessera_binary, library, model, tmp_path, mode):
    """The output of `tessera explain` for a model whose plan is known."""
    names = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "user"),
             "TESSERA_CACHE_DIR": str(tmp_path / "project"), "TESSERA_TEST_COMPILER": mode}
    return run_program(tessera_binary, "explain", model, "--optimize", "--threads", "1",
                       "--backend-path", library, "--backends", "compiler,reference", "--json",
                       env=names, cwd=tmp_path).stdout


def test_a_failure_is_remembered_with_its_message(tessera_binary, start, library, tmp_path):
    model = save_model(tmp_path / "model.onnx", [0.5], 1000)
    result_of(start(model, mode="fails"))
    assert compilations(tmp_path) == {0.5: 1}
    result_of(start(model, mode="fails"))
    assert compilations(tmp_path) == {0.5: 1}
    text = explained(tessera_binary, library, model, tmp_path, "fails")
    assert "line 1: an unknown slope" in text


@pytest.mark.alone
def test_a_compiler_that_does_not_end_is_stopped_and_remembered(tessera_binary, start, library,
                                                               tmp_path, is_long):
    if not is_long:
        pytest.skip("a build may take a minute: run with --long")
    model = save_model(tmp_path / "model.onnx", [0.5], 1000)
    result_of(start(model, mode="hangs"))
    tried = compilations(tmp_path)
    # Another model with the same kernel does not wait for it again.
    other = save_model(tmp_path / "other.onnx", [0.5], 1000, ["Neg"])
    began = time.monotonic()
    for known in (model, other):
        result_of(start(known, mode="hangs"))
    assert time.monotonic() - began < 30
    assert compilations(tmp_path) == tried
    assert "to build" in explained(tessera_binary, library, model, tmp_path, "hangs")
