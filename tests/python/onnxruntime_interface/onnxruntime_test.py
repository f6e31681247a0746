"""Programs for onnxruntime give equal results under both imports, and catch the same exceptions."""

import importlib
import warnings

import numpy as np
import onnxruntime_programs
import pytest
from onnx import TensorProto, helper
from onnxruntime_programs import PROGRAMS, classifier, rows
from small_models import model_bytes, model_of, node, tensor_type


@pytest.fixture(scope="session")
def onnxruntime():
    return pytest.importorskip("onnxruntime", reason="onnxruntime, the other import, is missing")


def assert_same(actual, expected, where):
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), where
        for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype and actual.shape == expected.shape, where
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6, err_msg=where)
    else:
        assert actual == expected, where


@pytest.mark.filterwarnings("ignore:options without a meaning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_the_same_under_both_imports(ort, onnxruntime, tmp_path, program):
    assert_same(program(ort, tmp_path), program(onnxruntime, tmp_path), program.__name__)


def test_the_programs_compare_something(onnxruntime, tmp_path):
    """assert_same() notices another value, wherever it is."""
    results = onnxruntime_programs.io_binding(onnxruntime, tmp_path)
    assert_same(results, results, "")
    changed = [*results[:-1], [results[-1][0], results[-1][1] + 1]]
    with pytest.raises(AssertionError):
        assert_same(changed, results, "")


# Wrong requests, and the exception that a program for onnxruntime catches: a name of
# onnxruntime_pybind11_state, or of Python.
def _bind_wrong_shape(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2)[:, :3].copy())
    binding.bind_output("logits")
    session.run_with_iobinding(binding)


def _bind_small_output(ort, session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2))
    binding.bind_ortvalue_output(
        "logits", ort.OrtValue.ortvalue_from_shape_and_type([5, 3], np.float32))
    session.run_with_iobinding(binding)


def _run_without_outputs(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2))
    session.run_with_iobinding(binding)


def _binding_of_another(ort):
    binding = ort.InferenceSession(classifier().SerializeToString()).io_binding()
    binding.bind_cpu_input("x", rows(2))
    binding.bind_output("logits")
    return binding


def _without_op(model):
    model.graph.node[0].op_type = "MatMul"
    model.graph.node[0].input[0] = "nothing"
    return model.SerializeToString()


WRONG = {
    "dtype": ("InvalidArgument", lambda ort, s: s.run(None, {"x": rows(2).astype(np.float64)})),
    "rank": ("InvalidArgument", lambda ort, s: s.run(None, {"x": rows(2)[0]})),
    "size": ("InvalidArgument", lambda ort, s: s.run(None, {"x": rows(2)[:, :3]})),
    "missing input": ("ValueError", lambda ort, s: s.run(None, {})),
    "extra input": ("InvalidArgument", lambda ort, s: s.run(None, {"x": rows(2), "y": rows(2)})),
    "output's name": ("InvalidArgument", lambda ort, s: s.run(["nothing"], {"x": rows(2)})),
    "overriding size": (
        "InvalidArgument", lambda ort, s: s.run(None, {"x": rows(2), "bias": np.ones(4, "f4")})),
    "no model": ("InvalidProtobuf", lambda ort, s: ort.InferenceSession(b"\x00nothing" * 9)),
    "missing file": ("NoSuchFile", lambda ort, s: ort.InferenceSession("nothing.onnx")),
    "type of the source": ("TypeError", lambda ort, s: ort.InferenceSession(5)),
    "bound shape": ("RuntimeError", lambda ort, s: _bind_wrong_shape(s)),
    "bound output": ("RuntimeError", _bind_small_output),
    "no bound output": ("RuntimeError", lambda ort, s: _run_without_outputs(s)),
    "bound name": ("RuntimeError", lambda ort, s: s.io_binding().bind_cpu_input("y", rows(1))),
    "device": ("RuntimeError", lambda ort, s: ort.OrtValue.ortvalue_from_numpy(rows(1), "cuda", 0)),
    "updated size": (
        "RuntimeError",
        lambda ort, s: ort.OrtValue.ortvalue_from_numpy(rows(1)).update_inplace(rows(2))),
    "attribute": (
        "AttributeError", lambda ort, s: setattr(ort.SessionOptions(), "intra_op_num_thread", 1)),
    "attribute's type": (
        "TypeError", lambda ort, s: setattr(ort.SessionOptions(), "intra_op_num_threads", "1")),
    "shape of fractions": (
        "TypeError", lambda ort, s: ort.OrtValue.ortvalue_from_shape_and_type([2.7, 3], np.float32)),
    "shape of text": (
        "TypeError", lambda ort, s: s.io_binding().bind_input("x", "cpu", 0, np.float32, "23", 64)),
    "complex value": (
        "RuntimeError", lambda ort, s: ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.complex64))),
    "times": (
        "RuntimeError",
        lambda ort, s: ort.OrtValue.ortvalue_from_numpy(np.zeros(2, "datetime64[s]"))),
    "long numbers": (
        "RuntimeError", lambda ort, s: ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.longdouble))),
    "type of bytes": (
        "RuntimeError", lambda ort, s: ort.OrtValue.ortvalue_from_shape_and_type([2], "S4")),
    "binding of another session": (
        "ValueError", lambda ort, s: s.run_with_iobinding(_binding_of_another(ort))),
    "configuration": (
        "RuntimeError", lambda ort, s: ort.SessionOptions().get_session_config_entry("nothing")),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_request_raises_what_programs_catch(ort, onnxruntime, wrong):
    name, request = WRONG[wrong]
    for module in (onnxruntime, ort):
        session = module.InferenceSession(classifier().SerializeToString())
        state = module.capi.onnxruntime_pybind11_state
        expected = getattr(state, name, None) or getattr(__builtins__, name, None) \
            or __builtins__[name]
        with pytest.raises(expected):
            request(module, session)
        # The session still runs.
        assert session.run(None, {"x": rows(2)})[0].shape == (2, 3)


