"""The decoder of bench/decoder_model.py: equal to ONNX Runtime, and most of its nodes are in groups."""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from decoder_model import Decoder, decoder_model  # noqa: E402
from programs import json_of, run_program

pytestmark = pytest.mark.usefixtures("needs_jit")
SMALL = {"layers": 2, "width": 64, "hidden": 96, "words": 50, "positions": 12, "batch": 2}
# Ops that no group computes: products, and ops that move elements before or after them.
BORDERS = {"MatMul", "Transpose", "Reshape", "Gather", "Unsqueeze", "Expand"}


def feeds_of(decoder):
    random = np.random.default_rng(3)
    shape = (decoder.batch, decoder.positions)
    return {"ids": random.integers(0, decoder.words, shape),
            "positions": np.tile(np.arange(decoder.positions), (decoder.batch, 1))}


@pytest.mark.parametrize("backends", (["jit", "reference"], ["onednn", "native", "jit"]))
@pytest.mark.parametrize("element", (np.float32, np.float16))
def test_the_decoder_equals_onnx_runtime(tessera, why_unusable, backends, element):
    missing = [name for name in backends if why_unusable.get(name, "unknown")]
    if missing:
        pytest.skip(f"{missing} cannot be used")
    decoder = Decoder(**SMALL, element=element)
    model = decoder_model(decoder).SerializeToString()
    feeds = feeds_of(decoder)
    executor = tessera.load(model).bind(backends=[*backends, "reference"], optimize=False)
    found, = executor.run(feeds)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected, = session.run(None, feeds)
    tolerance = 3e-2 if element == np.float16 else 1e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    if backends == ["jit", "reference"]:
        alone = {node.split("_")[0] for step in executor.plan().steps if step.backend != "jit"
                 for node in step.nodes}
        assert alone <= BORDERS | {"y", "Add", "Cast"}


def test_rotary_embeddings_of_queries_and_keys_are_groups(tessera):
    decoder = Decoder(**SMALL)
    executor = tessera.load(decoder_model(decoder).SerializeToString()).bind(
        backends=["jit", "reference"], optimize=False)
    with_concat = [step for step in executor.plan().steps
                   if any(node.startswith("Concat") for node in step.nodes)]
    assert {step.backend for step in with_concat} == {"jit"}
    assert sum(any(node.startswith("Slice") for node in step.nodes)
               for step in with_concat) == 2 * decoder.layers


def test_the_program_writes_the_same_model_each_time(tessera_binary, tmp_path):
    program = BENCH / "decoder_model.py"
    for name in ("first.onnx", "second.onnx"):
        run_program(sys.executable, program, "--layers", "1", "--width", "32", "--words", "20",
                    "--hidden", "40", "--half", tmp_path / name)
    assert (tmp_path / "first.onnx").read_bytes() == (tmp_path / "second.onnx").read_bytes()
    onnx.checker.check_model(str(tmp_path / "first.onnx"))
    steps = json_of(tessera_binary, "explain", tmp_path / "first.onnx", "--no-optimize",
                    "--backends", "jit,reference", "--json")["steps"]
    assert any(step["backend"] == "jit" for step in steps)
    done = run_program(sys.executable, program, "--width", "30", tmp_path / "other.onnx", code=2)
    assert "expected a width" in done.stderr
