"""The files of `tessera explain`: the page in a headless browser, the model with notes in others'
checker and runtime."""

import json
import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture
def model(tmp_path):
    """Two branches that meet, a skip over several layers, and a name that would end a script."""
    random = np.random.default_rng(0)

    def weight(name):
        return numpy_helper.from_array(random.standard_normal((16, 16, 3, 3)).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="stem</script><b>", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="left", pads=[1] * 4),
        helper.make_node("MaxPool", ["r1"], ["p"], name="right", kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Add", ["c2", "p"], ["a"], name="meet"),
        helper.make_node("Add", ["a", "r1"], ["b"], name="skip"),
        helper.make_node("Softmax", ["b"], ["y"], name="top", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        [weight("w1"), weight("w2")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10),
              path)
    return path


def explain(tessera_binary, model, *options):
    """The JSON of explain, by measured costs."""
    done = subprocess.run(
        [tessera_binary, "explain", model, "--optimize", "--threads", "1", "--json", *options],
        check=True, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


def test_json_has_prices_margins_and_the_bound(tessera_binary, model):
    report = explain(tessera_binary, model)
    placement = report["placement"]
    assert placement["proven_optimal"] is True
    assert 0 < placement["lower_bound_ms"] <= placement["predicted_ms"] * (1 + 1e-9)
    assert placement["measured_ms"] == pytest.approx(report["median_us"] / 1000)
    assert placement["gap"] == pytest.approx(
        placement["predicted_ms"] / placement["lower_bound_ms"] - 1, abs=1e-9)
    # The rest is what a run takes besides its steps.
    steps_us = sum(step["predicted_us"] for step in report["steps"])
    assert 0 < steps_us <= 1000 * placement["predicted_ms"] * (1 + 1e-6)
    for candidate in report["candidates"]:
        assert {"workspace_bytes", "pack_bytes", "library_bytes"} <= candidate.keys()
        # So few nodes are done in time.
        assert candidate["behind_seconds"] is not None and candidate["ahead_seconds"] is not None
    plain = explain(tessera_binary, model, "--margins", "0")
    assert all(candidate["behind_seconds"] is None for candidate in plain["candidates"])


def test_what_was_not_chosen_is_behind(needs_a_library, tessera_binary, model):
    candidates = explain(tessera_binary, model)["candidates"]
    assert any(candidate["behind_seconds"] not in (0, "inf") for candidate in candidates)


def test_bench_tells_of_the_placement(tessera_binary, model):
    def placement(*options):
        done = subprocess.run(
            [tessera_binary, "bench", model, "--seconds", "0.02", "--json", *options],
            check=True, capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)["placement"]

    known = placement("--optimize")
    assert known["predicted_ms"] > 0 and known["solve_ms"] > 0 and known["proven_optimal"] is True
    unknown = placement()
    assert unknown.pop("measured_ms") > 0
    assert unknown and all(figure is None for figure in unknown.values())


def test_the_model_with_notes_is_sound_and_means_the_same(tessera_binary, model, tmp_path):
    written = tmp_path / "plan.onnx"
    report = explain(tessera_binary, model, "--onnx", written)
    noted = onnx.load(written)
    onnx.checker.check_model(noted, full_check=True)
    notes = {node.name: {note.key: note.value for note in node.metadata_props}
             for node in noted.graph.node}
    told = {node: step for step in report["steps"] for node in step["nodes"]}
    assert set(notes) == set(told)
    for node, step in told.items():
        assert notes[node]["tessera.step"] == str(step["index"])
        assert notes[node]["tessera.backend"] == step["backend"]
        assert notes[node]["tessera.algorithm"] == step["algorithm"]
        assert float(notes[node]["tessera.milliseconds"]) == pytest.approx(
            step["median_us"] / 1000, abs=1e-4)
        for port in step["outputs"]:
            assert f"{port['value']} {port['layout']}" in notes[node]["tessera.output_layouts"]
    conversions = [step for step in report["steps"] if step["op"] == "convert"]
    noted_conversions = " ".join(note.get("tessera.conversions", "") for note in notes.values())
    for step in conversions:
        assert f"step {step['index']}: {step['name']} " in noted_conversions

    onnxruntime = pytest.importorskip("onnxruntime")
    x = np.random.default_rng(1).standard_normal((1, 16, 8, 8)).astype(np.float32)
    found, expected = (
        onnxruntime.InferenceSession(os.fspath(file), providers=["CPUExecutionProvider"])
        .run(None, {"x": x})[0] for file in (written, model))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


class Browser:
    """A headless Chromium, by its DevTools protocol over two pipes: messages end in a zero byte."""

    def __init__(self, program, profile):
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", program, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--window-size=1400,1000", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.held = b""
        self.number = 0
        self.session = None
        self.events = []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"]
                      if one["type"] == "page")
        self.session = self.call("Target.attachToTarget",
                                 {"targetId": target["targetId"], "flatten": True})["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.held:
            read = os.read(self.input, 1 << 16)
            assert read, "the browser went away"
            self.held += read
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.call("Page.navigate", {"url": url})
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self):
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in kinds]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def close(self):
        os.close(self.output)
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.input)


