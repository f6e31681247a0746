"""The descriptions of models, executors and backends."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from onnx import TensorProto
from programs import run_python
from small_models import node, tensor_type


def test_a_model_describes_itself(tessera, doubling_model):
    model = tessera.load(doubling_model)
    (value,) = model.inputs
    assert (value.name, value.type, value.shape) == ("x", "float32", ("rows", 3))
    assert value.is_read
    assert value.index_limit is None
    assert [output.name for output in model.outputs] == ["y"]
    description = model.describe()
    assert description.file == str(doubling_model)
    assert description.opsets == {"": 20}
    assert [(node.name, node.op, node.flops) for node in description.nodes] == [
        ("doubling", "Add", None)
    ]
    assert description.fetchable == ["y"]
    assert "float32 rowsx3" in repr(description)
    bound = model.describe({"x": [5, 3]})
    assert (bound.flops, bound.nodes[0].bytes) == (15, 3 * 60)
    json.dumps(dataclasses.asdict(bound))
    assert "x: float32 rowsx3" in repr(model)
    assert all(stage.duration_ns >= 0 for stage in model.stages)
    assert "load" in [stage.name for stage in model.stages]


def test_descriptions_are_plain_data(tessera, doubling_model):
    value = tessera.load(doubling_model).inputs[0]
    same = tessera.ValueDescription("x", "float32", ("rows", 3), True, index_limit=None, text=value.text)
    assert value == same and hash(value) == hash(same) and same.layout == "row_major"
    assert value != dataclasses.replace(value, name="z") and value != "x"
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    match value:
        case tessera.ValueDescription("x", element):
            assert element == "float32"
    for change in (lambda: setattr(value, "name", "z"), lambda: delattr(value, "name")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="field 'name'"):
            change()
    for wrong in (lambda: tessera.ValueDescription("x"), lambda: tessera.ValueDescription("x", name="x"),
                  lambda: dataclasses.replace(value, size=3), lambda: tessera.ValueDescription(*range(9))):
        with pytest.raises(TypeError, match=r"ValueDescription\(\) "):
            wrong()


def test_indices_have_a_limit(tessera, save_model):
    path = save_model([node("Gather", "table tokens", "y")],
                      {"tokens": tensor_type(TensorProto.INT64, [4])}, "y",
                      {"table": np.zeros((50, 2), np.float32)})
    assert tessera.load(path).inputs[0].index_limit == 50


def test_an_executor_describes_itself(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": [2, 3]}, threads=1)
    assert executor.threads == 1
    assert executor.inputs[0].shape == (2, 3)
    assert executor.outputs[0].text == "float32 2x3"
    assert "x: float32 2x3 -> y: float32 2x3" in repr(executor)
    plan = executor.plan()
    (step,) = plan.steps
    assert (step.backend, step.op, step.nodes) != ("", "", [])
    assert json.loads(json.dumps(dataclasses.asdict(plan)))["steps"][0]["backend"] == step.backend
    assert "plan" in [stage.name for stage in executor.stages]


def test_steps_are_recorded_on_request(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": [2, 3]})
    x = np.ones((2, 3), np.float32)
    executor.run(x)
    assert executor.steps == []
    executor.record_steps()
    executor.run(x)
    (record,) = executor.steps
    assert (record.node, record.op) == ("doubling", "Add")
    assert record.duration_ns > 0
    executor.record_steps(False)


def test_pins_and_exclusions_are_taken(tessera, doubling_model):
    pin = tessera.Pin("doubling", "reference")
    assert repr(pin) == "tessera.Pin('doubling', 'reference', '')"
    exclusion = tessera.Exclusion("reference", op="Conv")
    assert repr(exclusion) == "tessera.Exclusion('reference', 'Conv')"
    executor = tessera.load(doubling_model).bind(
        {"x": [1, 3]}, pins=[pin], exclude=[exclusion], backends=["reference"]
    )
    assert [step.backend for step in executor.plan().steps] == ["reference"]


def test_backends_describe_themselves(tessera, tmp_path):
    names = [backend.name for backend in tessera.backends()]
    assert "reference" in names
    backends = tessera.Backends()
    assert [backend.name for backend in backends.describe()] == names
    with pytest.raises(tessera.InvalidArgument, match="absent"):
        backends.add_path(tmp_path / "absent")
    damaged = tmp_path / "libdamaged.so"
    damaged.write_bytes(b"no library")
    with pytest.raises(tessera.Unsupported, match="libdamaged"):
        tessera.load_backend(damaged)


def test_the_module_says_what_it_has(tessera):
    assert tessera.__version__.count(".") == 2
    for name in tessera.__all__:
        assert getattr(tessera, name).__doc__, f"{name} has no docstring"


def test_importing_is_light(tessera):
    """Importing loads neither NumPy nor a plug-in before it is needed."""
    program = "import sys, tessera; print('numpy' in sys.modules)"
    done = run_python(tessera, program, env={})
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_package_has_every_description(tessera):
    module = tessera.descriptions
    defined = {name for name, each in vars(module).items() if dataclasses.is_dataclass(each)}
    assert set(module.__all__) == defined <= set(tessera.__all__)
