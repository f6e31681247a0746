"""Invalid models and arguments: an error of the right class that says what to change."""

import pickle
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import node

CLASSES = {
    "InvalidModel": ValueError,
    "InvalidArgument": ValueError,
    "Unsupported": NotImplementedError,
    "OutOfMemory": MemoryError,
    "DeviceFailed": RuntimeError,
    "Corrupt": RuntimeError,
    "Internal": RuntimeError,
}


def test_errors_are_the_exceptions_that_python_programs_expect(tessera):
    for name, builtin in CLASSES.items():
        error_class = getattr(tessera, name)
        assert issubclass(error_class, tessera.Error)
        assert issubclass(error_class, builtin)
        error = pickle.loads(pickle.dumps(error_class("node 'a'", "expected b, found c")))
        assert (error.kind, error.where, error.message) == (name, "node 'a'", "expected b, found c")
        assert str(error) == "node 'a': expected b, found c"
        assert str(error_class("", "only this")) == "only this"


def test_a_missing_file(tessera, tmp_path):
    with pytest.raises(tessera.InvalidArgument) as caught:
        tessera.load(tmp_path / "absent.onnx")
    assert "absent.onnx" in caught.value.where
    assert caught.value.kind == "InvalidArgument"
    assert isinstance(caught.value, ValueError)


def test_a_file_name_that_is_no_utf8(tessera):
    with pytest.raises(tessera.InvalidArgument, match="absent"):
        tessera.load(b"absent\xff.onnx".decode(sys.getfilesystemencoding(), "surrogateescape"))


def test_a_damaged_file(tessera, tmp_path):
    path = tmp_path / "damaged.onnx"
    path.write_bytes(b"\x08\x07not a model")
    with pytest.raises(tessera.InvalidModel):
        tessera.load(path)


def test_an_unknown_op(tessera, save_model):
    path = save_model([node("Frobnicate", "x", "y", "strange")], {"x": [1]}, {"y": [1]})
    with pytest.raises(NotImplementedError) as caught:
        tessera.load(path)
    assert isinstance(caught.value, tessera.Unsupported)
    assert "strange" in caught.value.where


ROWS = {
    "another type": (lambda x: {"x": x.astype(np.float64)}, "float32.*found float64"),
    "a shape that contradicts": (lambda x: {"x": x[:, :2]}, "declares float32 rowsx3.*is 2x2"),
    "another rank": (lambda x: {"x": x[0]}, "declares float32 rowsx3.*given is 3"),
    "an unknown name": (lambda x: {"x": x, "z": x}, "input 'z'.*it has.*x"),
    "nothing": (lambda x: {}, "input 'x'.*found none"),
    "None": (lambda x: {"x": None}, "input 'x'.*NoneType of dtype object"),
    "text": (lambda x: {"x": "abc"}, "input 'x'.*expected float32 .*, found string scalar"),
    "objects": (lambda x: {"x": np.array([{}, []], object)}, "input 'x'.*dtype object"),
    "complex numbers": (lambda x: {"x": x.astype(np.complex64)}, "input 'x'.*dtype complex64"),
    "dates": (lambda x: {"x": np.array(["2020-01-01"], "M8[D]")}, "input 'x'.*datetime64"),
    "records": (lambda x: {"x": np.zeros(2, [("a", "f4")])}, "input 'x'.*expected an array"),
}


@pytest.mark.parametrize("row", ROWS)
def test_wrong_inputs(tessera, doubling_model, row):
    make, text = ROWS[row]
    executor = tessera.load(doubling_model).bind({"x": [2, 3]})
    x = np.ones((2, 3), np.float32)
    with pytest.raises(tessera.InvalidArgument, match=text) as caught:
        executor.run(make(x))
    assert isinstance(caught.value, ValueError)
    # The executor still works.
    assert np.array_equal(executor.run(x)[0], 2 * x)


