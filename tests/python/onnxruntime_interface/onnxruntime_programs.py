"""Programs as users of onnxruntime write them: functions of the imported module `ort` and of a
folder for files. onnxruntime_test.py runs each with onnxruntime and with tessera.onnxruntime."""

import collections
import concurrent.futures
import json
import types
import warnings

import numpy as np
from onnx import TensorProto, helper
from small_models import model_bytes, model_of, node, tensor_type


def classifier():
    """y = Softmax(x * weight + bias), with any number of rows; `bias` may be overridden."""
    random = np.random.default_rng(5)
    weight = random.standard_normal((4, 3)).astype(np.float32)
    model = model_of(
        [node("MatMul", "x weight", "product", "multiply"),
         node("Add", "product bias", "logits", "add"),
         node("Softmax", "logits", "probabilities", "normalise", axis=1)],
        {"x": ["batch", 4], "bias": [3]}, {"probabilities": ["batch", 3], "logits": ["batch", 3]},
        {"weight": weight, "bias": np.array([0.5, -1, 2], np.float32)}, name="classifier",
        doc_string="of the graph")
    model.producer_name, model.domain = "tests", "ai.example"
    model.model_version, model.doc_string = 3, "of the model"
    helper.set_model_props(model, {"author": "somebody", "task": "classification"})
    return model


def saved(folder):
    path = folder / "classifier.onnx"
    path.write_bytes(classifier().SerializeToString())
    return path


def rows(count, seed=1):
    return np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)


def described(args):
    return [(arg.name, arg.type, arg.shape) for arg in args]


def quick_start(ort, folder):
    session = ort.InferenceSession(saved(folder), providers=ort.get_available_providers())
    input_name = session.get_inputs()[0].name
    label_name = session.get_outputs()[0].name
    predicted = session.run([label_name], {input_name: rows(5)})[0]
    return predicted, predicted.argmax(axis=1)


def what_a_model_says_of_itself(ort, folder):
    session = ort.InferenceSession(str(saved(folder)))
    meta = session.get_modelmeta()
    return (
        described(session.get_inputs()),
        described(session.get_outputs()),
        described(session.get_overridable_initializers()),
        [meta.producer_name, meta.graph_name, meta.domain, meta.description,
         meta.graph_description, meta.version, meta.custom_metadata_map],
        [str(arg) for arg in session.get_inputs()],
        session.get_provider_options()["CPUExecutionProvider"],
        ort.get_device(),
    )


def an_older_file(ort, folder):
    """Of IR version 3, in which values of inputs cannot be overridden; without a version."""
    model = classifier()
    model.ir_version = 3
    model.ClearField("model_version")
    model.graph.input.append(
        helper.make_tensor_value_info("weight", TensorProto.FLOAT, [4, 3]))
    session = ort.InferenceSession(model.SerializeToString())
    return (described(session.get_inputs()), described(session.get_overridable_initializers()),
            session.get_modelmeta().version, session.run(None, {"x": rows(2)}))


