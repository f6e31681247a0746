#!/usr/bin/env python3
"""A small HTTP server that runs a model for many clients, with micro-batching.

    POST /predict   {"inputs": {"x": [0.1, ...]}}, one row of a batch -> {"outputs": {"y": [...]}}
    GET /metrics    counters and percentiles of latency, in the format of Prometheus

Answers: 200; 400 with the reason if the input is wrong; 408 or a closed connection if a client is
slow; 413 if the body is larger than any row; 503 if too many requests wait or connect. The first
dimension of all inputs and outputs of the model must be one symbol, the size of the batch. Without
MODEL, it serves a small network that it makes itself.

example: PYTHONPATH=build/release/python .venv/bin/python examples/09_server/server.py --port 8000"""

import argparse
import collections
import concurrent.futures
import contextlib
import http.server
import json
import pathlib
import signal
import socket
import sys
import threading
import time

import numpy as np
import tessera
from batcher import Batcher
from json_rows import WrongInput, max_body_bytes, read_inputs, write_array

SECONDS_TO_ANSWER = 60
SECONDS_TO_SEND = 30  # for a client, until its headers or body have arrived, or it has the answer
SECONDS_TO_REFUSE = 2  # for a client that was too slow
SLOWEST_BYTES_PER_SECOND = 1 << 20  # for large bodies and answers
BODIES_AT_ONCE = 4  # number of largest bodies that may be in memory
READ_BYTES = 256 << 10
PIECES_AT_ONCE = 64  # of an answer
MAX_LINE_BYTES = 1 << 10  # of a chunked body
SECONDS_TO_END = 10  # for answers on their way when the server ends
QUANTILES = (0.5, 0.9, 0.99)


