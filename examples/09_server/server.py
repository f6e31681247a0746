#!/usr/bin/env python3
"""A small HTTP server that runs a model for many clients, with micro-batching.

    POST /predict   {"inputs": {"x": [0.1, ...]}}, one row of a batch -> {"outputs": {"y": [...]}}
    GET /metrics    counters and percentiles of latency, in the format of Prometheus

Answers: 200; 400 with the reason if the input is wrong; 503 if too many requests wait. The first
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
import sys
import threading
import time

import numpy as np
import tessera
from batcher import Batcher

MAX_BODY_BYTES = 64 << 20
SECONDS_TO_ANSWER = 60
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


class WrongInput(Exception):
    """What a client sent cannot be a row. The text is for the client."""


def read_input(name, value, dtype, shape):
    """The array of one input."""
    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biuf":
            raise ValueError("expected numbers in lists of equal lengths")
        if np.dtype(dtype).kind in "biu" and found.dtype.kind == "f" and found.size:
            raise ValueError(f"expected whole numbers ({dtype}), found fractions")
        with np.errstate(over="raise"):
            array = np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError, FloatingPointError) as error:
        raise WrongInput(f"input '{name}': {error}") from None
    if array.shape != shape:
        raise WrongInput(f"input '{name}': expected the shape {list(shape)}, found "
                         f"{list(array.shape)}")
    return array


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


class Service:
    """A model with its pool and batcher: JSON in, JSON out."""

    def __init__(self, pool, batcher, shapes):
        self.pool = pool
        self.batcher = batcher
        self._shapes = shapes
        self._types = {value.name: value.type for value in pool.inputs}
        self._outputs = [value.name for value in pool.outputs]
        self._lock = threading.Condition()
        self._active = 0
        self._answers = collections.Counter()
        self._latencies = collections.deque(maxlen=10_000)

    def read(self, body):
        """The inputs of a request, by name. Raises WrongInput."""
        try:
            request = json.loads(body, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise WrongInput(f"expected JSON: {error}") from None
        inputs = request.get("inputs") if isinstance(request, dict) else None
        if not isinstance(inputs, dict):
            raise WrongInput('expected {"inputs": {NAME: ROW, ...}}')
        if inputs.keys() != self._shapes.keys():
            raise WrongInput("expected the inputs " + ", ".join(sorted(self._shapes)) + "; found "
                             + (", ".join(sorted(inputs)) or "none"))
        return {name: read_input(name, value, self._types[name], self._shapes[name])
                for name, value in inputs.items()}

    def predict(self, body):
        """The status and the object of the answer."""
        try:
            future = self.batcher.try_submit(self.read(body))
        except WrongInput as error:
            return 400, {"error": str(error)}
        if future is None:
            return 503, {"error": "too many requests wait; try again later"}
        try:
            outputs = future.result(SECONDS_TO_ANSWER)
        except concurrent.futures.TimeoutError:
            return 503, {"error": f"no result within {SECONDS_TO_ANSWER} s"}
        except (tessera.InvalidArgument, tessera.InvalidModel) as error:
            return 400, {"error": str(error)}
        except Exception as error:
            return 500, {"error": str(error)}
        if not all(np.isfinite(output).all() for output in outputs):
            return 500, {"error": "an output is NaN or infinite, which JSON cannot express"}
        return 200, {"outputs": {name: output.tolist()
                                 for name, output in zip(self._outputs, outputs, strict=True)}}

    @contextlib.contextmanager
    def active_request(self):
        """From the arrival of a request until its answer is sent."""
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


# --- HTTP ---


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    timeout = 30  # seconds that a client may take to send a request

    def do_POST(self):
        with self.server.service.active_request():
            begin = time.perf_counter()
            status, answer = self._answer()
            self.server.service.note(status, time.perf_counter() - begin)
            self._send(status, "application/json", json.dumps(answer).encode())

    def do_GET(self):
        if self.path == "/metrics":
            text = self.server.service.metrics()
            self._send(200, "text/plain; version=0.0.4", text.encode())
        else:
            self._send(404, "application/json", b'{"error": "expected /metrics"}')

    def _answer(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 12 or int(length) > MAX_BODY_BYTES:
            self.close_connection = True  # what follows is no request
            return 400, {"error": f"expected a Content-Length of at most {MAX_BODY_BYTES}"}
        body = self.rfile.read(int(length))
        if self.path != "/predict":
            return 404, {"error": "expected /predict"}
        return self.server.service.predict(body)

    def _send(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # a line for each request would be slower than the model


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, service):
        super().__init__(address, Handler)
        self.service = service

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients may go away
            super().handle_error(request, client_address)


def warm_up(pool, shapes, max_batch):
    """Lets the executors make their plans before the first request: one for each size of a batch.
    Which executor takes which request is not known, so each size comes several times."""
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
    return Service(pool, batcher, shapes)


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
    arguments = parser.parse_args(words)
    if arguments.max_batch < 1:
        parser.error("argument --max-batch: expected at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    try:
        model = tessera.load(arguments.model or make_model())
        service = make_service(model, arguments)
        server = Server((arguments.host, arguments.port), service)
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