# Nodes that fail for the values that reach them: op, values of `x` and of its second input.
FAILING = {
    "TopK": (np.ones((2, 3), "f4"), np.array([7])),
    "Reshape": (np.ones((2, 3), "f4"), np.array([5, 1])),
    "Expand": (np.ones((2, 3), "f4"), np.array([2, 5])),
    "Tile": (np.ones((2, 3), "f4"), np.array([2, -1])),
    "Pad": (np.ones((2, 3), "f4"), np.array([0, 0, 0, -5])),
}


@pytest.mark.parametrize("op", FAILING)
def test_a_node_that_fails_in_a_run_is_a_failure(tessera, ort, onnxruntime, op):
    x, second = FAILING[op]
    outputs = ["y", "i"] if op == "TopK" else ["y"]
    model = model_of([node(op, "x s", outputs)],
                     {"x": ["a", "b"], "s": tensor_type(TensorProto.INT64, [len(second)])}, "y")
    state = ort.capi.onnxruntime_pybind11_state
    session = ort.InferenceSession(model.SerializeToString())
    with pytest.raises(state.Fail, match=op) as caught:
        session.run(None, {"x": x, "s": second})
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, tessera.Error)
    with pytest.raises(Exception):
        onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "s": second})


@pytest.mark.parametrize("kind, value", [
    ("strings", np.array(["a", "b"], object)), ("strings", None), ("sequence", [np.ones(2, "f4")]),
    ("map", {"a": 1.0}), ("optional", np.ones(2, "f4"))])
def test_an_input_that_nothing_reads_may_be_anything(ort, kind, value):
    floats = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    types = {"strings": helper.make_tensor_type_proto(TensorProto.STRING, [2]),
             "sequence": helper.make_sequence_type_proto(floats),
             "map": helper.make_map_type_proto(TensorProto.STRING, floats),
             "optional": helper.make_optional_type_proto(floats)}
    session = ort.InferenceSession(model_bytes(
        [node("Relu", "x", "y")], {"x": ["n"], "unread": types[kind]}, {"y": ["n"]}))
    feed = {"x": np.ones(3, "f4")} | ({} if value is None else {"unread": value})
    assert session.run(None, feed)[0].tolist() == [1, 1, 1]


def test_values_are_updated_by_values_and_other_shapes(ort, onnxruntime):
    for module in (onnxruntime, ort):
        value = module.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), "f4"))
        value.update_inplace(module.OrtValue.ortvalue_from_numpy(np.full((2, 3), 4, "f4")))
        assert value.numpy().tolist() == [[4] * 3] * 2
        value.update_inplace(np.arange(6, dtype="f4").reshape(3, 2))
        assert value.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_names_of_the_options_are_those_of_onnxruntime(ort, onnxruntime):
    def defaults(options):
        return {name: getattr(options, name) for name in dir(options)
                if not name.startswith("_") and not callable(getattr(options, name))}

    for kind in ("SessionOptions", "RunOptions"):
        theirs = defaults(getattr(onnxruntime, kind)())
        ours = {name: getattr(getattr(ort, kind)(), name) for name in theirs}
        for name, value in theirs.items():
            assert getattr(ours[name], "name", ours[name]) == getattr(value, "name", value), name
    for kind in ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"):
        theirs = getattr(onnxruntime, kind).__members__
        ours = getattr(ort, kind).__members__
        assert {name: int(value) for name, value in ours.items()} == {
            name: int(value.value) for name, value in theirs.items()}


def test_exceptions_are_also_tesseras(tessera, ort):
    state = ort.capi.onnxruntime_pybind11_state
    kinds = {"InvalidArgument": tessera.InvalidArgument, "NoSuchFile": tessera.InvalidArgument,
             "InvalidProtobuf": tessera.InvalidModel, "InvalidGraph": tessera.InvalidModel,
             "NotImplemented": tessera.Unsupported, "Fail": tessera.Error,
             "RuntimeException": tessera.Error}
    for name, kind in kinds.items():
        assert issubclass(getattr(state, name), kind), name
    unknown = classifier()
    unknown.graph.node[0].op_type = "Matmul"
    with pytest.raises(state.NotImplemented, match="did you mean 'MatMul'"):
        ort.InferenceSession(unknown.SerializeToString())
    with pytest.raises(state.InvalidGraph, match="node 'multiply' .*'nothing'"):
        ort.InferenceSession(_without_op(classifier()))


def test_every_symbol_that_programs_import_is_there(tessera, ort):
    for name in ort.__all__:
        assert getattr(ort, name) is not None
    state = importlib.import_module("tessera.onnxruntime.capi.onnxruntime_pybind11_state")
    for name in state.__all__:
        assert getattr(state, name) is not None
    assert tessera.InferenceSession is ort.InferenceSession
    assert tessera.SessionOptions is ort.SessionOptions
    assert tessera.onnxruntime is ort
    with pytest.raises(AttributeError, match="no attribute 'InferenceSesion'"):
        tessera.InferenceSesion  # noqa: B018
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ort.set_default_logger_severity(2)