BINDINGS = {
    "an unknown name": ({"shapes": {"x": [1, 3], "z": [1]}}, "z"),
    "a shape that contradicts": ({"shapes": {"x": [1, 4]}}, "x"),
    "a negative dimension": ({"shapes": {"x": [-1, 3]}}, "-1"),
    "no such value": ({"shapes": {"x": [1, 3]}, "fetch": ["nothing"]}, "nothing"),
    "threads": ({"shapes": {"x": [1, 3]}, "threads": -1}, "threads"),
    "a device": ({"shapes": {"x": [1, 3]}, "devices": ["abacus"]}, "abacus"),
    "a nan": ({"shapes": {"x": [1, 3]}, "nan": "slow"}, "'slow'"),
    "an accuracy": ({"shapes": {"x": [1, 3]}, "accuracy": "exact"}, "'exact'"),
    "a precision": ({"shapes": {"x": [1, 3]}, "precision": "int4"}, "'int4'"),
    "a backend": ({"shapes": {"x": [1, 3]}, "backends": ["abacus"]}, "abacus.*reference"),
}


@pytest.mark.parametrize("row", BINDINGS)
def test_wrong_bindings(tessera, doubling_model, row):
    arguments, text = BINDINGS[row]
    model = tessera.load(doubling_model)
    with pytest.raises(tessera.InvalidArgument, match=text):
        model.bind(**arguments)
    # The model still works.
    assert model.bind({"x": [1, 3]}).inputs[0].shape == (1, 3)


def test_a_pin_that_nobody_can_serve(tessera, doubling_model):
    model = tessera.load(doubling_model)
    with pytest.raises(tessera.Error, match="abacus"):
        model.bind({"x": [1, 3]}, pins=[tessera.Pin("doubling", "abacus")])


def test_arguments_of_another_kind(tessera, doubling_model):
    model = tessera.load(doubling_model)
    for arguments in ({"pins": ["doubling=reference"]}, {"shapes": {"x": 3}}, {"thread": 1}):
        with pytest.raises(TypeError):
            model.bind(**arguments)
    with pytest.raises(TypeError):
        tessera.Executor()


def test_a_type_error_names_the_keyword(tessera, doubling_model):
    model = tessera.load(doubling_model)
    for arguments, text in (
        ({"thread": 1}, "unexpected keyword argument 'thread'; did you mean 'threads'"),
        ({"exclusions": []}, "unexpected keyword argument 'exclusions'"),
        ({"threads": "two"}, "threads: expected int, found 'two'"),
        ({"threads": 2**40}, "threads: expected a smaller int, found 1099511627776"),
        ({"on_progress": 5}, "on_progress: expected "),
        ({"nan": None}, "nan: expected str, found None"),
        ({"optimize": 3}, r"optimize: expected bool \| str \| None, found 3"),
    ):
        with pytest.raises(TypeError, match=text):
            model.bind({"x": [1, 3]}, **arguments)


def warning_model(save_model):
    """Declares an impossible shape for an inner value, which causes a warning."""
    path = save_model([node("Neg", "x", "inner"), node("Neg", "inner", "y")], {"x": [2]},
                      {"y": [2]})
    model = onnx.load(path)
    model.graph.value_info.append(helper.make_tensor_value_info("inner", TensorProto.FLOAT, [3]))
    onnx.save(model, path)
    return path


def test_warnings_go_to_the_log(tessera, save_model, caplog):
    path = warning_model(save_model)
    messages = []
    tessera.load(path, log=messages.append)
    assert len(messages) == 1
    assert "inner" in messages[0]
    assert not caplog.messages
    tessera.load(path)
    assert caplog.messages == messages
    with pytest.raises(tessera.InvalidModel, match="inner"):
        tessera.load(path, strict=True)


@pytest.mark.parametrize("raised", [RuntimeError, KeyboardInterrupt])
def test_what_a_log_raises_is_raised(tessera, save_model, raised):
    def log(message):
        raise raised(message)

    with pytest.raises(raised, match="inner"):
        tessera.load(warning_model(save_model), log=log)


def test_costs_in_place_of_their_file_are_not_repeated(tessera, doubling_model):
    costs = '{\n "format": "tessera costs"\n}\n'
    with pytest.raises(tessera.InvalidArgument, match="name of a file .* found a text of") as caught:
        tessera.load(doubling_model).bind({"x": (2, 3)}, cost_table=costs)
    assert "format" not in str(caught.value)
