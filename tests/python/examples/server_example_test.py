"""examples/09_server answers concurrent clients as single runs do, and refuses what it must."""

import concurrent.futures
import contextlib
import http.client
import importlib
import json
import pathlib
import re
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto
from programs import end_of, start_python
from small_models import model_of, node, save_model, tensor_type

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "09_server"


@pytest.fixture(scope="module")
def modules():
    """server.py and batcher.py."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("server"), importlib.import_module("batcher")
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in ("server", "batcher", "json_rows"):
            sys.modules.pop(name, None)


def start(tessera, *arguments):
    process = start_python(tessera, EXAMPLE / "server.py", "--port", "0", *arguments)
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
        assert end_of(process, 0, signal.SIGTERM)[1] == ""


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
    "a huge float": (b'{"inputs": {"x": [1e400' + b", 0" * 63 + b"]}}", "1e400 is out of the range"),
    "a float that float32 has not": (json.dumps({"inputs": {"x": [0] * 63 + [-1e39]}}),
                                     "-1e+39 is out of the range of float32"),
    "Infinity": (b'{"inputs": {"x": [Infinity]}}', "Infinity is no JSON"),
    "-Infinity": (b'{"inputs": {"x": [0, -Infinity]}}', "-Infinity is no JSON"),
    "NaN outside of lists": (b'{"inputs": {"x": NaN}}', "NaN is no JSON"),
    "no comma": (b'{"inputs": {"x": [1 2]}}', "input 'x'"),
    "two commas": (b'{"inputs": {"x": [1,,2]}}', "input 'x'"),
    "a comma at the end": (b'{"inputs": {"x": [' + b"1," * 64 + b"]}}", "input 'x'"),
    "a leading zero": (b'{"inputs": {"x": [01]}}', "expected numbers"),
    "no digit behind the point": (b'{"inputs": {"x": [1.]}}', "expected numbers"),
    "bools": (json.dumps({"inputs": {"x": [True] * 64}}), "expected numbers"),
    "a bracket too many": (b'{"inputs": {"x": [1]]}}', "expected JSON"),
    "a long text": (b'{"inputs": {"x": "' + b"a" * 67_000 + b'"}}', "beside lists"),
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
    return save_model(path, [node("Gather", "table index", "y")],
                      {"index": tensor_type(TensorProto.INT64, ["batch"])}, {"y": ["batch", 2]},
                      {"table": np.arange(6, dtype=np.float32).reshape(3, 2)})


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
    assert end_of(process)[1] == ""


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


def row_model(path, element_type, row):
    """The rows that it is given."""
    return save_model(path, [node("Identity", "x", "y")],
                      {"x": tensor_type(element_type, ["batch", *row])},
                      {"y": tensor_type(element_type, ["batch", *row])})


@pytest.mark.parametrize(("element_type", "row", "reason"), [
    (TensorProto.UINT8, "[300, 0]", "300 is out of the range of uint8 (0 to 255)"),
    (TensorProto.UINT8, "[0, -1]", "-1 is out of the range of uint8"),
    (TensorProto.INT8, "[128, 0]", "128 is out of the range of int8"),
    (TensorProto.INT64, "[1.5, 0]", "expected whole numbers (int64), found fractions"),
    (TensorProto.INT64, "[1e2, 0]", "expected whole numbers"),
    (TensorProto.INT64, "[9223372036854775808, 0]", "out of the range of int64"),
    (TensorProto.UINT64, "[18446744073709551616, 0]", "out of the range of uint64"),
    (TensorProto.FLOAT16, "[65536, 0]", "65536 is out of the range of float16"),
    (TensorProto.DOUBLE, "[1e309, 0]", "1e309 is out of the range of float64"),
    (TensorProto.BOOL, "[2, 0]", "expected 0 or 1 (bool), found 2"),
    (TensorProto.INT64, "[" + "9" * 5000 + ", 0]", "is out of the range of int64"),
    (TensorProto.BOOL, "[" + "1" * 5000 + ", 0]", "expected 0 or 1 (bool)"),
    (TensorProto.FLOAT, "[,1 2]", "expected the shape [2]"),
    (TensorProto.FLOAT, "[1 2,]", "expected the shape [2]"),
    (TensorProto.FLOAT, "[1\n2,]", "expected the shape [2]"),
    (TensorProto.INT64, "[1, 2,]", "expected the shape [2]"),
    (TensorProto.INT64, "[1," + " " * 66000 + ",2]", "expected the shape [2]"),
    (TensorProto.FLOAT, "[1," + " " * 66000 + ",2]", "expected the shape [2]"),
    (TensorProto.FLOAT, "[1," + " " * 100000 + "2]", None),
    (TensorProto.INT64, "[1," + " " * 100000 + "2]", None),
    (TensorProto.INT64, "[9223372036854775807, -9223372036854775808]", None),
    (TensorProto.UINT64, "[18446744073709551615, 0]", None),
    (TensorProto.UINT8, "[255, 0]", None),
    (TensorProto.DOUBLE, "[1e308, -5e-324]", None),
    (TensorProto.BOOL, "[true, false]", None),
])
def test_numbers_that_the_type_does_not_hold(serve, tmp_path, element_type, row, reason):
    port = serve(row_model(tmp_path / "rows.onnx", element_type, [2]), "--executors", 1)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    status, answer = post(connection, '{"inputs": {"x": ' + row + "}}")
    if reason is None:
        assert (status, answer) == (200, {"outputs": {"y": json.loads(row)}})
    else:
        assert status == 400 and reason in answer["error"], answer


@pytest.mark.parametrize(("shape", "row", "is_right"), [
    ((0, 3), b"[]", True), ((2, 0), b"[[],[]]", True), ((2, 0), b"[]", False), ((), b"5", True),
    ((1, 1), b"[[5]]", True), ((2, 2), b"[[1,2],[3,4]]", True), ((2, 2), b"[[1,2 3],4]", False),
    ((2, 2), b"[[1,2][3,4]]", False), ((2,), b"[1e5, -2.5E-3]", True), ((1,), b"[5e]", False),
    ((1,), b"[--5]", False), ((1,), b"[05]", False), ((1,), b"[[5]]", False)])
def test_rows_are_json_of_their_shape(modules, shape, row, is_right):
    reader = sys.modules["json_rows"]
    body = b'{"inputs": {"x": ' + row + b"}}"
    try:
        found = reader.read_inputs(body, {"x": np.float32}, {"x": shape})["x"]
    except reader.WrongInput:
        assert not is_right
    else:
        assert is_right
        np.testing.assert_array_equal(found, np.array(json.loads(row), np.float32).reshape(shape))


@pytest.mark.parametrize("body", [
    '{"\u2200":1,"inputs":{"x":["a"]}}'.encode("utf-16"), b'{"inputs": {"x": [1]}, "\xff": 2}',
    b'{"inputs": {"x": "[0]"}}', b'{"inputs": {"x": ["a"]}}', b'{"inputs": {"x": {"y": [1]}}}'])
def test_bodies_that_are_no_rows(modules, body):
    reader = sys.modules["json_rows"]
    with pytest.raises(reader.WrongInput):
        reader.read_inputs(body, {"x": np.float32}, {"x": (1,)})


def talk(port, *parts, pause=0.0):
    """The answer of the server to bytes; b"" if it ends the connection without an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        answer = b""
        with contextlib.suppress(ConnectionError):
            for part in parts:
                plain.sendall(part)
                time.sleep(pause)
        with contextlib.suppress(ConnectionError):
            while part := plain.recv(4096):
                answer += part
        return answer


HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
BODY = json.dumps({"inputs": {"x": ROW}}).encode()


def chunks(*parts):
    return b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize(("headers", "body", "status"), [
    (b"Content-Length: 60000000", b"", 413),
    (b"Content-Length: " + b"9" * 30, b"", 413),
    (b"Content-Length: 400000", b"x", 413),
    (b"Content-Length: -1", b"", 400),
    (b"Content-Length: 1e3", b"", 400),
    (b"Content-Length: %d" % len(BODY), BODY, 200),
    (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n", 400),
    (b"Content-Length: 5\r\nContent-Length: %d" % len(BODY), BODY, 400),
    (b"Transfer-Encoding: gzip", b"", 400),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip", chunks(BODY), 400),
    (b"Transfer-Encoding: chunked", chunks(BODY), 200),
    (b"Transfer-Encoding: chunked", chunks(BODY[:7], BODY[7:8], BODY[8:]), 200),
    (b"Transfer-Encoding: chunked", chunks(*[b" " * 9000] * 40), 413),
    (b"Transfer-Encoding: chunked", b"ffffffff\r\n", 413),
    (b"Transfer-Encoding: chunked", b"xyz\r\n", 400),
    (b"Transfer-Encoding: chunked", b"-5\r\n", 400),
    (b"Transfer-Encoding: chunked", b"1" * 5000, 400),
    (b"Content-Length: 60000000\r\nExpect: 100-continue", b"", 413),
])
def test_bodies_are_limited_before_they_are_read(serve, headers, body, status):
    port = serve("--executors", 1)
    answer = talk(port, HEAD + headers + b"\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:300]


@pytest.mark.parametrize("headers", [b"Content-Length: %d" % (len(HEAD) + 2),
                                     b"Transfer-Encoding: chunked"])
def test_a_body_of_a_get_is_no_request(serve, headers):
    port = serve("--executors", 1)
    head = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
    answer = talk(port, head + headers + b"\r\n\r\n" + head + b"\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 400 "), answer[:300]


def test_connections_are_bounded(serve):
    port = serve("--executors", 1, "--max-connections", 3)
    idle = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(3)]
    time.sleep(0.2)
    assert talk(port).startswith(b"HTTP/1.1 503 ")
    for connection in idle:
        connection.close()
    wait_until(lambda: talk(port, HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY), BODY)
               .startswith(b"HTTP/1.1 200 "))