def io_binding(ort, folder):
    session = ort.InferenceSession(saved(folder), providers=["CPUExecutionProvider"])
    x = rows(6)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    copied = binding.copy_outputs_to_cpu()[0]

    given = ort.OrtValue.ortvalue_from_numpy(x)
    result = ort.OrtValue.ortvalue_from_shape_and_type([6, 3], np.float32, "cpu", 0)
    memory = np.zeros((6, 3), np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output("probabilities", result)
    binding.bind_output("logits", "cpu", 0, np.float32, memory.shape, memory.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    first = memory.copy(), result.numpy().copy()
    given.update_inplace(rows(6, seed=2))
    session.run_with_iobinding(binding)

    binding.clear_binding_inputs()
    binding.bind_input("x", "cpu", 0, np.float32, [6, 4], x.ctypes.data)
    binding.clear_binding_outputs()
    binding.bind_output("probabilities", "cpu")
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    return (copied, first, memory, result.numpy(), outputs[0].numpy(),
            [(value.shape(), value.data_type(), value.device_name(), value.is_tensor())
             for value in (given, result, *outputs)],
            given.data_ptr() == x.ctypes.data, session.run(None, {"x": x}))


def symbolic_batch(ort, folder):
    session = ort.InferenceSession(saved(folder))
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    fixed = ort.InferenceSession(saved(folder), options)
    results = [session.run(["logits"], {"x": rows(count)})[0] for count in (1, 7, 3, 1, 7, 0)]
    return results, described(fixed.get_inputs()), fixed.run(None, {"x": rows(2)})


def several_threads(ort, folder):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(saved(folder), options)
    batches = [rows(1 + index % 5, seed=index) for index in range(200)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda x: session.run(["probabilities"], {"x": x})[0], batches))


def from_bytes(ort, folder):
    session = ort.InferenceSession(classifier().SerializeToString())
    return session.run(None, {"x": rows(2)})


def session_and_run_options(ort, folder):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.execution_order = ort.ExecutionOrder.DEFAULT
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.logid = "program"
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(saved(folder), sess_options=options)
    run_options = ort.RunOptions()
    run_options.log_severity_level = 3
    run_options.logid = "first run"
    results = session.run(["logits", "probabilities"], {"x": rows(3)}, run_options)
    run_options.terminate = True
    try:
        session.run(None, {"x": rows(3)}, run_options)
        ending = "ran"
    except ort.capi.onnxruntime_pybind11_state.Fail:
        ending = "ended"
    run_options.terminate = False
    return (results, ending, session.run(None, {"x": rows(3)}, run_options=run_options),
            options.get_session_config_entry("session.intra_op.allow_spinning"),
            session.get_session_options().intra_op_num_threads,
            options.graph_optimization_level.name, options.enable_profiling)


def profiling(ort, folder):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    session = ort.InferenceSession(saved(folder), options)
    for _ in range(3):
        session.run(None, {"x": rows(2)})
    path = session.end_profiling()
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    names = [event["name"] for event in events]
    nodes = [event for event in events if event["cat"] == "Node"]
    return (path.startswith(str(folder / "profile_")), path.endswith(".json"),
            sorted({event["cat"] for event in events}), names.count("model_run"),
            names.count("model_loading_uri"), names.count("session_initialization"),
            bool(nodes), all(event["ph"] == "X" and event["ts"] >= 0 for event in events),
            all(event["args"]["op_name"] and event["args"]["provider"] for event in nodes),
            session.get_profiling_start_time_ns() > 0, session.end_profiling())


def overridable_initializers(ort, folder):
    session = ort.InferenceSession(saved(folder))
    names = [arg.name for arg in session.get_overridable_initializers()]
    bias = np.array([1, 2, 3], np.float32)
    return (names, session.run(None, {"x": rows(2)}), session.run(None, {"x": rows(2), "bias": bias}),
            session.run(["logits"], {"bias": bias - 1, "x": rows(4)}),
            session.run(None, {"x": rows(2)}))


def provider_lists(ort, folder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = ort.InferenceSession(
            saved(folder),
            providers=[("CUDAExecutionProvider", {"device_id": "0"}), "CPUExecutionProvider"])
    told = [str(warning.message) for warning in caught
            if "CUDAExecutionProvider" in str(warning.message)]
    results = session.run(None, {"x": rows(3)})
    session.set_providers(["CPUExecutionProvider"])
    return (session.get_providers(), len(told), results, session.run(None, {"x": rows(3)}),
            "CPUExecutionProvider" in ort.get_available_providers(),
            "DnnlExecutionProvider" in ort.get_all_providers())


def other_ways_to_run(ort, folder):
    session = ort.InferenceSession(saved(folder))
    done = concurrent.futures.Future()
    session.run_async(["logits"], {"x": rows(2)},
                      lambda results, data, error: done.set_result((results, data, error)), "data")
    values = session.run_with_ort_values(
        ["logits"], {"x": ort.OrtValue.ortvalue_from_numpy(rows(2))})
    return (done.result(60), values[0].numpy(), session.run([], {"x": rows(1)}),
            session.run(["logits", "logits"], {"x": rows(1).tolist()}),
            session.run(None, {"x": np.asfortranarray(rows(3))}),
            session.run(None, {"x": rows(6)[::2]}))


def copier(element_type, shape=("n",)):
    """y = x."""
    kind = tensor_type(element_type, shape)
    return model_bytes([node("Identity")], {"x": kind}, {"y": kind})


def language_model():
    """The logits of the next token, from the sum of embeddings of all tokens that the mask keeps."""
    table = np.random.default_rng(7).standard_normal((11, 6)).astype(np.float32)
    tokens = tensor_type(TensorProto.INT64, ["batch", "length"])
    return model_bytes([node("Gather", "table input_ids", "embedded"),
                        node("Cast", "attention_mask", "kept", to=TensorProto.FLOAT),
                        node("Unsqueeze", "kept last", "column"),
                        node("Mul", "embedded column", "masked"),
                        node("ReduceSum", "masked axis", "context", keepdims=0),
                        node("MatMul", "context head", "logits")],
                       {"input_ids": tokens, "attention_mask": tokens}, {"logits": ["batch", 11]},
                       {"table": table, "head": table.T.copy(), "last": [-1], "axis": [1]})


def generation_loop(ort, folder):
    """Greedy decoding, as wrappers of language models do it: inputs chosen by the session's names,
    int64 arrays that grow by a column in each step."""
    session = ort.InferenceSession(language_model(), providers=["CPUExecutionProvider"])
    input_names = {arg.name: index for index, arg in enumerate(session.get_inputs())}
    output_names = {arg.name: index for index, arg in enumerate(session.get_outputs())}
    ids = np.array([[1, 2, 3], [4, 5, 0]])
    given = {"input_ids": ids, "attention_mask": np.array([[1, 1, 1], [1, 1, 0]]),
             "token_type_ids": np.zeros_like(ids)}
    for _ in range(6):
        feed = {name: given[name] for name in input_names}
        logits = session.run(None, feed)[output_names["logits"]]
        token = logits.argmax(axis=-1)[:, None]
        given["input_ids"] = np.concatenate([given["input_ids"], token], axis=1)
        given["attention_mask"] = np.concatenate(
            [given["attention_mask"], np.ones_like(token)], axis=1)
    return given["input_ids"], logits


def lists_in_place_of_arrays(ort, folder):
    """Lists get the type that the model declares, nested ones too."""
    lists = {TensorProto.FLOAT: [1, 2.5], TensorProto.DOUBLE: [1.0, 2.0], TensorProto.INT64: [1, 2],
             TensorProto.INT32: [-1, 2], TensorProto.INT8: [-1, 2], TensorProto.UINT8: [0, 255],
             TensorProto.UINT64: [1, 2], TensorProto.BOOL: [True, False]}
    results = [ort.InferenceSession(copier(element_type)).run(None, {"x": given})
               for element_type, given in lists.items()]
    session = ort.InferenceSession(language_model())
    nested = session.run(["logits"], {"input_ids": [[1, 2], [3, 4]],
                                      "attention_mask": [[1, 1], [1, 0]]})
    of_scalars = ort.InferenceSession(copier(TensorProto.FLOAT)).run(
        None, {"x": [np.float32(1), np.float32(2)]})
    of_rows = ort.InferenceSession(copier(TensorProto.FLOAT, [2, 3])).run(
        None, {"x": [np.ones(3, np.float32), np.zeros(3, np.float32)]})
    return results, nested, of_scalars, of_rows


def outputs_as_a_dictionary(ort, folder):
    session = ort.InferenceSession(saved(folder))
    names = [output.name for output in session.get_outputs()]
    by_name = dict(zip(names, session.run(names, {"x": rows(3)}), strict=True))
    last_first = session.run(names[::-1], {"x": rows(3)})
    return (sorted(by_name), by_name["logits"], by_name["probabilities"].sum(axis=1), last_first,
            [type(session.run(None, {"x": rows(1)})).__name__],
            session.run(tuple(names), {"x": rows(1)}))


class Subclass(np.ndarray):
    """As of a library with units or labels."""


def arrays_of_any_layout(ort, folder):
    """Slices, transposes, views with negative strides or none, read-only arrays, subclasses."""
    session = ort.InferenceSession(saved(folder))
    x = rows(8)
    read_only = rows(2)
    read_only.setflags(write=False)
    given = [x[1::3], x[::-1], x.T.copy().T, np.broadcast_to(x[0], (3, 4)), x[:, ::-1], read_only,
             rows(2).view(Subclass), np.concatenate([x, x])[5:7], np.asfortranarray(x), x[:0]]
    before = x.copy()
    results = [session.run(["logits"], {"x": array})[0] for array in given]
    return results, np.array_equal(x, before), results[0].flags.writeable


def half_precision(ort, folder):
    kind = tensor_type(TensorProto.FLOAT16, ["n"])
    model = model_bytes([node("Add", "x x")], {"x": kind}, {"y": kind})
    session = ort.InferenceSession(model)
    x = np.array([0.1, 1, 60000, -2], np.float16)
    value = ort.OrtValue.ortvalue_from_numpy(x)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "cpu", 0, np.float16, [4],
                        (result := np.zeros(4, np.float16)).ctypes.data)
    session.run_with_iobinding(binding)
    return (session.run(None, {"x": x[:2]}), described(session.get_inputs()), value.data_type(),
            result)


def sizes_that_only_a_run_tells(ort, folder):
    """NonZero: empty outputs, and outputs of another size in each run, also with I/O binding."""
    session = ort.InferenceSession(model_bytes([node("NonZero")], {"x": ["n"]}, {
        "y": tensor_type(TensorProto.INT64, [1, None])}))
    results = [session.run(None, {"x": np.array(x, np.float32)})[0]
               for x in ([0, 0], [1, 0, 2], [], [3])]
    for x in ([1, 1, 0], [0], [5, 5, 5, 5]):
        binding = session.io_binding()
        binding.bind_cpu_input("x", np.array(x, np.float32))
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        results.append(binding.copy_outputs_to_cpu()[0])
        results.append(binding.get_outputs()[0].shape())
    return results, described(session.get_outputs())


def values_from_the_first_run_on(ort, folder):
    """OrtValues in place of arrays, in a session that has not run before."""
    value = ort.OrtValue.ortvalue_from_numpy(rows(3))
    in_run = ort.InferenceSession(saved(folder)).run(["logits"], {"x": value})
    session = ort.InferenceSession(saved(folder))
    outputs = session.run_with_ort_values(None, {"x": value})
    outputs += session.run_with_ort_values(
        ["logits"], {"x": ort.OrtValue.ortvalue_from_numpy(rows(5))})
    return (in_run, [output.numpy() for output in outputs],
            [(output.shape(), output.data_type(), output.element_type()) for output in outputs])


def caught(ort, call):
    """The exception classes by which a program may catch the error of a call."""
    state = ort.capi.onnxruntime_pybind11_state
    kinds = {"InvalidArgument": state.InvalidArgument, "Fail": state.Fail,
             "NoSuchFile": state.NoSuchFile, "RuntimeError": RuntimeError, "TypeError": TypeError}
    try:
        call()
    except Exception as error:
        return {name for name, kind in kinds.items() if isinstance(error, kind)}
    return {"nothing"}


def errors_that_a_server_answers(ort, folder):
    """The errors that a server catches to answer a bad request and go on. Tessera's errors may also
    be of other kinds."""
    text = ort.InferenceSession(language_model())
    numbers = ort.InferenceSession(copier(TensorProto.INT32))
    ids = np.array([[1, 2]])
    requests = {
        "InvalidArgument": [
            lambda: text.run(None, {"input_ids": ids.astype(np.int32), "attention_mask": ids}),
            lambda: text.run(None, {"input_ids": ids[0], "attention_mask": ids}),
            lambda: text.run(None, {"input_ids": ids[None], "attention_mask": ids}),
            lambda: text.run(["loss"], {"input_ids": ids, "attention_mask": ids}),
            lambda: text.run(None, {"input_ids": ids, "attention_mask": ids, "labels": ids}),
            lambda: text.run(None, {"input_ids": ids + 100, "attention_mask": ids}),
            lambda: numbers.run(None, {"x": np.ones(2, np.int64)}),
        ],
        "RuntimeError": [
            lambda: numbers.run(None, {"x": [1, 2**40]}),
            lambda: numbers.run(None, {"x": 1.5}),
            lambda: numbers.run(None, {"x": b"12"}),
            lambda: numbers.run(None, {"x": np.ones(2, np.complex64)}),
            lambda: numbers.run(None, {"x": np.array(["2020-01-01"], "datetime64[D]")}),
        ],
        "TypeError": [
            lambda: numbers.run("y", {"x": [1]}),
            lambda: numbers.run([None], {"x": [1]}),
            lambda: numbers.run(None),
        ],
        "NoSuchFile": [lambda: ort.InferenceSession("absent/model.onnx")],
        "nothing": [lambda: numbers.run(None, {"x": []}), lambda: numbers.run([], {"x": [3]})],
    }
    answers = [kind in caught(ort, call) for kind, calls in requests.items() for call in calls]
    assert all(answers), answers
    return (answers, numbers.run(None, {"x": [4]}),
            text.run(None, {"input_ids": ids, "attention_mask": ids // ids}))


def feeds_of_several_kinds(ort, folder):
    """Dictionaries of other classes, arrays in batches from a generator, a session made in each of
    several ways, and functions of the module that programs call at their start."""
    ort.disable_telemetry_events()
    ort.set_default_logger_severity(3)
    path = saved(folder)
    sessions = [ort.InferenceSession(str(path)), ort.InferenceSession(path_or_bytes=str(path)),
                ort.InferenceSession(path.read_bytes(), ort.SessionOptions(),
                                     ["CPUExecutionProvider"]),
                ort.InferenceSession(str(path), None, providers=None)]
    feeds = [collections.OrderedDict(x=rows(2)), collections.defaultdict(list, x=rows(2)),
             types.MappingProxyType({"x": rows(2)}), {"x": rows(2)}]
    batches = (rows(count) for count in (4, 4, 1))
    return ([session.run(["logits"], feed) for session, feed in zip(sessions, feeds, strict=True)],
            np.concatenate([sessions[0].run(["logits"], {"x": batch})[0] for batch in batches]),
            sessions[0].run(output_names=["logits"], input_feed={"x": rows(1)}, run_options=None),
            isinstance(ort.get_build_info(), str), isinstance(ort.__version__, str))


def text_of_errors(ort, folder):
    """A program that logs errors, and looks for the name of the wrong value in their text."""
    session = ort.InferenceSession(language_model())
    ids = np.array([[1, 2]])
    wrong = {
        "attention_mask": {"input_ids": ids},
        "input_ids": {"input_ids": ids.astype(np.float32), "attention_mask": ids},
        "labels": {"input_ids": ids, "attention_mask": ids, "labels": ids},
    }
    found = []
    for name, feed in wrong.items():
        try:
            session.run(None, feed)
        except Exception as error:
            # Texts without the name do not help; those of onnxruntime do not always have it.
            found.append(name in str(error) or "Unexpected input data type" in str(error))
    return found


PROGRAMS = [
    quick_start,
    what_a_model_says_of_itself,
    an_older_file,
    io_binding,
    symbolic_batch,
    several_threads,
    from_bytes,
    session_and_run_options,
    profiling,
    overridable_initializers,
    provider_lists,
    other_ways_to_run,
    generation_loop,
    lists_in_place_of_arrays,
    outputs_as_a_dictionary,
    arrays_of_any_layout,
    half_precision,
    sizes_that_only_a_run_tells,
    values_from_the_first_run_on,
    errors_that_a_server_answers,
    feeds_of_several_kinds,
    text_of_errors,
]
