"""A model's files change after it was loaded: if their content is needed again, the change is
detected, and the process is terminated only if the option allows that."""

import json
import textwrap

import numpy as np
import pytest
from programs import run_python
from small_models import node, save_model

WIDTH = 192  # of weights that are mapped, and released as soon as they are packed


def write_model(folder, *, op="Relu", seed=0, external=True):
    weight = np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    path = save_model(folder / "model.onnx", [node("MatMul", "x w", "h"), node(op, "h", "y")],
                      {"x": ["rows", WIDTH]}, {"y": ["rows", WIDTH]}, {"w": weight},
                      is_external=external)
    return path, weight


@pytest.fixture
def script(tessera):
    """Runs a text as a separate program, because the operating system may terminate it."""
    def run(text, *arguments):
        prelude = f"""
            import json, os, sys
            import numpy as np
            import tessera
            x = np.ones((3, {WIDTH}), np.float32)
            def told(function):
                try:
                    return function()
                except tessera.Error as error:
                    return [type(error).__name__, str(error)]
        """
        program = textwrap.dedent(prelude) + textwrap.dedent(text)
        return json.loads(run_python(tessera, program, *arguments).stdout)

    return run


def is_changed(told, name):
    kind, text = told
    return kind == "DeviceFailed" and name in text and "has changed since it was loaded" in text


CUT_OR_WRITTEN = {
    "cut": "os.truncate(weights, 64)",
    "emptied": "open(weights, 'wb').close()",
    "written to": "open(weights, 'r+b').write(b'\\0' * 64)",
}


@pytest.mark.parametrize("how", CUT_OR_WRITTEN)
def test_mapped_weights_that_were_changed_end_bind_and_not_the_process(script, tmp_path, how):
    path, _ = write_model(tmp_path)
    told = script(f"""
        model = tessera.load(sys.argv[1])
        weights = sys.argv[2]
        os.utime(weights, ns=(0, 0))  # what is written within a tick of the clock has one time
        model = tessera.load(sys.argv[1])
        {CUT_OR_WRITTEN[how]}
        print(json.dumps(told(lambda: str(model.bind(backends=["reference"])))))
    """, path, tmp_path / "weights.bin")
    assert is_changed(told, "weights.bin"), told


@pytest.mark.parametrize("how", CUT_OR_WRITTEN)
def test_copied_weights_stay_as_they_were(script, tmp_path, how):
    path, weight = write_model(tmp_path)
    result = script(f"""
        model = tessera.load(sys.argv[1], copies_weights=True)
        weights = sys.argv[2]
        {CUT_OR_WRITTEN[how]}
        y, = model.bind(backends=["reference"], shapes={{"x": [3, {WIDTH}]}}).run(x)
        print(json.dumps(y[0].tolist()))
    """, path, tmp_path / "weights.bin")
    expected = np.maximum(weight.sum(axis=0), 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


def test_a_file_that_was_renamed_over_stays_mapped(script, tmp_path):
    path, weight = write_model(tmp_path)
    (tmp_path / "other").mkdir()
    write_model(tmp_path / "other", seed=1)
    result = script(f"""
        model = tessera.load(sys.argv[1])
        os.rename(sys.argv[2] + "/other/weights.bin", sys.argv[2] + "/weights.bin")
        y, = model.bind(backends=["reference"], shapes={{"x": [3, {WIDTH}]}}).run(x)
        print(json.dumps(y[0].tolist()))
    """, path, tmp_path)
    np.testing.assert_allclose(result, np.maximum(weight.sum(axis=0), 0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("how", ("replaced", "removed"))
def test_another_model_in_its_place_is_not_bound(script, tmp_path, needs_native, how):
    path, _ = write_model(tmp_path, external=False)
    (tmp_path / "other").mkdir()
    other, _ = write_model(tmp_path / "other", op="Neg", external=False)
    told = script(f"""
        model = tessera.load(sys.argv[1])
        # Weights that are packed are let go; not every library packs those on every processor.
        executor = model.bind(shapes={{"x": [3, {WIDTH}]}}, backends=["native"])
        if {how == "removed"}:
            os.remove(sys.argv[1])
        else:
            os.rename(sys.argv[2], sys.argv[1])
        bind = lambda: str(model.bind(shapes={{"x": [5, {WIDTH}]}}, backends=["reference"]).run(
            np.ones((5, {WIDTH}), np.float32))[0].min())
        print(json.dumps([told(bind), float(executor.run(x)[0].min())]))
    """, path, other)
    assert is_changed(told[0], "model.onnx"), told
    assert told[1] >= 0, "what was bound before runs on"
