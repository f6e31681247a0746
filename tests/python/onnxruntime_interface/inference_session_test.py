"""Properties of tessera.InferenceSession of its own: bad input, threads, options, files."""

import concurrent.futures
import gc
import importlib
import json
import logging
import os
import pathlib
import sys
import threading
import warnings
import weakref

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime_programs import classifier, rows, saved
from programs import run_python
from small_models import model_of, node


@pytest.fixture
def session(ort):
    return ort.InferenceSession(classifier().SerializeToString())


class Subclass(np.ndarray):
    pass


X = rows(3)
WRONG_FEEDS = {
    "a float": ({"x": 1.0}, "input 'x': .*float32.*, found float64 scalar|input 'x': .*scalar"),
    "nothing": ({"x": None}, "input 'x': .*(found NoneType|is scalar)"),
    "text": ({"x": np.array(["a"])}, "input 'x'"),
    "objects": ({"x": np.array([[{}] * 4])}, "input 'x'"),
    "a ragged list": ({"x": [[1.0, 2.0], [3.0]]}, "input 'x': expected an array, found list"),
    "integers": ({"x": X.astype(np.int64)}, "input 'x': expected float32 3x4, found int64 3x4"),
    "three dimensions": ({"x": X[None]}, "input 'x'.*declares float32 batchx4.* is 1x3x4"),
    "five columns": ({"x": np.ones((3, 5), np.float32)}, "input 'x'.*batchx4.* is 3x5"),
    "a mistyped name": ({"X1": X}, "input 'X1': expected one of x, bias, found no such name"),
    "one name too many": ({"x": X, "xx": X}, "input 'xx': expected one of x, bias"),
    "a name that is not Unicode": ({"\udcff": X}, r"input '\\udcff': expected one of x, bias"),
    "a number as name": ({1: X}, "input '1': expected one of x"),
    "no names": ({}, "input 'x': expected an array for each of x, found none"),
    "a list": ([X], "input_feed: expected a dictionary of arrays by name, found list"),
    "an array": (X, "input_feed: expected a dictionary of arrays by name, found ndarray"),
    "no feed": (None, "input_feed: .* found NoneType"),
    "another dtype of the bias": ({"x": X, "bias": np.ones(3)}, "input 'bias'.*float32.*float64"),
    "another size of the bias": ({"x": X, "bias": np.ones(4, np.float32)}, "input 'bias'.* 4"),
}


@pytest.mark.parametrize("feed, where", [
    ({"x": 1.5}, "input 'x'"), ({"x": b"12"}, "input 'x'"), ({"x": X.astype(complex)}, "input 'x'"),
    ({"x": [[1, 2], [3]]}, "input 'x'"), ({"x": X, "bias": "abc"}, "input 'bias'"),
], ids=str)
def test_what_is_no_array_is_also_a_runtime_error(tessera, session, feed, where):
    with pytest.raises(RuntimeError) as caught:
        session.run(None, feed)
    assert isinstance(caught.value, tessera.InvalidArgument) and caught.value.where == where


def test_an_array_of_another_dtype_is_no_runtime_error(session):
    """Programs tell both apart."""
    with pytest.raises(ValueError) as caught:
        session.run(None, {"x": X.astype(np.float64)})
    assert not isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("names", ["logits", 3, [None], [b"logits"]], ids=str)
def test_names_that_are_no_texts_are_type_errors(tessera, session, names):
    with pytest.raises(TypeError) as caught:
        session.run(names, {"x": X})
    assert isinstance(caught.value, tessera.InvalidArgument)


@pytest.mark.parametrize("is_first", [True, False], ids=["first run", "later run"])
@pytest.mark.parametrize("feed", WRONG_FEEDS)
def test_wrong_inputs_are_named(tessera, ort, session, feed, is_first):
    if not is_first:
        session.run(None, {"x": X})
    given, message = WRONG_FEEDS[feed]
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=message) as error:
        session.run(None, given)
    assert isinstance(error.value, tessera.InvalidArgument)
    assert session.run(["logits"], {"x": X})[0].shape == (3, 3)


RIGHT_FEEDS = {
    "read-only": lambda x: _locked(x.copy()),
    "columns first": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "big-endian": lambda x: x.astype(">f4"),
    "subclass": lambda x: x.view(Subclass),
    "list": lambda x: x.tolist(),
    "list of arrays": list,
    "buffer": lambda x: memoryview(x.copy()),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "misaligned": lambda x: _misaligned(x),
}


