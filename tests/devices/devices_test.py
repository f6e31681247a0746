"""Devices from the command line and from Python, with the fake device of tests/backends/fake: which
device is used, what it costs, and what happens after failures and forks."""

import json
import os

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model


@pytest.fixture(scope="module")
def fake(built_plugin):
    return built_plugin("fake")


@pytest.fixture
def run_tessera(tessera_binary, fake, tmp_path):
    """Calls the program with `fake` and the reference; returns its output, or its error."""

    def call(command, model, *options, settings="", code=0):
        environment = {**os.environ, "TESSERA_TEST_FAKE": settings}
        done = run_program(tessera_binary, command, model, "--backend-path", fake, "--backends",
                           "fake,reference", "--threads", "1", *options, code=code, cwd=tmp_path,
                           env=environment)
        return done.stdout if code == 0 else done.stderr

    return call


def save_product(path, size):
    """y = x W, then Relu."""
    weight = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    nodes = [node("MatMul", "x w", "product", "product"), node("Relu", "product", "y", "relu")]
    return save_model(path, nodes, {"x": [size, size]}, {"y": [size, size]}, {"w": weight})


def explain(run_tessera, model, *options, **keywords):
    return json.loads(run_tessera("explain", model, "--json", "--runs", "1", *options, **keywords))


def test_copies_between_devices_are_steps_with_bytes(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 16)
    report = explain(run_tessera, model, settings="devices=2,peer=1")
    copies = [step for step in report["steps"] if step["op"] == "convert+copy"]
    assert [(step["inputs"][0]["device"], step["outputs"][0]["device"]) for step in copies] == [
        ("cpu", "fake"), ("fake", "cpu")]
    assert all(step["moved_bytes"] == 2 * 16 * 16 * 4 for step in copies)
    assert {step["backend"] for step in report["steps"]} == {"fake"}
    assert copies[0]["outputs"][0]["layout"] == "row_major@fake"


def test_devices_are_chosen_by_name(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 16)
    both = "devices=2,peer=1"
    second = explain(run_tessera, model, "--device", "fake:1", settings=both)
    devices = {port["device"] for step in second["steps"] for port in step["outputs"]}
    assert devices == {"cpu", "fake:1"}
    host = explain(run_tessera, model, "--device", "cpu", settings=both)
    assert {step["backend"] for step in host["steps"]} == {"reference"}
    assert any("not among the chosen devices" in group["reason"] for group in host["refusals"])
    error = run_tessera("explain", model, "--device", "fake:7", settings=both, code=2)
    assert "device 'fake:7'" in error and "'cpu', 'fake', 'fake:1'" in error


def test_results_do_not_depend_on_the_device(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 33)
    np.save(tmp_path / "x.npy", np.random.default_rng(2).standard_normal((33, 33), np.float32))
    outputs = []
    for folder, options in (("host", ["--device", "cpu"]), ("fake", []),
                            ("bulk", ["--max-bulk", 1])):
        run_tessera("run", model, "--input", "x=x.npy", "--output", folder, *options)
        outputs.append(np.load(tmp_path / folder / "output_0.npy"))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])


def test_a_trace_has_a_line_for_each_device(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 16)
    run_tessera("run", model, "--random", 1, "--trace", "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    threads = {event["args"]["name"]: event["tid"] for event in events
               if event["name"] == "thread_name"}
    assert set(threads) == {"host", "device fake"}
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"]
    on_device = [event["name"] for event in events
                 if event["ph"] == "X" and event["tid"] == threads["device fake"]]
    assert on_device == ["x", "product", "relu", "y"]
    on_host = [event["name"] for event in events
               if event["ph"] == "X" and event["tid"] == threads["host"]]
    assert "enqueue product" in on_host and "synchronise" in on_host


def test_the_memory_of_a_device_is_no_part_of_the_hosts(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 16)
    memory = json.loads(run_tessera("inspect", model, "--memory", "--json"))
    assert memory["arena_bytes"] == memory["naive_bytes"] == memory["weight_bytes"] == 0
    [device] = memory["device_memory"]
    assert device["device"] == "fake" and device["weight_bytes"] == 16 * 16 * 4
    assert device["arena_bytes"] == device["lower_bound_bytes"] > 0


def test_a_device_that_runs_out_of_memory_is_named(run_tessera, tmp_path):
    model = save_product(tmp_path / "model.onnx", 64)
    report = explain(run_tessera, model, settings="memory_bytes=10000")
    assert {step["backend"] for step in report["steps"]} == {"reference"}


class Sweep:
    """Chooses by measured prices between `fake` on the processor, whose kernels take a constant
    time, and on its device, whose kernels take another time in each call."""

    HOST_US = 4000
    COPY_US = 500

    def __init__(self, run_tessera, model):
        self._run = run_tessera
        self._model = model

    def report(self, kernel_us):
        settings = (f"kernel_ns={int(1000 * kernel_us)},copy_ns={1000 * self.COPY_US},detects=0,"
                    f"host_kernels=1,host_kernel_ns={1000 * self.HOST_US}")
        # By its size, the model would get a tenth of a second, in which not even one is measured.
        return explain(self._run, self._model, "--optimize", "--cache-dir", f"cache-{kernel_us}",
                       "--tune-budget", "60", "--pin", "product=fake", "--pin", "relu=fake",
                       settings=settings)

    @staticmethod
    def is_on_device(report):
        return any(step["algorithm"] == "fake:0" and step["nodes"] == ["product"]
                   for step in report["steps"])

    @staticmethod
    def prices(report):
        """Predicted microseconds of the whole on the processor, and on the device."""
        of = {}
        for candidate in report["candidates"]:
            of[candidate["nodes"][0], candidate["algorithm"]] = candidate["price_us"]
        ends = {"row_major", "row_major@fake"}
        copies = [conversion["time"]["time_us"] for conversion in report["conversions"]
                  if {conversion["from_layout"], conversion["to_layout"]} == ends]
        assert len(copies) == 2
        nodes = ("product", "relu")
        return (sum(of[node, "fake:host"] for node in nodes),
                sum(copies) + sum(of[node, "fake:0"] for node in nodes))


@pytest.mark.alone
def test_a_device_is_used_as_long_as_it_pays(run_tessera, tmp_path):
    """While the kernels' duration grows, the choice changes where predicted costs are equal."""
    sweep = Sweep(run_tessera, save_product(tmp_path / "model.onnx", 16))
    fast, slow = Sweep.HOST_US / 4, Sweep.HOST_US * 4
    assert sweep.is_on_device(sweep.report(fast))
    assert not sweep.is_on_device(sweep.report(slow))
    while slow > 1.05 * fast:
        middle = (fast * slow) ** 0.5
        if sweep.is_on_device(sweep.report(middle)):
            fast = middle
        else:
            slow = middle
    host, device = sweep.prices(sweep.report((fast * slow) ** 0.5))
    assert device == pytest.approx(host, rel=0.1)
