"""Writes the first files of libFuzzer's corpora, in tests/fuzz/corpus or the folder given: models
of one op each, tensor files, and, by the program make_fuzz_seeds, files in formats that only
Tessera writes.

.venv/bin/python tests/fuzz/make_seeds.py build/release/bin [FOLDER]

tools/fuzz passes its own folder and gets models of all ops, which need not be in the repository."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from fuzz_case import to_proto
from seeds import can_supply, case_of, collect_seeds

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
# Ops whose models are in the repository: those whose attributes or inputs decide how memory is
# accessed.
FEW_OPS = ("Compress", "Concat", "Conv", "Gather", "If", "LSTM", "MaxPool", "NonZero", "Pad",
           "Reshape", "Resize", "ScatterND", "Slice", "Split", "TopK")


def known_ops(bin_dir):
    listing = subprocess.run([pathlib.Path(bin_dir) / "print_op_table"], capture_output=True,
                             check=True).stdout
    return {(op["domain"], op["name"]) for op in json.loads(listing)}


def weights_model():
    """A weight large enough for a pack, and constants of several types."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             helper.make_node("Reshape", ["c", "shape"], ["r"], name="reshape"),
             helper.make_node("Gather", ["r", "indices"], ["y"], name="gather", axis=1)]
    weights = [to_proto(np.full((4, 2, 3, 3), 0.5, np.float32), "w"),
               to_proto(np.array([1, -1], np.int64), "shape"),
               to_proto(np.array([0, 3], np.int32), "indices")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_models(folder, seeds, names):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.onnx").write_bytes(weights_model().SerializeToString())
    newest = {}
    for (_, op, version), found in seeds.items():
        if not names or op in names:
            newest[op] = (version, found[0])
    for op, (_, seed) in newest.items():
        for supply in ("constant", "fed", "unknown"):
            supplies = [None if array is None else supply if can_supply(seed, array, supply)
                        else "fed" for array in seed.arrays]
            model = case_of(seed, [seed.arrays], supplies).model
            if names and len(model.SerializeToString()) > 1000:
                continue
            (folder / f"{op}_{supply}.onnx").write_bytes(model.SerializeToString())


def write_tensors(folder):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"float": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.float64(1),
              "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
              "bool": np.array([True, False]), "empty": np.zeros((0, 3), np.uint8)}
    for name, array in arrays.items():
        np.save(folder / "array.npy", array)
        (folder / f"{name}_npy").write_bytes(b"\0" + (folder / "array.npy").read_bytes())
        (folder / f"{name}_pb").write_bytes(b"\1" + to_proto(array).SerializeToString())
    (folder / "array.npy").unlink()
    listed = helper.make_tensor("t", onnx.TensorProto.FLOAT16, [2], [1.0, 2.0])
    (folder / "listed_pb").write_bytes(b"\1" + listed.SerializeToString())


def main():
    bin_dir = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else CORPUS
    write_models(folder / "model", collect_seeds(known_ops(bin_dir)),
                 () if len(sys.argv) > 2 else FEW_OPS)
    write_tensors(folder / "tensor_file")
    subprocess.run([bin_dir / "make_fuzz_seeds", folder], check=True)


if __name__ == "__main__":
    main()
