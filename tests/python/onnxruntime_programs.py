"""Programs as users of onnxruntime write them: functions of the imported module `ort` and of a
folder for files. onnxruntime_test.py runs each with onnxruntime and with tessera.onnxruntime."""

import concurrent.futures
import json
import warnings

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def classifier():
    """y = Softmax(x * weight + bias), with any number of rows; `bias` may be overridden."""
    random = np.random.default_rng(5)
    weight = random.standard_normal((4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"], "multiply"),
            helper.make_node("Add", ["product", "bias"], ["logits"], "add"),
            helper.make_node("Softmax", ["logits"], ["probabilities"], "normalise", axis=1),
        ],
        "classifier",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4]),
            helper.make_tensor_value_info("bias", TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3]),
        ],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.array([0.5, -1, 2], np.float32), "bias"),
        ],
        doc_string="of the graph",
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tests",
        domain="ai.example", model_version=3, doc_string="of the model",
    )
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
]
