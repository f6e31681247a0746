"""examples/09_server: a large body takes little memory and holds up nobody."""

import concurrent.futures
import http.client
import json
import pathlib
import re
import signal
import time

import numpy as np
import pytest
from programs import end_of, start_python
from small_models import node, save_model


pytestmark = pytest.mark.alone
COUNT = 3_000_000


@pytest.fixture
def large_model(tmp_path):
    """A model with rows whose JSON has 60 MiB."""
    return save_model(tmp_path / "large.onnx", [node("Identity", "x", "y")],
                      {"x": ["batch", COUNT]}, {"y": ["batch", COUNT]})


def start(tessera, model):
    """The process of a server, and its port."""
    server = pathlib.Path(__file__).resolve().parents[3] / "examples" / "09_server" / "server.py"
    process = start_python(tessera, server, model, "--port", "0", "--executors", "1", "--max-batch",
                           "1")
    return process, int(process.stdout.readline().rsplit(":", 1)[1])


def ask_for_metrics(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    assert connection.getresponse().read()
    connection.close()


def peak_mib(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) >> 10


def test_a_large_body_holds_up_nobody(tessera, large_model):
    process, port = start(tessera, large_model)
    numbers = np.random.default_rng(0).standard_normal(COUNT).astype(np.float32)
    body = ('{"inputs": {"x": [' + ", ".join(f"{number:.17g}" for number in numbers) + "]}}").encode()
    assert len(body) > 55 << 20

    def send():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("POST", "/predict", body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    before, longest = peak_mib(process), 0.0
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        large = other.submit(send)
        while not large.done():
            begin = time.monotonic()
            ask_for_metrics(port)
            longest = max(longest, time.monotonic() - begin)
            time.sleep(0.01)
        status, answer = large.result()
    grown = peak_mib(process) - before
    end_of(process, None, signal.SIGTERM)
    found = np.array(json.loads(answer)["outputs"]["y"], np.float32)
    assert status == 200 and np.array_equal(found, numbers)
    print(f"longest {longest:.3f} s, {grown} MiB")
    # Read at once, the body held up others for 2.6 s and took 973 MiB.
    assert longest < 1 and grown < 300
