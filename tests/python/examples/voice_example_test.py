"""examples/10_voice computes what a runtime computes that gets the state in each run."""

import importlib.util
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import onnxruntime
import pytest
from programs import run_python

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "10_voice" / "voice.py"
WHEEL = "silero-vad==6.2.3"
CHUNKS = 1000


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silero")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL],
        capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip(f"no package server has {WHEEL}: {done.stderr.strip().splitlines()[-1:]}")
    wheel, = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extract("silero_vad/data/silero_vad_16k_op15.onnx", folder)
    return folder / "silero_vad" / "data" / "silero_vad_16k_op15.onnx"


def load_example():
    spec = importlib.util.spec_from_file_location("voice", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_thousand_chunks_are_those_of_onnx_runtime(tessera, model_file):
    voice = load_example()
    listener = voice.Listener(tessera.load(model_file))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model_file), options,
                                           providers=["CPUExecutionProvider"])
    state = np.zeros((2, 1, 128), np.float32)
    context = np.zeros(voice.CONTEXT, np.float32)
    memory = listener._state.ctypes.data
    for chunk in voice.made_sound(CHUNKS).reshape(-1, voice.CHUNK):
        samples = np.concatenate([context, chunk])[None]
        expected, state = session.run(
            None, {"input": samples, "state": state, "sr": np.array(voice.RATE)})
        context = chunk[-voice.CONTEXT:]
        assert abs(listener.listen(chunk) - float(expected[0, 0])) < 1e-3
    np.testing.assert_allclose(listener._state, state, atol=1e-3)
    assert listener._state.ctypes.data == memory


def test_the_example_prints_how_long_a_chunk_takes(tessera, model_file):
    result = run_python(tessera, EXAMPLE, model_file, "--chunks", "60")
    assert "60 chunks, " in result.stdout and "times faster" in result.stdout