def make_model():
    """A network of two layers, with random weights."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights = [numpy_helper.from_array(
        random.standard_normal(shape).astype(np.float32) / 8, name)
        for name, shape in (("w1", (64, 128)), ("w2", (128, 10)))]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("MatMul", ["r", "w2"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])],
        "layers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


# --- Inputs and outputs ---


def row_shapes(model):
    """The shape of each input without the axis of the batch. Raises ValueError, naming the value,
    if the first dimension is not the same symbol everywhere, or another one is open."""
    symbols = set()
    for value in [*model.inputs, *model.outputs]:
        if not value.shape or not isinstance(value.shape[0], str):
            raise ValueError(f"'{value.name}' ({value.text}): expected a first dimension that is a "
                             "symbol, the size of the batch")
        symbols.add(value.shape[0])
    if len(symbols) > 1:
        raise ValueError("expected one symbol for the size of the batch, found "
                         + ", ".join(sorted(symbols)))
    for value in model.inputs:
        if any(isinstance(dim, str) for dim in value.shape[1:]):
            raise ValueError(f"'{value.name}' ({value.text}): expected numbers after the size of "
                             "the batch")
    return {value.name: tuple(value.shape[1:]) for value in model.inputs}


class Service:
    """A model with its pool and batcher: JSON in, JSON out."""

    def __init__(self, pool, batcher, shapes, max_body=None):
        self.pool = pool
        self.batcher = batcher
        self.max_body = max_body_bytes(shapes) if max_body is None else max_body
        self._shapes = shapes
        self._bytes = 0  # of bodies in memory
        self._types = {value.name: value.type for value in pool.inputs}
        self._outputs = [value.name for value in pool.outputs]
        self._lock = threading.Condition()
        self._active = 0
        self._answers = collections.Counter()
        self._latencies = collections.deque(maxlen=10_000)

    @contextlib.contextmanager
    def memory_for(self, size):
        """Reserves the bytes of a body within the limit; False if there are too many."""
        with self._lock:
            fits = self._bytes + size <= BODIES_AT_ONCE * self.max_body
            self._bytes += size if fits else 0
        try:
            yield fits
        finally:
            with self._lock:
                self._bytes -= size if fits else 0

    def predict(self, body):
        """The status and the answer in pieces."""
        try:
            future = self.batcher.try_submit(read_inputs(body, self._types, self._shapes))
        except WrongInput as error:
            return failure(400, str(error))
        if future is None:
            return failure(503, "too many requests wait; try again later")
        try:
            outputs = future.result(SECONDS_TO_ANSWER)
        except concurrent.futures.TimeoutError:
            return failure(503, f"no result within {SECONDS_TO_ANSWER} s")
        except (tessera.InvalidArgument, tessera.InvalidModel) as error:
            return failure(400, str(error))
        except Exception as error:
            return failure(500, str(error))
        try:
            return 200, self._write(outputs)
        except ValueError:
            return failure(500, "an output is NaN or infinite, which JSON cannot express")

    def _write(self, outputs):
        pieces = [b'{"outputs": {']
        for index, (name, output) in enumerate(zip(self._outputs, outputs, strict=True)):
            pieces += [b", " if index else b"", json.dumps(name).encode(), b": ",
                       *write_array(output)]
        return [*pieces, b"}}"]

    @contextlib.contextmanager
    def active_request(self):
        """A context from the arrival of a request until its answer is sent."""
        with self._lock:
            self._active += 1
        try:
            yield
        finally:
            with self._lock:
                self._active -= 1
                self._lock.notify_all()

    def end(self):
        """Answers the requests that have arrived."""
        self.batcher.close()
        self.pool.close()
        with self._lock:
            self._lock.wait_for(lambda: self._active == 0, SECONDS_TO_END)

    def note(self, status, seconds):
        with self._lock:
            self._answers[status] += 1
            if status == 200:
                self._latencies.append(seconds)

    def metrics(self):
        with self._lock:
            answers, latencies = dict(self._answers), list(self._latencies)
        lines = [f'requests_total{{status="{status}"}} {count}'
                 for status, count in sorted(answers.items())]
        if latencies:
            lines += [f'latency_seconds{{quantile="{quantile}"}} {value:.6f}'
                      for quantile, value in zip(QUANTILES, np.quantile(latencies, QUANTILES),
                                                 strict=True)]
        lines += [f"batches_total {self.batcher.batches}", f"rows_total {self.batcher.rows}",
                  f"requests_waiting {self.batcher.waiting}", f"executors {self.pool.executors}"]
        return "\n".join(lines) + "\n"


def failure(status, reason):
    return status, [json.dumps({"error": reason}).encode()]


# --- HTTP ---


class Deadlines:
    """Ends connections whose client takes too long: first no more is read, so that an answer can
    still be sent, then nothing is sent either."""

    def __init__(self):
        self._latest = {}  # time and next end, by socket
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="deadlines", daemon=True).start()

    def set(self, connection, seconds):
        """Replaces the deadline of this connection. None: it has no more."""
        with self._lock:
            if seconds is None:
                self._latest.pop(connection, None)
            else:
                self._latest[connection] = time.monotonic() + seconds, socket.SHUT_RD

    def _work(self):
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            with self._lock:
                late = [(one, end) for one, (latest, end) in self._latest.items() if latest < now]
                for connection, end in late:
                    del self._latest[connection]
                    if end == socket.SHUT_RD:
                        self._latest[connection] = now + SECONDS_TO_REFUSE, socket.SHUT_RDWR
            for connection, end in late:
                with contextlib.suppress(OSError):
                    connection.shutdown(end)


class WrongBody(Exception):
    """A body that is not read, with the status and the reason."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open

    def handle_one_request(self):
        self._allow(SECONDS_TO_SEND)
        super().handle_one_request()

    def finish(self):
        self._allow(None)
        super().finish()

    def _allow(self, seconds, size=0):
        self.server.deadlines.set(
            self.connection, seconds and seconds + size / SLOWEST_BYTES_PER_SECOND)

    def handle_expect_100(self):
        try:
            self._body_size()
        except WrongBody:
            return True  # do_POST refuses it, and the client need not send it
        return super().handle_expect_100()

    def do_POST(self):
        with self.server.service.active_request():
            begin = time.perf_counter()
            try:
                status, answer = self._answer()
            except WrongBody as error:
                self.close_connection = True  # what follows is no request
                status, answer = failure(*error.args)
            self.server.service.note(status, time.perf_counter() - begin)
            self._send(status, answer)

    def do_GET(self):
        if self._announces_body():
            self.close_connection = True  # a body would be read as the next request
            self._send(*failure(400, "expected no body"))
        elif self.path == "/metrics":
            text = self.server.service.metrics()
            self._send(200, [text.encode()], "text/plain; version=0.0.4")
        else:
            self._send(*failure(404, "expected /metrics"))

    def _announced(self, header):
        return self.headers.get_all(header, [])

    def _announces_body(self):
        lengths = self._announced("Content-Length")
        return bool(self._announced("Transfer-Encoding")) or any(size != "0" for size in lengths)

    def _body_size(self):
        """The size that the headers announce; None for a body in chunks. Raises WrongBody."""
        limit = self.server.service.max_body
        lengths, codings = self._announced("Content-Length"), self._announced("Transfer-Encoding")
        if len(lengths) > 1 or len(codings) > 1:
            raise WrongBody(400, "expected one Content-Length or one Transfer-Encoding")
        length, coding = next(iter(lengths), None), next(iter(codings), None)
        if coding is not None:
            if length is not None or coding.strip().lower() != "chunked":
                raise WrongBody(400, "expected either a Content-Length or the Transfer-Encoding "
                                     "'chunked'")
            return None
        if length is None or not (length.isascii() and length.isdecimal()):
            raise WrongBody(400, f"expected a Content-Length of at most {limit}")
        if len(length) > 18 or int(length) > limit:
            raise WrongBody(413, f"expected a body of at most {limit} bytes, which any row fits in")
        return int(length)

    def _answer(self):
        size = self._body_size()
        service = self.server.service
        with service.memory_for(service.max_body if size is None else size) as fits:
            if not fits:
                raise WrongBody(503, "too many large requests; try again later")
            self._allow(SECONDS_TO_SEND, service.max_body if size is None else size)
            body = self._read_chunks() if size is None else self._read(size)
            self._allow(None)
            if self.path != "/predict":
                return failure(404, "expected /predict")
            return service.predict(body)

    def _read(self, size):
        body = bytearray()
        while len(body) < size:
            piece = self.rfile.read1(min(READ_BYTES, size - len(body)))
            if not piece:
                raise WrongBody(408, "the body did not arrive")
            body += piece
        return body

    def _read_chunks(self):
        """RFC 9112, section 7.1."""
        body = bytearray()
        while True:
            size = self._read_line().split(b";")[0].strip()
            if not size or len(size) > 16 or size.strip(b"0123456789abcdefABCDEF"):
                raise WrongBody(400, "expected the size of a chunk in hexadecimal digits")
            if len(body) + int(size, 16) > self.server.service.max_body:
                raise WrongBody(413, f"expected a body of at most {self.server.service.max_body} "
                                     "bytes, which any row fits in")
            if int(size, 16) == 0:
                for _ in range(100):
                    if not self._read_line():
                        return body
                raise WrongBody(400, "expected at most 100 trailers")
            body += self._read(int(size, 16))
            if self._read_line():
                raise WrongBody(400, "expected the end of a chunk")

    def _read_line(self):
        line = self.rfile.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise WrongBody(400, "expected a whole line in a body of chunks")
        return line.rstrip(b"\r\n")

    def _send(self, status, pieces, kind="application/json"):
        self._allow(SECONDS_TO_SEND, sum(map(len, pieces)))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(sum(map(len, pieces))))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        for at in range(0, len(pieces), PIECES_AT_ONCE):
            self.wfile.write(b"".join(pieces[at:at + PIECES_AT_ONCE]))

    def log_message(self, *_):
        pass  # a line for each request would be slower than the model


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, service, max_connections=128):
        super().__init__(address, Handler)
        self.service = service
        self.deadlines = Deadlines()
        self._free = threading.Semaphore(max_connections)  # each has a thread

    def process_request(self, request, client_address):
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        self.service.note(503, 0)
        with contextlib.suppress(OSError):
            request.setblocking(False)
            request.send(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                         b"Retry-After: 1\r\nContent-Length: 0\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # clients may go away
            super().handle_error(request, client_address)


def warm_up(pool, shapes, max_batch):
    """Lets the executors make their plans before the first request: one for each size of a batch.
    It is unknown which executor takes which request, so each size comes several times."""
    for rows in range(1, max_batch + 1):
        inputs = {value.name: np.zeros((rows, *shapes[value.name]), value.type)
                  for value in pool.inputs}
        concurrent.futures.wait([pool.submit(inputs) for _ in range(4 * pool.executors)])


def make_service(model, arguments):
    shapes = row_shapes(model)
    pool = tessera.Pool(model, {name: (1, *shape) for name, shape in shapes.items()},
                        executors=arguments.executors, most_shapes=arguments.max_batch)
    warm_up(pool, shapes, arguments.max_batch)
    batcher = Batcher(pool, max_batch=arguments.max_batch, max_delay=arguments.max_delay_ms / 1000,
                      max_waiting=arguments.max_waiting)
    return Service(pool, batcher, shapes, arguments.max_body_bytes)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=pathlib.Path, metavar="MODEL")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--executors", type=int, default=0, help="default 0: one for each core")
    parser.add_argument("--max-batch", type=int, default=8, help="rows (default 8)")
    parser.add_argument("--max-delay-ms", type=float, default=2.0,
                        help="how long the first request of a batch waits for others (default 2)")
    parser.add_argument("--max-waiting", type=int, default=256,
                        help="requests; more are refused with 503 (default 256)")
    parser.add_argument("--max-connections", type=int, default=128,
                        help="more are refused with 503 (default 128)")
    parser.add_argument("--max-body-bytes", type=int, default=None,
                        help="larger bodies are refused with 413 (default: what any row needs)")
    arguments = parser.parse_args(words)
    for name in ("max_batch", "max_connections"):
        if getattr(arguments, name) < 1:
            parser.error(f"argument --{name.replace('_', '-')}: expected at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    try:
        model = tessera.load(arguments.model or make_model())
        service = make_service(model, arguments)
        server = Server((arguments.host, arguments.port), service, arguments.max_connections)
    except (tessera.Error, ValueError, OSError) as error:
        sys.exit(f"server: {error}")
    is_ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_ending.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"serving on http://{arguments.host}:{server.server_port}", flush=True)
    is_ending.wait()
    server.shutdown()
    service.end()


if __name__ == "__main__":
    main()
