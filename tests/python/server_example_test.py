"""examples/09_server answers concurrent clients as single runs do, and refuses what it must."""

import concurrent.futures
import http.client
import importlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "09_server"


@pytest.fixture(scope="module")
def modules():
    """server.py and batcher.py."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("server"), importlib.import_module("batcher")
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in ("server", "batcher"):
            sys.modules.pop(name, None)


def start(tessera, *arguments):
    folder = pathlib.Path(tessera.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, EXAMPLE / "server.py", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(folder)})
    line = process.stdout.readline()
    found = re.fullmatch(r"serving on http://127\.0\.0\.1:(\d+)\n", line)
    assert found, line + process.stderr.read()
    return process, int(found[1])


@pytest.fixture
def serve(tessera):
    """A function that starts a server and returns its port."""
    processes = []

    def call(*arguments):
        process, port = start(tessera, *arguments)
        processes.append(process)
        return port

    yield call
    for process in processes:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")


def post(connection, body, path="/predict"):
    connection.request("POST", path, body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def predict(connection, **inputs):
    return post(connection, json.dumps({"inputs": inputs}))


def metrics_of(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_concurrent_clients_get_what_single_runs_give(tessera, modules, serve):
    server, _ = modules
    port = serve("--executors", 2, "--max-batch", 4, "--max-delay-ms", 20)
    rows = np.random.default_rng(1).standard_normal((120, 64)).astype(np.float32)
    executor = tessera.load(server.make_model()).bind({"x": (1, 64)}, threads=1)
    expected = [executor.run(row[np.newaxis])[0][0] for row in rows]

    def call(client):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        return [(index, *predict(connection, x=rows[index].tolist()))
                for index in range(client, len(rows), 8)]

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        answers = sum(clients.map(call, range(8)), [])
    assert len(answers) == len(rows)
    for index, status, answer in answers:
        assert status == 200, answer
        np.testing.assert_allclose(answer["outputs"]["y"], expected[index], rtol=1e-5, atol=1e-6)
    metrics = metrics_of(port)
    assert metrics['requests_total{status="200"}'] == metrics["rows_total"] == len(rows)
    # Eight clients at once, so a batch of 20 ms has more than one row now and then.
    assert metrics["batches_total"] < len(rows)
    assert 0 < metrics['latency_seconds{quantile="0.5"}'] <= metrics['latency_seconds{quantile="0.99"}']
    assert metrics["requests_waiting"] == 0 and metrics["executors"] == 2


ROW = [0.5] * 64
WRONG = {
    "no JSON": (b"{", "expected JSON"),
    "not UTF-8": (b"\xff\xfe\x00", "expected JSON"),
    "deeply nested": (b"[" * 100_000, "expected JSON"),
    "NaN": (b'{"inputs": {"x": [NaN]}}', "NaN is no JSON"),
    "a list": (b"[1, 2]", 'expected {"inputs"'),
    "no inputs": (b'{"inputs": {}}', "expected the inputs x; found none"),
    "an unknown input": (json.dumps({"inputs": {"x": ROW, "z": 1}}), "expected the inputs x; found x, z"),
    "too short": (json.dumps({"inputs": {"x": ROW[1:]}}), "expected the shape [64], found [63]"),
    "a batch": (json.dumps({"inputs": {"x": [ROW]}}), "expected the shape [64], found [1, 64]"),
    "text": (json.dumps({"inputs": {"x": ["0.5"] * 64}}), "expected numbers"),
    "null": (json.dumps({"inputs": {"x": None}}), "expected numbers"),
    "lists of other lengths": (json.dumps({"inputs": {"x": [[1], [1, 2]]}}), "input 'x'"),
    "an object": (json.dumps({"inputs": {"x": {"a": 1}}}), "expected numbers"),
    "too large": (json.dumps({"inputs": {"x": [1e300] * 64}}), "input 'x'"),
    "a huge integer": (b'{"inputs": {"x": [1' + b"0" * 400 + b"]}}", "input 'x'"),
}


def test_wrong_input_is_refused_with_the_reason(serve):
    port = serve("--executors", 1)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for name, (body, reason) in WRONG.items():
        status, answer = post(connection, body)
        assert status == 400 and reason in answer["error"], (name, answer)
        status, answer = predict(connection, x=ROW)
        assert status == 200 and len(answer["outputs"]["y"]) == 10, name
    assert post(connection, b"{}", path="/other")[0] == 404
    metrics = metrics_of(port)
    assert metrics['requests_total{status="400"}'] == len(WRONG)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        plain.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 400")


def lookup_model(path):
    """Rows of a table of three: another index is an error of the run."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "index"], ["y"])], "lookup",
        [helper.make_tensor_value_info("index", TensorProto.INT64, ["batch"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return path


def test_an_error_of_a_run_stays_with_its_request(serve, tmp_path):
    port = serve(lookup_model(tmp_path / "lookup.onnx"), "--executors", 1, "--max-batch", 8,
                 "--max-delay-ms", 50)

    def call(index):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        return predict(connection, index=index)

    for _ in range(5):
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(call, [0, 1, 7, 2, 0, 1, 2, -9]))
        assert [status for status, _ in answers] == [200, 200, 400, 200, 200, 200, 200, 400]
        assert answers[3][1] == {"outputs": {"y": [4.0, 5.0]}}
        assert "7" in answers[2][1]["error"] and "-9" in answers[7][1]["error"]
    assert call(0.5) == (400, {"error": "input 'index': expected whole numbers (int64), found fractions"})
    assert call(2**70)[0] == 400


def wait_until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_requests_are_answered_before_the_server_ends(tessera):
    """SIGTERM while clients call: each connection gets whole answers, then none."""
    process, port = start(tessera, "--executors", 1, "--max-delay-ms", 30)
    has_answer = threading.Event()

    def call(_):
        connection, answers = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
        try:
            while True:
                status, answer = predict(connection, x=ROW)
                assert status == 200 or (status == 503 and has_answer.is_set()), answer
                answers += 1
                has_answer.set()
        except (ConnectionError, http.client.BadStatusLine):
            return answers

    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        calls = [clients.submit(call, client) for client in range(6)]
        assert has_answer.wait(60)
        process.send_signal(signal.SIGTERM)
        assert sum(one.result(60) for one in calls) > 0
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


class HeldPool:
    """A pool whose requests end when they are told to."""

    executors = 1

    def __init__(self, pool):
        self.inputs, self.outputs = pool.inputs, pool.outputs
        self.futures = []

    def submit(self, _):
        self.futures.append(concurrent.futures.Future())
        return self.futures[-1]


def test_a_full_queue_is_503(tessera, modules):
    server, batcher = modules
    model = tessera.load(server.make_model())
    held = HeldPool(tessera.Pool(model, {"x": (1, 64)}, executors=1))
    waiting = batcher.Batcher(held, max_batch=2, max_delay=0, max_waiting=3)
    service = server.Service(held, waiting, server.row_shapes(model))
    listening = server.Server(("127.0.0.1", 0), service)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    row = np.zeros(64, np.float32)
    first = waiting.try_submit({"x": row})
    wait_until(lambda: held.futures)  # it is in a batch
    others = [waiting.try_submit({"x": row}) for _ in range(3)]
    assert None not in others and waiting.waiting == 3
    connection = http.client.HTTPConnection("127.0.0.1", listening.server_port, timeout=60)
    status, answer = predict(connection, x=ROW)
    assert (status, answer["error"]) == (503, "too many requests wait; try again later")
    for at in range(3):  # batches of one, two and one rows
        wait_until(lambda at=at: len(held.futures) > at)
        held.futures[at].set_result([np.full((2, 10), at, np.float32)])
    found = [future.result(60)[0][0] for future in (first, *others)]
    assert found == [0, 1, 1, 2]
    connection.close()
    listening.shutdown()
    listening.server_close()
    waiting.close()
    assert waiting.try_submit({"x": row}) is None


IDENTITY = helper.make_node("Identity", ["x"], ["y"])
MEAN = helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=0)


@pytest.mark.parametrize(("node", "inputs", "reason"), [
    (MEAN, {"x": ["batch", 2]}, "'y' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": [1, 2]}, "'x' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": []}, "'x' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": ["batch", "length"]}, "'x' .*expected numbers after"),
    (IDENTITY, {"x": ["batch", 2], "z": ["others", 2]}, "one symbol .*found batch, others"),
])
def test_models_that_are_not_served(tessera, modules, node, inputs, reason):
    server, _ = modules
    graph = helper.make_graph(
        [node], "other", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                          for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    loaded = tessera.load(model.SerializeToString())
    with pytest.raises(ValueError, match=reason):
        server.row_shapes(loaded)
