"""A case of the fuzzers: a model with one or more sets of inputs, in one file.

The file is an ONNX model; the inputs are in its metadata_props, which no runtime reads:
"fuzz.input.<run>.<name>" is a TensorProto in base64, and "fuzz.note" describes the finding."""

import base64
import dataclasses
import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

PREFIX = "fuzz."
FLAGS = ("keeps_denormals", "is_refused")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@dataclasses.dataclass
class Case:
    model: onnx.ModelProto
    runs: list  # dictionaries from the name of an input to its array
    note: str = ""
    keeps_denormals: bool = False  # RunOptions::keeps_denormals
    # Only an error is right, even if the judges return a result.
    is_refused: bool = False

    def single(self, index):
        """A case with the same model and only one of the runs."""
        return dataclasses.replace(self, runs=[self.runs[index]])

    def save(self, path: pathlib.Path):
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        entries = {f"{PREFIX}note": self.note}
        for flag in FLAGS:
            if getattr(self, flag):
                entries[PREFIX + flag] = "1"
        for run, inputs in enumerate(self.runs):
            for name, array in inputs.items():
                tensor = to_proto(array).SerializeToString()
                entries[f"{PREFIX}input.{run}.{name}"] = base64.b64encode(tensor).decode()
        helper.set_model_props(model, entries)
        path.write_bytes(model.SerializeToString())


def load_case(path: pathlib.Path) -> Case:
    model = onnx.load_model_from_string(path.read_bytes())
    case = Case(model, [{}])
    for entry in model.metadata_props:
        if entry.key == f"{PREFIX}note":
            case.note = entry.value
        if entry.key.removeprefix(PREFIX) in FLAGS:
            setattr(case, entry.key.removeprefix(PREFIX), True)
        if entry.key.startswith(f"{PREFIX}input."):
            run, name = entry.key.removeprefix(f"{PREFIX}input.").split(".", 1)
            while len(case.runs) <= int(run):
                case.runs.append({})
            tensor = onnx.TensorProto.FromString(base64.b64decode(entry.value))
            case.runs[int(run)][name] = numpy_helper.to_array(tensor)
    del model.metadata_props[:]
    return case


def to_proto(array, name=""):
    array = np.asarray(array)
    if array.dtype == BFLOAT16:
        return helper.make_tensor(name, onnx.TensorProto.BFLOAT16, array.shape,
                                  array.tobytes(), raw=True)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def element_type(array):
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


def load_array(path):
    """An array that Tessera or a judge wrote; NumPy itself has no bfloat16."""
    array = np.load(path)
    return array.view(BFLOAT16) if array.dtype.kind == "V" else array