def _locked(array):
    array.flags.writeable = False
    return array


def _misaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    odd = memory[1:].view(np.float32).reshape(array.shape)
    odd[...] = array
    return odd


@pytest.mark.parametrize("layout", RIGHT_FEEDS)
def test_arrays_of_any_layout_are_read(session, layout):
    given = RIGHT_FEEDS[layout](X)
    dense = np.ascontiguousarray(np.asarray(given, np.float32))
    before = dense.copy()
    expected = session.run(None, {"x": dense})
    actual = session.run(None, {"x": given})
    for one, other in zip(actual, expected, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(np.asarray(given, np.float32), before), "inputs stay as they are"


def test_output_names_are_checked_before_the_run(ort, session):
    invalid = ort.capi.onnxruntime_pybind11_state.InvalidArgument
    with pytest.raises(invalid, match="output 'logit'.*did you mean 'logits'"):
        session.run(["logit"], {"x": X})
    with pytest.raises(invalid, match="expected a list of names, found the text 'logits'"):
        session.run("logits", {"x": X})
    for wrong, message in ((5, "expected a list of names, found int"), ([0], "output '0'"),
                           ([["logits"]], "output .*one of probabilities, logits")):
        with pytest.raises(invalid, match=message):
            session.run(wrong, {"x": X})
    with pytest.raises(TypeError, match="run_options: expected a RunOptions"):
        session.run(None, {"x": X}, {"terminate": True})
    assert len(session.run((name for name in ["logits"]), {"x": X})) == 1
    assert len(session.run(np.array(["logits", "probabilities"]), {"x": X})) == 2
    logits, probabilities = session.run(("logits", "probabilities"), {"x": X})
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(logits.argmax(axis=1), probabilities.argmax(axis=1))


def test_results_stay_as_they_are_in_later_runs(session):
    first = session.run(None, {"x": X})
    copies = [array.copy() for array in first]
    session.run(None, {"x": X * 3})
    assert all(np.array_equal(*pair) for pair in zip(first, copies, strict=True))
    assert all(array.flags.writeable for array in first)


def test_a_path_of_any_kind_and_any_bytes(ort, tmp_path):
    content = classifier().SerializeToString()
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/m\xff\xfe.onnx")
    pathlib.Path(odd).write_bytes(content)
    class AsBytes:
        def __fspath__(self):
            return os.fsencode(odd)

    expected = ort.InferenceSession(content).run(None, {"x": X})
    for source in (odd, pathlib.Path(odd), AsBytes(), bytearray(content), memoryview(content)):
        actual = ort.InferenceSession(source).run(None, {"x": X})
        assert np.array_equal(actual[0], expected[0])
    state = ort.capi.onnxruntime_pybind11_state
    with pytest.raises(state.InvalidProtobuf, match="for a path use os.fsdecode"):
        ort.InferenceSession(os.fsencode(odd))
    for wrong in (b"", b"\n", content[: len(content) // 2], b"\x08\x08", os.urandom(100)):
        with pytest.raises((state.InvalidProtobuf, state.InvalidGraph)):
            ort.InferenceSession(wrong)
    with pytest.raises(state.InvalidArgument, match="found a folder"):
        ort.InferenceSession(tmp_path)


def test_external_weights_are_found_beside_the_file(ort, tmp_path):
    model = classifier()
    expected = ort.InferenceSession(model.SerializeToString()).run(None, {"x": X})
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0,
              location="weights.bin")
    session = ort.InferenceSession(tmp_path / "model.onnx")
    assert np.array_equal(session.run(None, {"x": X})[0], expected[0])
    bias = np.zeros(3, np.float32)
    logits, = session.run(["logits"], {"x": X, "bias": bias})
    assert not np.array_equal(logits, expected[1])


def test_a_mistyped_keyword_or_attribute_names_the_likely_one(ort):
    content = classifier().SerializeToString()
    with pytest.raises(TypeError, match="'session_options'.*|'sess_option'.*did you mean"):
        ort.InferenceSession(content, sess_option=ort.SessionOptions())
    options = ort.SessionOptions()
    likely = "did you mean 'intra_op_num_threads'"
    with pytest.raises(AttributeError, match=likely):
        options.intra_op_num_thread = 1
    with pytest.raises(AttributeError, match=likely):
        options.intra_op_num_thread  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'add_session_config_entry'"):
        options.add_session_config_entri("a", "b")
    with pytest.raises(AttributeError, match="did you mean 'terminate'"):
        ort.RunOptions().terminat = True
    with pytest.raises(TypeError, match="graph_optimization_level: expected one of"):
        options.graph_optimization_level = 5
    with pytest.raises(ValueError, match="log_severity_level: expected -1 to 4, found 9"):
        options.log_severity_level = 9
    with pytest.raises(TypeError, match="expected a SessionOptions of tessera.onnxruntime"):
        ort.InferenceSession(content, ["CPUExecutionProvider"])


def test_options_without_a_meaning_warn_once_and_never_fail(ort, tmp_path):
    options = ort.SessionOptions()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ort.InferenceSession(saved(tmp_path), options)
    options.inter_op_num_threads = 4
    options.enable_mem_pattern = False
    options.optimized_model_filepath = tmp_path / "optimized.onnx"
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 1)
    with pytest.warns(UserWarning) as caught:
        session = ort.InferenceSession(
            saved(tmp_path), options, [("CPUExecutionProvider", {"arena": 1})],
            disabled_optimizers=["A"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    for name in ("inter_op_num_threads = 4", "enable_mem_pattern = False",
                 "optimized_model_filepath", "session.set_denormal_as_zero", "DATA_BATCH",
                 "disabled_optimizers", "arena = '1' of CPUExecutionProvider"):
        assert name in str(caught[0].message)
    assert session.get_provider_options() == {"CPUExecutionProvider": {"arena": "1"}}


def test_options_that_have_a_meaning_are_honoured(ort):
    content = classifier().SerializeToString()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    assert options.bind_options()["threads"] == 1
    options.add_session_config_entry("tessera.optimize", "now")
    options.add_session_config_entry("tessera.frozen", "true")
    assert options.bind_options()["frozen"] is True
    session = ort.InferenceSession(content, options)
    with pytest.raises(Exception, match="no cache|cache"):
        session.run(None, {"x": X})
    assert "swap" not in options.bind_options()
    options.use_deterministic_compute = True
    assert options.bind_options()["swap"] is False
    options = ort.SessionOptions()
    options.add_session_config_entry("tessera.optimise", "now")
    session = ort.InferenceSession(content, options)
    with pytest.raises(TypeError, match="did you mean 'optimize'"):
        session.run(None, {"x": X})


@pytest.mark.parametrize("is_wanted", [True, False])
def test_the_optimisation_level_decides_about_measuring(ort, monkeypatch, is_wanted):
    monkeypatch.setenv("TESSERA_OPTIMIZE", "1" if is_wanted else "0")
    levels = ort.GraphOptimizationLevel
    options = ort.SessionOptions()
    assert options.bind_options()["optimize"] == ("behind" if is_wanted else "off")
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_BASIC, levels.ORT_ENABLE_EXTENDED):
        options.graph_optimization_level = level
        assert options.bind_options()["optimize"] == "off"


def test_later_changes_of_options_do_not_reach_the_session(ort):
    options = ort.SessionOptions()
    session = ort.InferenceSession(classifier().SerializeToString(), options)
    options.intra_op_num_threads = 7
    options.add_free_dimension_override_by_name("batch", 5)
    assert session.get_session_options().intra_op_num_threads == 0
    assert session.run(None, {"x": X})[0].shape == (3, 3)


def test_a_size_that_the_options_give_is_required(ort):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    options.add_free_dimension_override_by_name("no such dimension", 2)
    session = ort.InferenceSession(classifier().SerializeToString(), options)
    assert session.get_inputs()[0].shape == [2, 4]
    invalid = ort.capi.onnxruntime_pybind11_state.InvalidArgument
    with pytest.raises(invalid, match="input 'x': expected 2 in dimension 0.*found 3"):
        session.run(None, {"x": X})
    with pytest.raises(ValueError, match="expected a size of 0 or more, found -1"):
        options.add_free_dimension_override_by_name("batch", -1)


def test_severity_of_a_session_filters_its_log(ort, caplog):
    model = classifier()
    # A declared shape that contradicts the inferred one is a warning.
    model.graph.value_info.append(
        helper.make_tensor_value_info("product", TensorProto.FLOAT, ["batch", 7]))
    for severity, count in ((-1, 1), (2, 1), (3, 0)):
        options = ort.SessionOptions()
        options.log_severity_level = severity
        options.logid = "mine"
        with caplog.at_level(logging.INFO, "tessera"):
            ort.InferenceSession(model.SerializeToString(), options)
        assert len(caplog.records) == count, severity
        caplog.clear()


def test_providers_that_are_missing_cause_one_warning(ort):
    content = classifier().SerializeToString()
    for missing in (["CUDAExecutionProvider"], ["NoProvider", ("TensorrtExecutionProvider", {})]):
        with pytest.warns(UserWarning, match="not available; available are") as caught:
            session = ort.InferenceSession(content, providers=missing)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert session.get_providers() == ["CPUExecutionProvider"]
    for wrong in ([5], [("CPUExecutionProvider",)], [("CPUExecutionProvider", [])]):
        with pytest.raises(ValueError, match="providers: expected names, or tuples"):
            ort.InferenceSession(content, providers=wrong)
    with pytest.raises(ValueError, match="one dictionary for each of the 1 providers, found 2"):
        ort.InferenceSession(content, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


PROVIDERS = {"DnnlExecutionProvider": "onednn", "OpenVINOExecutionProvider": "openvino"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_prefers_its_backend(ort, why_unusable, provider, tmp_path):
    backend = PROVIDERS[provider]
    if why_unusable.get(backend):
        assert provider not in ort.get_available_providers()
        pytest.skip(f"{backend}: {why_unusable[backend]}")
    assert provider in ort.get_available_providers()
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(saved(tmp_path), options, [provider])
    assert session.get_providers() == [provider, "CPUExecutionProvider"]
    usual = ort.providers.backends_of(["CPUExecutionProvider", provider])
    assert usual == (), "after the processor's own, the order of backends is the usual one"
    first, *others = ort.providers.backends_of([provider, "CPUExecutionProvider"])
    assert first == backend and "reference" in others and backend not in others
    session.run(None, {"x": X})
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    used = {event["args"]["provider"] for event in events if event["cat"] == "Node"}
    # Regions of OpenVINO are used only where they were measured, which tests do not do.
    assert backend in used or backend == "openvino"


def test_providers_decide_which_backend_computes(ort, needs_native, monkeypatch, tmp_path):
    """As if there were a provider of `native`, which is not the first by itself."""
    monkeypatch.setitem(ort.providers._BACKENDS, "NativeExecutionProvider", "native")

    def used(*change):
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / f"profile{len(change)}")
        session = ort.InferenceSession(saved(tmp_path), options,
                                       [] if change else ["NativeExecutionProvider"])
        if change:
            session.run(None, {"x": X, "bias": np.zeros(3, np.float32)})
            session.set_providers(*change)
        start = len(session._profile._events)
        session.run(None, {"x": X})
        session.run(None, {"x": X, "bias": np.zeros(3, np.float32)})
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())[start:]
        return {event["args"]["provider"] for event in events if event["cat"] == "Node"}

    assert used() == {"native"}
    assert used(["NativeExecutionProvider"]) == {"native"}


def test_a_session_that_is_not_ended_writes_its_profile(ort, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(saved(tmp_path), options)
    session.run(None, {"x": X})
    collected = weakref.ref(session)
    del session
    gc.collect()
    assert collected() is None
    [file] = tmp_path.glob("profile_*.json")
    assert any(event["name"] == "model_run" for event in json.loads(file.read_text()))


@pytest.mark.parametrize("threads_of_a_run", [0, 1])
def test_threads_share_a_session(ort, threads_of_a_run):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads_of_a_run
    session = ort.InferenceSession(classifier().SerializeToString(), options)
    feeds = [{"x": rows(1 + index % 4, seed=index)} for index in range(40)]
    for feed in feeds[::5]:
        feed["bias"] = np.full(3, len(feed["x"]), np.float32)
    fresh = ort.InferenceSession(classifier().SerializeToString())
    expected = [fresh.run(["logits"], feed)[0] for feed in feeds]
    wrong = []

    def work(start):
        binding = session.io_binding()
        for index in range(400):
            at = (start * 7 + index) % len(feeds)
            if index % 9 == 0:
                for name, array in feeds[at].items():
                    binding.bind_cpu_input(name, array)
                result = ort.OrtValue.ortvalue_from_shape_and_type(expected[at].shape, np.float32)
                binding.bind_ortvalue_output("logits", result)
                session.run_with_iobinding(binding)
                binding.clear_binding_inputs()
                actual = result.numpy()
            else:
                actual, = session.run(["logits"], feeds[at])
            if not np.allclose(actual, expected[at], rtol=1e-5, atol=1e-6):
                wrong.append(at)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_any_set_of_initializers_can_be_overridden(ort):
    defaults = {"scale": np.float32(2), "shift": np.float32(10)}
    model = model_of([node("Mul", "x scale", "product"), node("Add", "product shift", "y")],
                     {name: [1] for name in ("x", *defaults)}, {"y": [1]},
                     {name: value.reshape(1) for name, value in defaults.items()})
    session = ort.InferenceSession(model.SerializeToString())
    for _ in range(2):
        for given in ({}, {"scale": 3}, {"shift": 5}, {"scale": 4, "shift": 6}):
            values = {**defaults, **given}
            feed = {name: np.array([value], np.float32) for name, value in given.items()}
            y, = session.run(None, {"x": np.array([7], np.float32), **feed})
            assert y[0] == 7 * values["scale"] + values["shift"]
    assert len(session._variants) == 3


def test_a_pool_binds_as_many_executors_as_run_at_once(ort):
    class Executor:
        def run(self):
            pass

    bound = []

    def bind(inputs):
        bound.append(inputs)
        if inputs == "wrong":
            raise ValueError(inputs)
        return Executor()

    pool = importlib.import_module("tessera.onnxruntime.executor_pool")
    cores = len(os.sched_getaffinity(0))
    for threads, limit in ((0, 1), (cores, 1), (cores + 1, 1), (1, cores)):
        bound.clear()
        executors = pool.ExecutorPool(bind, threads)
        with pytest.raises(ValueError, match="wrong"):
            executors.choose("wrong")
        busy = []
        for index in range(limit):
            executor = executors.choose(f"run {index}")
            assert executors.choose("again") is executor, "it is idle"
            assert executor.lock.acquire(timeout=10), "a busy one was chosen"
            busy.append(executor)
        assert len({id(executor) for executor in busy}) == limit
        assert executors.choose("one more") in busy, "a thread waits for one of them"
        busy[-1].lock.release()
        assert executors.choose("idle") is busy[-1]
        assert bound == ["wrong", *(f"run {index}" for index in range(limit))]


def test_terminate_ends_a_run_of_another_thread(ort):
    """The run takes many seconds if nothing ends it."""
    size, count = 4_000_000, 500
    nodes = [node("Sin" if index % 2 else "Cos", f"v{index}", f"v{index + 1}")
             for index in range(count)]
    model = model_of(nodes, {"v0": [size]}, {f"v{count}": [size]})
    options = ort.SessionOptions()
    options.add_session_config_entry("tessera.backends", '["reference"]')
    session = ort.InferenceSession(model.SerializeToString(), options)
    options = ort.RunOptions()
    ended = []

    def work():
        try:
            session.run(None, {"v0": np.ones(size, np.float32)}, options)
        except ort.capi.onnxruntime_pybind11_state.Fail as error:
            ended.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    # Cancelling reaches only a run that has begun.
    while worker.is_alive():
        worker.join(0.05)
        options.terminate = True
    assert len(ended) == 1


def test_importing_tessera_loads_none_of_it(tessera):
    code = ("import sys, tessera; tessera.__version__; dir(tessera); "
            "assert not {'tessera.onnxruntime', 'tessera.backend', 'onnx', 'numpy'} & set(sys.modules)"
            "; tessera.InferenceSession; assert 'tessera.onnxruntime' in sys.modules; "
            "assert 'numpy' not in sys.modules and 'onnx' not in sys.modules")
    run_python(tessera, code)


def test_model_without_inputs_and_text_of_a_session(ort, session):
    model = model_of([node("Identity", "w", "y")], {}, {"y": [2]},
                     {"w": np.array([1, 2], np.float32)})
    assert ort.InferenceSession(model.SerializeToString()).run(None, {})[0].tolist() == [1, 2]
    assert "x: tensor(float) ['batch', 4] -> probabilities, logits; CPU" in repr(session)
    assert repr(ort.SessionOptions()) == "<SessionOptions with the defaults>"