@pytest.mark.parametrize("parts", [
    (b"POST /pre",), (HEAD,), (HEAD + b"Content-Length: 100\r\n\r\n", *[b" "] * 20),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 20),
    (*[b"GET / HTTP/1.1\r\nA: b\r\n"] + [b"A: b\r\n"] * 20,),
])
def test_slow_clients_are_not_waited_for(tessera, modules, monkeypatch, parts):
    """Also if they send something now and then."""
    server, batcher = modules
    monkeypatch.setattr(server, "SECONDS_TO_SEND", 1)
    monkeypatch.setattr(server, "SECONDS_TO_REFUSE", 1)
    model = tessera.load(server.make_model())
    pool = tessera.Pool(model, {"x": (1, 64)}, executors=1)
    service = server.Service(pool, batcher.Batcher(pool, max_batch=1, max_delay=0, max_waiting=3),
                             server.row_shapes(model))
    listening = server.Server(("127.0.0.1", 0), service)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    begin = time.monotonic()
    answer = talk(listening.server_port, *parts, pause=0.3)
    assert time.monotonic() - begin < 20
    assert not answer.startswith(b"HTTP/1.1 200 "), answer
    listening.shutdown()
    listening.server_close()
    service.end()


IDENTITY = node("Identity", "x", "y")
MEAN = node("ReduceMean", "x", "y", axes=[0], keepdims=0)


@pytest.mark.parametrize(("node", "inputs", "reason"), [
    (MEAN, {"x": ["batch", 2]}, "'y' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": [1, 2]}, "'x' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": []}, "'x' .*expected a first dimension that is a symbol"),
    (IDENTITY, {"x": ["batch", "length"]}, "'x' .*expected numbers after"),
    (IDENTITY, {"x": ["batch", 2], "z": ["others", 2]}, "one symbol .*found batch, others"),
])
def test_models_that_are_not_served(tessera, modules, node, inputs, reason):
    server, _ = modules
    model = model_of([node], {name: shape for name, shape in inputs.items()}, "y")
    loaded = tessera.load(model.SerializeToString())
    with pytest.raises(ValueError, match=reason):
        server.row_shapes(loaded)