@pytest.fixture
def browser(tmp_path):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no browser: apt-get install chromium")
    made = Browser(program, tmp_path / "profile")
    yield made
    made.close()


def column(browser, title):
    """The cells of the steps' table under `title`."""
    return browser.evaluate(f"""(() => {{
        const table = document.getElementById("steps");
        const titles = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
        const place = titles.indexOf({json.dumps(title)});
        return [...table.tBodies[0].rows].map(row => row.cells[place].textContent);
    }})()""")


def click(browser, title):
    browser.evaluate(f"""[...document.querySelectorAll("#steps th button")]
        .find(button => button.textContent === {json.dumps(title)}).click()""")


def test_the_page_shows_and_sorts_without_complaint(tessera_binary, model, tmp_path, browser):
    page = tmp_path / "plan.html"
    report = explain(tessera_binary, model, "--html", page)
    url = page.as_uri()
    browser.open(url)
    steps = report["steps"]
    assert browser.evaluate("document.querySelectorAll('#graph g.step').length") == len(steps)
    assert column(browser, "name") == [step["name"] for step in steps]
    # Boxes stand apart, within the picture.
    boxes = browser.evaluate("""[...document.querySelectorAll("#graph g.step rect")].map(box => {
        const found = box.getBoundingClientRect();
        return [found.left, found.top, found.right, found.bottom];
    })""")
    for index, one in enumerate(boxes):
        assert one[2] > one[0] and one[3] > one[1]
        for other in boxes[:index]:
            assert (one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1]
                    or other[3] <= one[1])

    click(browser, "µs")
    times = list(map(float, column(browser, "µs")))
    assert times == sorted(times, reverse=True) and len(times) == len(steps)
    click(browser, "µs")
    assert list(map(float, column(browser, "µs"))) == sorted(times)
    click(browser, "op")
    assert column(browser, "op") == sorted(column(browser, "op"), key=str.lower)

    browser.evaluate("""document.querySelector('#graph g.step[data-step="1"]')
        .dispatchEvent(new MouseEvent("mouseenter"))""")
    details = browser.evaluate("document.getElementById('details').textContent")
    assert steps[1]["name"] in details and "chosen" in details
    assert browser.evaluate("document.querySelectorAll('#bar span').length") == sum(
        step["share"] > 0 for step in steps)
    assert browser.complaints() == []
    assert set(browser.requests()) == {url}, "one file that loads nothing else"


def test_the_page_without_costs_and_of_many_steps(tessera_binary, tmp_path, browser):
    nodes = [helper.make_node("MatMul", [f"v{index}", "w"], [f"v{index + 1}"]) for index in range(170)]
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    shape = [1, 4]
    graph = helper.make_graph(
        nodes, "long", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("v170", TensorProto.FLOAT, shape)], [weight])
    model = tmp_path / "long.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10),
              model)
    page = tmp_path / "plan.html"
    subprocess.run([tessera_binary, "explain", model, "--html", page, "--backends", "reference"],
                   check=True, capture_output=True, timeout=60)
    browser.open(page.as_uri())
    assert browser.evaluate("document.querySelectorAll('#graph g.step').length") == 170
    assert browser.evaluate("""(() => {
        const graph = document.getElementById("graph");
        return graph.scrollHeight > graph.clientHeight && graph.scrollWidth <= graph.clientWidth;
    })()""") is True, "a strip that scrolls"
    assert browser.complaints() == []
