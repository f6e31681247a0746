"""The networks of ../shared/zoo, with a random third of the nodes that OpenCL offers on it and the
rest on the processor, equal ONNX Runtime; and without pins, OpenCL on the processor is not used,
because it does not pay. Skipped without that folder and without an OpenCL device."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))

from programs import json_of, run_program
from value_comparison import differences, read_folder, run_onnxruntime
from zoo_test import NAMES, model_with_weights

pytestmark = pytest.mark.usefixtures("needs_opencl")
LIGHT = ("bert_mini", "shufflenet", "squeezenet")


@pytest.fixture(scope="module")
def zoo_folder():
    return Path(__file__).resolve().parents[2] / "build" / "zoo"


def plan_of(tessera_binary, model, *options):
    return json_of(tessera_binary, "explain", model, "--json", "--runs", "1", *options)


@pytest.mark.parametrize("name", NAMES)
def test_a_third_of_the_nodes_on_opencl_equals_onnxruntime(
    tessera_binary, is_long, zoo_folder, tmp_path, name
):
    if name not in LIGHT and not is_long:
        pytest.skip("heavy networks: --long")
    model = model_with_weights(zoo_folder, name)
    plan = plan_of(tessera_binary, model, "--backends", "opencl,reference", "--no-optimize")
    offered = [step["nodes"][0] for step in plan["steps"]
               if step["backend"] == "opencl" and len(step["nodes"]) == 1]
    assert offered
    pinned = random.Random(name).sample(offered, max(1, len(offered) // 3))
    pins = [option for node in pinned for option in ("--pin", f"{node}=opencl")]
    chosen = ("--backends", "native,onednn,opencl,reference", *pins, "--no-optimize")
    plan = plan_of(tessera_binary, model, *chosen)
    on_opencl = {node for step in plan["steps"] if step["backend"] == "opencl"
                 for node in step["nodes"]}
    assert on_opencl >= set(pinned)
    copies = [step for step in plan["steps"] if step["op"] == "convert+copy"]
    assert copies and all(step["moved_bytes"] > 0 for step in copies)
    # Each value crosses to each device at most once.
    crossings = [(step["inputs"][0]["value"], step["outputs"][0]["device"]) for step in copies]
    assert len(crossings) == len(set(crossings))
    run_program(tessera_binary, "run", model, "--random", "1", "--output", tmp_path / "out",
                "--save-inputs", tmp_path / "inputs", *chosen)
    inputs = read_folder(tmp_path / "inputs", "inputs.json")
    outputs = read_folder(tmp_path / "out", "outputs.json")
    expected = run_onnxruntime(model, inputs, tmp_path)
    lines = differences({key: expected[key] for key in outputs}, outputs)
    assert not lines, "\n".join(lines[:10])


@pytest.mark.alone
def test_it_is_left_where_it_does_not_pay(tessera_binary, zoo_folder, tmp_path):
    model = model_with_weights(zoo_folder, "squeezenet")
    plan = plan_of(tessera_binary, model, "--optimize", "--cache-dir", tmp_path, "--backends",
                   "native,onednn,opencl,reference", "--tune-budget", "60")
    used = {step["backend"] for step in plan["steps"]}
    assert "opencl" not in used
