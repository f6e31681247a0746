"""What is wrong with Tessera's results of a random model with nested graphs, beside those of ONNX
Runtime and of the reference of ONNX."""

import os
import signal

import nested_graphs
import nested_reference
import numpy as np
import onnxruntime

RTOL, ATOL = 1e-4, 1e-5
OPTIMIZED = 10  # one of so many seeds
MOST_SECONDS = 120


def explain_difference(expected, found):
    """Of arrays, lists of arrays, or None of empty optionals; "" if they are the same."""
    if expected is None or found is None:
        return "" if expected is found else f"expected {expected}, found {found}"
    if isinstance(expected, list) or isinstance(found, list):
        if type(expected) is not type(found) or len(expected) != len(found):
            return f"expected {expected}, found {found}"
        return "; ".join(filter(None, map(explain_difference, expected, found)))
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.dtype.kind in "OSU" and found.dtype.kind in "OSU":
        is_same = expected.shape == found.shape and words_of(expected) == words_of(found)
        return "" if is_same else f"expected {expected.tolist()}, found {found.tolist()}"
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"expected {expected.dtype} {expected.shape}, found {found.dtype} {found.shape}"
    if np.allclose(expected, found, RTOL, ATOL, equal_nan=True):
        return ""
    return f"expected {expected.ravel()[:8]}, found {found.ravel()[:8]}"


def words_of(array):
    return [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel()]


def explain_differences(expected, found):
    lines = (f"output {at}: {line}" for at, each in enumerate(zip(expected, found, strict=True))
             if (line := explain_difference(*each)))
    return "; ".join(lines)


def onnxruntime_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def results_of(make, model, feeds):
    """The outputs for each feed; None where a peer refuses the model or its inputs."""
    try:
        peer = make(model)
        return [peer.run(None, feed) for feed in feeds]
    except Exception:  # of any type, and each means that there is nothing to compare with
        return None


def results_of_tessera(tessera, model, feeds, optimize=False):
    executor = tessera.load(model.SerializeToString()).bind(None, optimize=optimize)
    return [executor.run(feed) for feed in feeds]


def explain_runs(expected, found):
    lines = (f"feed {at}: {line}" for at, each in enumerate(zip(expected, found, strict=True))
             if (line := explain_differences(*each)))
    return "; ".join(lines)


def peers_of(model, feeds):
    """The results of each peer that takes the model."""
    peers = {"onnxruntime": results_of(onnxruntime_of, model, feeds),
             "onnx.reference": results_of(nested_reference.Evaluator, model, feeds)}
    return {name: results for name, results in peers.items() if results is not None}


def explain(tessera, seed, model, feeds, peers):
    """What is wrong with Tessera's results; "" if nothing is. If the peers disagree, one of them is
    wrong."""
    if not peers:
        return ""
    try:
        found = results_of_tessera(tessera, model, feeds, optimize=seed % OPTIMIZED == 0)
    except tessera.Error as error:
        return f"{type(error).__name__}: {error}"
    lines = {name: line for name, expected in peers.items()
             if (line := explain_runs(expected, found))}
    if len(lines) == 1 and len(peers) == 2:  # Tessera gives what the other peer gives
        lines = {}
    return "; ".join(f"{name}: {line}" for name, line in lines.items())


def judge(tessera, seed):
    """What is wrong with the results of a seed, and the peers with which they were compared; in a
    process of its own, which a peer may end: then there is nothing to compare with."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(MOST_SECONDS)
        line = "it ended with an exception"
        try:
            model, feeds = nested_graphs.draw(seed)
            peers = peers_of(model, feeds)
            os.write(writer, ",".join(peers).encode() + b"\n")
            line = explain(tessera, seed, model, feeds, peers)
        finally:
            os.write(writer, line.encode()[:4000])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    status = os.waitpid(child, 0)[1]
    if "\n" not in told:
        return "", []
    peers, line = told.split("\n", 1)
    line = line if status == 0 else f"the process ended with {status}"
    return line, peers.split(",") if peers and not line else []
