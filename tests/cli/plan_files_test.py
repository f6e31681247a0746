"""The files of `tessera explain`: the page in a headless browser, and the model with notes in the
checker and the runtime of other projects."""

import json
import os

import numpy as np
import onnx
import pytest
from headless_browser import Browser, find_browser
from programs import json_of, run_program
from small_models import node, normal, save_model


@pytest.fixture
def model(tmp_path):
    """Two branches that meet, an edge across several layers, and a name that would end a script."""
    random = np.random.default_rng(0)
    weights = {name: normal(random, 16, 16, 3, 3) for name in ("w1", "w2")}
    nodes = [node("Conv", "x w1", "c1", "stem</script><b>", pads=[1] * 4),
             node("Relu", "c1", "r1", "relu"), node("Conv", "r1 w2", "c2", "left", pads=[1] * 4),
             node("MaxPool", "r1", "p", "right", kernel_shape=[3, 3], pads=[1] * 4),
             node("Add", "c2 p", "a", "meet"), node("Add", "a r1", "b", "skip"),
             node("Softmax", "b", "y", "top", axis=1)]
    shape = [1, 16, 8, 8]
    return save_model(tmp_path / "model.onnx", nodes, {"x": shape}, {"y": shape}, weights)


def explain(tessera_binary, model, *options):
    """The JSON of explain, with a choice by measured costs."""
    return json_of(tessera_binary, "explain", model, "--optimize", "--threads", "1", "--json",
                   *options)


def test_json_has_prices_margins_and_the_bound(tessera_binary, model):
    report = explain(tessera_binary, model)
    placement = report["placement"]
    assert placement["is_proven_optimal"] is True
    assert 0 < placement["lower_bound_us"] <= placement["predicted_us"] * (1 + 1e-9)
    assert placement["measured_us"] == pytest.approx(report["median_us"])
    assert placement["gap"] == pytest.approx(
        placement["predicted_us"] / placement["lower_bound_us"] - 1, abs=1e-9)
    # The rest is the overhead of a run outside its steps.
    steps_us = sum(step["predicted_us"] for step in report["steps"])
    assert 0 < steps_us <= placement["predicted_us"] * (1 + 1e-6)
    for candidate in report["candidates"]:
        assert {"workspace_bytes", "pack_bytes", "library_bytes"} <= candidate.keys()
        # With so few nodes, all margins are found in time.
        assert candidate["margin"] != "unknown"
    plain = explain(tessera_binary, model, "--margins", "0")
    assert all(candidate["behind_us"] is None and candidate["margin"] in ("chosen", "unknown")
               for candidate in plain["candidates"])


def test_what_was_not_chosen_is_behind(needs_a_library, tessera_binary, model):
    candidates = explain(tessera_binary, model)["candidates"]
    assert any(candidate["margin"] in ("behind", "never") and candidate["behind_us"] > 0
               for candidate in candidates)


def test_bench_tells_of_the_placement(tessera_binary, model):
    def placement(*options):
        return json_of(tessera_binary, "bench", model, "--seconds", "0.02", "--json",
                       *options)["placement"]

    known = placement("--optimize")
    assert known["predicted_us"] > 0 and known["solve_us"] > 0 and known["is_proven_optimal"] is True
    unknown = placement()
    assert unknown.pop("measured_us") > 0 and unknown.pop("contenders") == []
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


@pytest.fixture
def browser(tmp_path):
    program = find_browser()
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
    # Boxes must not overlap and must be inside the picture.
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
    assert steps[1]["name"] in details and "used" in details
    assert browser.evaluate("document.querySelectorAll('#bar span').length") == sum(
        step["share"] > 0 for step in steps)
    assert browser.complaints() == []
    assert set(browser.requests()) == {url}, "one file that loads nothing else"


def within_window(browser):
    """Elements that extend beyond the window or their enclosing box: tag, text and right edge."""
    return browser.evaluate("""(() => {
        const found = [];
        const told = (one, end, most) => found.push([one.tagName, one.textContent.slice(0, 40), end, most]);
        const width = document.documentElement.clientWidth;
        for (const one of document.querySelectorAll("body *")) {
            if (one.closest("#graph svg, script, noscript")) continue;
            const box = one.getBoundingClientRect();
            if (box.width > 0 && box.right > width + .5) told(one, box.right, width);
        }
        for (const one of document.querySelectorAll("#graph g.step text")) {
            const box = one.getBoundingClientRect();
            const around = one.parentNode.querySelector("rect").getBoundingClientRect();
            if (box.right > around.right + .5 || box.left < around.left) told(one, box.right, around.right);
        }
        const page = document.documentElement;
        if (page.scrollWidth > page.clientWidth) told(page, page.scrollWidth, page.clientWidth);
        return found;
    })()""")


LONG = "a_name_that_goes_on_" * 12


