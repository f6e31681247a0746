"""Runs models on ONNX Runtime or on onnx.reference, with which Tessera's results are compared.

judges.py onnxruntime|reference is a separate program, started by runner.py, because both may crash,
hang or use up all memory on invalid models. It reads one JSON object a line: {"model": FILE,
"runs": [{NAME: FILE}], "outputs": FOLDER}, and writes one: {"runs": [RUN...]}; each RUN is
{"error": TEXT} or {"outputs": [FILE...]}."""

import importlib
import io
import json
import signal
import sys
import warnings

import numpy as np
import onnx

from fuzz_case import BFLOAT16, load_array


class OnnxRuntime:
    def __init__(self, model_bytes):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(
            model_bytes, options, providers=["CPUExecutionProvider"])

    def run(self, inputs):
        return self.session.run(None, inputs)


class NoAnswer(Exception):
    """This judge cannot judge the model: it is known to be wrong, or the type of its answer may be
    wrong (verdict.NO_ANSWER)."""


class Undefined(Exception):
    """The standard does not define the result of this run (verdict.UNDEFINED)."""


# Attributes that onnx.reference takes and does not read. RNN follows its activations.
UNREAD = {"GRU": {"activations", "activation_alpha", "activation_beta", "clip"},
          "LSTM": {"activations", "activation_alpha", "activation_beta", "clip", "input_forget"},
          "RNN": {"clip"}}


def fault_of_reference(node):
    """The mistake that onnx.reference makes with this node, or None."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "LRN":
        return "normalises as many channels as there are images (findings/onnx_reference_lrn.sh)"
    if node.op_type == "MaxPool" and "auto_pad" in attributes and \
            attributes["auto_pad"].s == b"SAME_LOWER":
        return "computes another operator (findings/onnx_reference_max_pool_lower.sh)"
    if node.op_type in UNREAD and len(node.input) > 4 and node.input[4]:
        return "does not read sequence_lens (findings/onnx_reference_sequence_lens.sh)"
    unread = UNREAD.get(node.op_type, set()) & attributes.keys()
    return f"does not read {', '.join(sorted(unread))}" if unread else None


class Reference:
    """Computes values that are declared bfloat16 in float32, and rounds the results of the model:
    in bfloat16, onnx.reference rounds each step of an op, and loses all digits of a long sum."""

    def __init__(self, model_bytes):
        from onnx.reference import ReferenceEvaluator

        model = onnx.load_model_from_string(model_bytes)
        for node in model.graph.node:
            if fault := fault_of_reference(node):
                raise NoAnswer(f"{node.op_type}: onnx.reference {fault}")
        self.has_cast = any("Cast" in node.op_type for node in model.graph.node)
        # Infers types that are not declared.
        outputs = onnx.shape_inference.infer_shapes(model).graph.output
        self.elements = [output.type.tensor_type.elem_type for output in outputs]
        for tensor in self.constants(model.graph):
            if tensor.data_type == onnx.TensorProto.BFLOAT16:
                wide = onnx.numpy_helper.to_array(tensor).astype(np.float32)
                tensor.CopyFrom(onnx.numpy_helper.from_array(wide, tensor.name))
        self.evaluator = ReferenceEvaluator(model)

    @staticmethod
    def constants(graph):
        yield from graph.initializer
        for node in graph.node:
            if node.op_type == "Constant":
                yield from (attribute.t for attribute in node.attribute if attribute.name == "value")

    def run(self, inputs):
        wide = {name: array.astype(np.float32) if array.dtype == BFLOAT16 else array
                for name, array in inputs.items()}
        # Some ops of onnx.reference silence warnings, but not this.
        noted = io.StringIO()
        with np.errstate(invalid="log", call=noted):
            outputs = self.evaluator.run(None, wide)
        # Cast itself is compared all the same: Tessera agrees with ONNX Runtime there.
        if not self.has_cast and "in cast" in noted.getvalue():
            raise Undefined("a conversion to whole numbers leaves its type")
        is_narrow = any(array.dtype == BFLOAT16 for array in inputs.values())
        if is_narrow and onnx.TensorProto.UNDEFINED in self.elements:
            raise NoAnswer("whether the results are bfloat16 is not known")
        return [self.narrowed(*pair) for pair in zip(outputs, self.elements)]

    @staticmethod
    def narrowed(output, element):
        is_wide = element == onnx.TensorProto.BFLOAT16 and getattr(output, "dtype", None) == np.float32
        return output.astype(BFLOAT16) if is_wide else output


# For one run of one judge.
MOST_SECONDS = 2


def give_up(*_):
    raise TimeoutError("took too long")


JUDGES = {"onnxruntime": OnnxRuntime, "reference": Reference}


def write(outputs, folder, judge, run):
    files = []
    for index, output in enumerate(outputs):
        files.append(f"{folder}/{judge}_{run}_{index}.npy")
        np.save(files[-1], np.asarray(output))
    return files


def ask(judge, model_bytes, request):
    runs = request["runs"]
    try:
        judging = JUDGES[judge](model_bytes)
    except Exception as error:  # after any exception, this judge has no answer
        return [{"error": f"{type(error).__name__}: {error}"[:300]}] * len(runs)
    answers = []
    for index, files in enumerate(runs):
        try:
            inputs = {name: load_array(file) for name, file in files.items()}
            signal.alarm(MOST_SECONDS)
            outputs = judging.run(inputs)
            signal.alarm(0)
            answers.append({"outputs": write(outputs, request["outputs"], judge, index)})
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"[:300]})
        finally:
            signal.alarm(0)
    return answers


def main():
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, give_up)
    np.seterr(all="ignore")
    judge = sys.argv[1]
    # Imported before the first request, because requests have a time limit.
    importlib.import_module("onnx.reference" if judge == "reference" else judge)
    print("{}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with open(request["model"], "rb") as file:
            model_bytes = file.read()
        print(json.dumps({"runs": ask(judge, model_bytes, request)}), flush=True)


if __name__ == "__main__":
    main()
