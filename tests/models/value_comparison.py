"""Compares every value that Tessera computes with ONNX Runtime's.

ONNX Runtime runs the same model without optimisations and with every inner value as an output.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from programs import run_program

RMS_FRACTION = 1e-4
RTOL = 1e-3


def explain_difference(expected: np.ndarray, actual: np.ndarray) -> str:
    """Describes how `actual` differs from `expected`; "" if it does not.

    Tolerance: 1e-4 of the tensor's root mean square, plus 1e-3 of each element. NaN and infinities
    must be at the same elements.
    """
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"expected {expected.dtype} {expected.shape}, found {actual.dtype} {actual.shape}"
    if not np.issubdtype(expected.dtype, np.floating):
        return "" if np.array_equal(expected, actual) else "elements differ"
    wanted = expected.astype(np.float64)
    found = actual.astype(np.float64)
    finite = np.isfinite(wanted)
    if not np.array_equal(wanted[~finite], found[~finite], equal_nan=True):
        return "NaN or infinities are not at the same places"
    if not np.isfinite(found[finite]).all():
        return "an element is not finite where it should be"
    if not finite.any():
        return ""
    rms = np.sqrt(np.mean(wanted[finite] ** 2))
    excess = np.abs(found - wanted)[finite] - (RMS_FRACTION * rms + RTOL * np.abs(wanted[finite]))
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return ""
    return (
        f"expected {wanted[finite][worst]:.9g}, found {found[finite][worst]:.9g}, "
        f"RMS {rms:.3g}, {int((excess > 0).sum())} of {expected.size} elements off"
    )


def run_tessera(
    binary: Path, model: Path, seed: int, folder: Path, *arguments
) -> tuple[dict, dict]:
    """Runs `model` on random inputs; returns (inputs, the values of all nodes), by name."""
    files = ["--save-inputs", folder / "inputs", "--dump-values", folder / "values"]
    run_program(binary, "run", model, "--random", seed, *files, *arguments)
    return read_folder(folder / "inputs", "inputs.json"), read_folder(
        folder / "values", "values.json"
    )


def read_folder(folder: Path, index_file: str) -> dict:
    """The arrays that `tessera run` wrote into `folder`, by name."""
    entries = json.loads((folder / index_file).read_text())
    return {entry["name"]: np.load(folder / entry["file"]) for entry in entries}


def run_onnxruntime(model: Path, inputs: dict, work_folder: Path) -> dict:
    """The values of all nodes by name, computed by ONNX Runtime."""
    proto = onnx.load(model, load_external_data=False)
    declared = {output.name for output in proto.graph.output}
    made = [name for node in proto.graph.node for name in node.output if name]
    for name in made:
        if name not in declared:
            proto.graph.output.append(onnx.ValueInfoProto(name=name))
    # In the folder of the original, because its external data is there.
    opened = model.parent / f"{model.stem}.{work_folder.name}.all_values.onnx"
    try:
        onnx.save(proto, opened)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            opened, options, providers=["CPUExecutionProvider"]
        )
        wanted = {entry.name for entry in session.get_inputs()}
        fed = {name: array for name, array in inputs.items() if name in wanted}
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, fed), strict=True))
    finally:
        opened.unlink(missing_ok=True)


def differences(expected: dict, actual: dict) -> list[str]:
    """One line for each value that is missing or differs."""
    lines = []
    for name, array in expected.items():
        if name not in actual:
            lines.append(f"{name}: Tessera did not compute it")
            continue
        difference = explain_difference(array, actual[name])
        if difference:
            lines.append(f"{name}: {difference}")
    return lines


# --- Mutations: the comparison must detect each of these
# --------------------------------------------


def scaled(array: np.ndarray) -> np.ndarray:
    return array * array.dtype.type(1.1)


def channels_swapped(array: np.ndarray, axis: int) -> np.ndarray | None:
    """Two neighbouring channels exchanged; None if there are fewer than two."""
    if array.ndim == 0 or array.ndim <= axis or array.shape[axis] < 2:
        return None
    order = np.arange(array.shape[axis])
    order[[0, 1]] = [1, 0]
    return np.take(array, order, axis=axis)


def mutable_nodes(model: Path) -> list[tuple[str, str]]:
    """(op, output) of every Conv, Gemm and MatMul with at least one input that is not constant."""
    graph = onnx.load(model, load_external_data=False).graph
    constant = {tensor.name for tensor in graph.initializer}
    found = []
    for node in graph.node:
        if all(not name or name in constant for name in node.input):
            constant.update(node.output)
        elif node.op_type in ("Conv", "Gemm", "MatMul"):
            found.append((node.op_type, node.output[0]))
    return found


def unnoticed_mutations(model: Path, expected: dict, actual: dict) -> list[str]:
    """Outputs of Conv, Gemm and MatMul whose mutation the comparison would not detect."""
    unnoticed = []
    for op, output in mutable_nodes(model):
        axis = 1 if op == "Conv" else actual[output].ndim - 1
        for kind, mutated in (
            ("scaled", scaled(actual[output])),
            ("channels swapped", channels_swapped(actual[output], axis)),
        ):
            if mutated is not None and not explain_difference(expected[output], mutated):
                unnoticed.append(f"{output} ({op}), {kind}")
    return unnoticed