@pytest.fixture
def hostile_model(tmp_path):
    """Names that are long, contain markup, reverse the text direction, or are invisible."""
    markup = "</script><img src=x onerror=window.hurt=1><!--"
    turned = "\u202egnp.exe\u200b\u0007"
    nodes = [node("MatMul", "x w", ["m" + LONG], markup + LONG),
             node("Add", ["m" + LONG, "b"], "a", turned + LONG),
             node("Relu", "a", "r", "\u4e2d\u6587" * 80),
             node("Softmax", "r", "y", f"<b>{markup}</b>")]
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    return save_model(tmp_path / f"{LONG[:200]}.onnx", nodes, {"x": [64, 64]}, {"y": [64, 64]},
                      {"w": weight, "b": weight[0]})


@pytest.mark.parametrize("width", [800, 1280, 1920])
def test_nothing_leaves_the_window_and_no_name_is_markup(tessera_binary, hostile_model, tmp_path,
                                                         browser, width):
    page = tmp_path / "plan.html"
    report = explain(tessera_binary, hostile_model, "--html", page)
    browser.resize(width)
    browser.open(page.as_uri())
    assert within_window(browser) == []
    assert browser.evaluate("document.querySelectorAll('img, td b, h3 b').length") == 0
    assert browser.evaluate("window.hurt") is None
    # Pointing at a shortened name shows the whole name.
    titles = browser.evaluate("""[...document.querySelectorAll("#steps td.name")].map(one => one.title)""")
    assert [len(title) >= len(step["name"]) for title, step in zip(titles, report["steps"])] == [
        True] * len(report["steps"])
    texts = browser.evaluate("document.body.innerText")
    assert not set("\u202e\u200b\u0007") & set(texts)
    assert browser.complaints() == []


def test_candidates_stand_under_the_nodes_that_they_cover(tessera_binary, model, tmp_path, browser,
                                                          needs_a_library):
    page = tmp_path / "plan.html"
    report = explain(tessera_binary, model, "--html", page)
    browser.open(page.as_uri())
    groups = 0
    for index, step in enumerate(report["steps"]):
        if not step["nodes"]:
            continue
        browser.evaluate(f"keep({index})")
        shown = browser.evaluate("""[...document.querySelectorAll("#details tbody")].map(body => [
            body.querySelector("th").textContent,
            [...body.querySelectorAll("tr.chosen td:first-child")].length,
            body.querySelectorAll("tr:not(.note) td.number").length])""")
        sets = {}
        for one in report["candidates"]:
            if set(one["nodes"]) & set(step["nodes"]):
                measured = one["verdict"] != "not_measured" or one["is_chosen"]
                sets.setdefault(frozenset(one["nodes"]), []).append(measured)
        titled = [(title, chosen, rows) for title, chosen, rows in shown
                  if not title.startswith("One by one")]
        assert len(titled) == len(sets)
        groups += len(sets)
        whole = sets.pop(frozenset(step["nodes"]))
        title, chosen, rows = titled[0]
        count = len(step["nodes"])
        assert title == ("For this node" if count == 1 else "For both nodes of this step"
                         if count == 2 else f"For all {count} nodes of this step")
        assert chosen == 1 and rows == min(12, sum(whole))
        for title, chosen, rows in titled[1:]:
            assert chosen == 0 and " nodes" in title
            assert title.startswith("For ") and title.split()[1].isdigit()
    assert groups > len(report["steps"])


def test_the_race_has_a_row_a_contender_and_the_proof_is_told_apart(tessera_binary, model, tmp_path,
                                                                    browser, needs_a_library):
    page = tmp_path / "plan.html"
    # By default, so small a network gets no time to run whole plans if the machine is slow.
    report = explain(tessera_binary, model, "--tune-budget", "20", "--html", page)
    browser.open(page.as_uri())
    contenders = report["placement"]["contenders"]
    rows = browser.evaluate("""[...document.querySelectorAll("#contenders tbody tr")].map(row =>
        [row.className, row.querySelector("td.number").title, row.lastChild.textContent])""")
    assert len(rows) == len(contenders)
    assert [row[0] for row in rows] == ["chosen"] + [""] * (len(rows) - 1)
    assert rows[0][2].startswith("used: ") and all(" to " in row[1] for row in rows)
    predicted = browser.evaluate("document.getElementById('predicted').textContent")
    assert "Proof: no plan has a lower sum than" in predicted and "prediction" in predicted
    measured = browser.evaluate("document.getElementById('measured').textContent")
    assert "median" in measured and "Proof" not in measured


def test_the_keyboard_reaches_every_step(tessera_binary, model, tmp_path, browser):
    page = tmp_path / "plan.html"
    report = explain(tessera_binary, model, "--html", page)
    browser.open(page.as_uri())
    for place in ("#graph", "#bar", "#steps tbody"):
        assert browser.evaluate(
            f"document.querySelectorAll('{place} [data-step][tabindex=\"0\"]').length") == 1
    browser.evaluate("document.querySelector('#graph [tabindex=\"0\"]').focus()")
    for step in report["steps"][1:]:
        browser.press("ArrowDown")
        title = browser.evaluate("document.querySelector('#details h3').textContent")
        assert title.startswith(f"Step {step['index']}: "), title
    browser.press("Home")
    assert browser.evaluate("document.activeElement.dataset.step") == "0"
    # A pinned step stays until Escape is pressed.
    enter = """document.querySelector('#graph g.step[data-step="1"]')
        .dispatchEvent(new MouseEvent("mouseenter"))"""
    shown = "document.querySelector('#details h3').textContent"
    browser.evaluate(enter)
    assert browser.evaluate(shown).startswith("Step 0: ")
    browser.press("Escape")
    browser.evaluate(enter)
    assert browser.evaluate(shown).startswith("Step 1: ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(tessera_binary, model, tmp_path, browser, scheme):
    page = tmp_path / "plan.html"
    explain(tessera_binary, model, "--html", page)
    browser.call("Emulation.setEmulatedMedia",
                 {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.open(page.as_uri())
    # Contrast as WCAG 2.1 defines it, which requires 4.5 for text.
    least = browser.evaluate("""(() => {
        const part = value => (value /= 255) <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
        const light = colour => {
            const [red, green, blue] = colour.match(/[0-9.]+/g).map(Number);
            return .2126 * part(red) + .7152 * part(green) + .0722 * part(blue);
        };
        const page = light(getComputedStyle(document.body).backgroundColor);
        return Math.min(...[...document.querySelectorAll("p, td, th, h1, h2, .figures span")].map(one => {
            const text = light(getComputedStyle(one).color);
            return (Math.max(page, text) + .05) / (Math.min(page, text) + .05);
        }));
    })()""")
    assert least >= 4.5
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_two_thousand_steps_are_shown_quickly(tessera_binary, tmp_path, browser):
    """The graph has values that are read much later: edges across many layers."""
    count = 2000
    nodes = [node("Add", f"v{index} v{max(0, index - 150)}", f"v{index + 1}")
             for index in range(count)]
    model = save_model(tmp_path / "long.onnx", nodes, {"v0": [4]}, {f"v{count}": [4]})
    page = tmp_path / "plan.html"
    run_program(tessera_binary, "explain", model, "--html", page, "--backends", "reference",
                "--no-optimize")
    browser.open(page.as_uri())
    assert browser.evaluate("document.querySelectorAll('#graph g.step').length") == count
    milliseconds = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"{milliseconds:.0f} ms")
    # It takes about a second on an idle machine.
    assert milliseconds < 20_000
    click(browser, "µs")
    assert browser.complaints() == []


def test_the_picture_of_memory_keeps_its_labels_within_blocks(tessera_binary, hostile_model, tmp_path,
                                                              browser):
    picture = tmp_path / "memory.svg"
    blocks = json_of(tessera_binary, "inspect", hostile_model, "--memory", "--svg", picture,
                     "--json", "--threads", "1", "--no-optimize")["blocks"]
    browser.resize(1280)
    browser.open(picture.as_uri())
    assert browser.evaluate("document.querySelectorAll('rect.block').length") == len(blocks) > 0
    outside = browser.evaluate("""(() => {
        const whole = document.documentElement.getBoundingClientRect();
        return [...document.querySelectorAll("text")].filter(one => {
            const box = one.getBoundingClientRect();
            const inner = one.closest("svg.label");
            if (inner) return getComputedStyle(inner).overflow !== "hidden";
            return box.right > whole.right + .5 || box.left < whole.left || box.bottom > whole.bottom;
        }).map(one => one.textContent);
    })()""")
    assert outside == []
    text = browser.evaluate("document.documentElement.textContent")
    assert "needed at once" in text and "step of the plan" in text
    assert browser.complaints() == []


def test_the_page_without_costs_and_of_many_steps(tessera_binary, tmp_path, browser):
    nodes = [node("MatMul", f"v{index} w", f"v{index + 1}") for index in range(170)]
    weight = np.eye(4, dtype=np.float32)
    shape = [1, 4]
    model = save_model(tmp_path / "long.onnx", nodes, {"v0": shape}, {"v170": shape}, {"w": weight})
    page = tmp_path / "plan.html"
    run_program(tessera_binary, "explain", model, "--html", page, "--backends", "reference")
    browser.open(page.as_uri())
    assert browser.evaluate("document.querySelectorAll('#graph g.step').length") == 170
    assert browser.evaluate("""(() => {
        const graph = document.getElementById("graph");
        return graph.scrollHeight > graph.clientHeight && graph.scrollWidth <= graph.clientWidth;
    })()""") is True, "a strip that scrolls"
    assert browser.complaints() == []
