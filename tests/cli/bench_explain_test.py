"""bench, explain, backends, traces, and the options that select backends: with the reference, which
is always usable, and with onednn if `tessera backends` says that it is usable."""

import json
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from onnx import TensorProto
from programs import end_of, outcome_of, run_program, start_program, wait_for
from small_models import node, normal, save_model, tensor_type
from terminal import run_on_terminal

BENCH_KEYS = (
    "format model load_us bind_us first_run_us median_us min_us p90_us p99_us run_count thread_count "
    "step_count conversion_count totals placement memory dispatch_us cache codegen"
).split()
QUICK = ("--seconds", "0.02", "--warmup", "0", "--threads", "1")


@pytest.fixture
def model(tmp_path):
    """Conv, Relu, Conv with names that are difficult in options, followed by an ArgMax."""
    random = np.random.default_rng(0)
    nodes = [node("Conv", "x w1", "c1", "stem/conv:0", pads=[1] * 4),
             node("Relu", "c1", "r1", "stem/relu"),
             node("Conv", "r1 w2", "c2", "head=conv", pads=[1] * 4),
             node("ArgMax", "c2", "y", "top", axis=1)]
    property_of_node = nodes[2].metadata_props.add()
    property_of_node.key, property_of_node.value = "stage", "head"
    return save_model(tmp_path / "model.onnx", nodes, {"x": ["batch", 3, 16, 16]},
                      {"y": tensor_type(TensorProto.INT64, None)},
                      {"w1": normal(random, 16, 3, 3, 3), "w2": normal(random, 16, 16, 3, 3)},
                      ir_version=10)


@pytest.fixture
def tessera(tessera_binary, tmp_path):
    """Calls the program in the test's folder; returns its exit code, stdout and stderr."""
    return lambda *arguments, environment=None, code=0: outcome_of(
        tessera_binary, *arguments, code=code, cwd=tmp_path, variables=environment)


@pytest.fixture
def ask(tessera):
    """The JSON of a command that must succeed."""
    return lambda *arguments, **options: json.loads(tessera(*arguments, "--json", **options)[1])


SHAPE = ("--shape", "x=1x3x16x16")
REFERENCE = (*SHAPE, "--backends", "reference")


def kernels_by_backend(report):
    return {total["backend"]: total["step_count"] for total in report["totals"]
            if total["kind"] == "kernel"}


def test_bench_gives_the_promised_figures(tessera, ask, model):
    report = ask("bench", model, *REFERENCE, *QUICK)
    assert list(report) == BENCH_KEYS
    assert report["min_us"] <= report["median_us"] <= report["p90_us"] <= report["p99_us"]
    assert report["load_us"] > 0 and report["bind_us"] > 0 and report["first_run_us"] > 0
    assert report["run_count"] >= 1 and report["thread_count"] == 1
    # Far less than the time of any kernel.
    assert 0 < report["dispatch_us"] < 5
    assert kernels_by_backend(report).keys() == {"reference"}
    assert report["step_count"] == sum(total["step_count"] for total in report["totals"])
    _, text, errors = tessera("bench", model, *REFERENCE, *QUICK)
    assert errors == ""
    title, figures, counts = text.splitlines()
    assert "median" in title and len(title) == len(figures)
    *times, runs = re.split(" {2,}", figures.strip())
    assert len(times) == 7 and all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", time) for time in times)
    assert int(runs) >= 1
    assert counts.startswith(f"{report['step_count']} steps: ") and counts.endswith("; 1 thread")


def test_bench_measures_as_long_as_asked(ask, model):
    # This must hold on a machine of any speed: at least one run, and no end before the requested
    # time.
    assert ask("bench", model, *REFERENCE, "--seconds", "1e-9", "--warmup", "0")["run_count"] == 1
    start = time.monotonic()
    assert ask("bench", model, *REFERENCE, "--seconds", "0.8", "--warmup", "3")["run_count"] > 1
    assert time.monotonic() - start >= 0.8


@pytest.mark.alone
def test_ctrl_c_ends_a_bench_with_what_was_measured(tessera_binary, model):
    process = start_program(tessera_binary, "bench", model, *REFERENCE, "--seconds", "50", "--json")
    wait_for(process)
    time.sleep(2)
    output, _ = end_of(process, 0, signal.SIGINT)
    assert json.loads(output)["run_count"] >= 1


def test_progress_is_for_terminals(tessera_binary, model):
    command = [tessera_binary, "bench", model, *REFERENCE, "--seconds", "1.5"]
    shown = run_on_terminal(command, "stderr", stdout=subprocess.PIPE).stderr
    assert b"measuring: 1." in shown and shown.endswith(b"\r\x1b[K")
    assert run_program(*command).stderr == ""


def test_explain_shows_every_step(tessera, ask, model):
    report = ask("explain", model, *REFERENCE, "--runs", "3")
    assert report["run_count"] == 3 and report["step_count"] == len(report["steps"])
    covered = [node for step in report["steps"] for node in step["nodes"]]
    assert sorted(covered) == sorted(["stem/conv:0", "stem/relu", "head=conv", "top"])
    assert all(step["backend"] == "reference" for step in report["steps"])
    conv = next(step for step in report["steps"] if "head=conv" in step["nodes"])
    assert conv["flop_count"] >= 2 * 16 * 16 * 16 * 16 * 9 and conv["median_us"] > 0
    assert [port["value"] for port in conv["inputs"]][0] == "r1"
    assert conv["inputs"][0]["layout"] == "row_major"
    assert abs(sum(step["share"] for step in report["steps"]) - 1) < 1e-6
    _, text, errors = tessera("explain", model, *REFERENCE)
    assert errors == "" and max(map(len, text.splitlines())) <= 100
    for word in ("stem/conv:0", "ArgMax", "reference", "GFLOP/s"):
        assert word in text


def test_explain_tells_all_about_one_node(tessera, ask, model):
    _, text, _ = tessera("explain", model, *REFERENCE, "--node", "head=conv", "--runs", "1")
    assert "output 'c2': float32 1x16x16x16, row_major" in text
    assert "stem/relu" not in text
    steps = ask("explain", model, *REFERENCE, "--node", "stem/*", "--runs", "1")["steps"]
    assert [step["nodes"] for step in steps] == [["stem/conv:0"], ["stem/relu"]]
    _, _, errors = tessera("explain", model, *REFERENCE, "--node", "absent", code=2)
    assert "'absent'" in errors and "'head=conv'" in errors


def test_onednn_takes_what_it_can(needs_onednn, ask, tessera, model):
    report = ask("bench", model, *SHAPE, *QUICK)
    assert kernels_by_backend(report)["onednn"] >= 1
    explained = ask("explain", model, *SHAPE, "--runs", "2")
    convs = [step for step in explained["steps"] if "Conv" in step["op"]]
    assert convs and all(step["backend"] == "onednn" and step["algorithm"] for step in convs)
    fused = next(step for step in convs if "stem/conv:0" in step["nodes"])
    assert "stem/relu" in fused["nodes"]
    assert sum(entry["step_count"] for entry in explained["totals"]) == explained["step_count"]
    for step in explained["steps"]:
        if step["op"] == "convert":
            assert step["inputs"][0]["layout"] != step["outputs"][0]["layout"]
            assert step["moved_bytes"] > 0
    # oneDNN refuses ArgMax with a reason.
    [top] = [step for step in explained["steps"] if "top" in step["nodes"]]
    assert top["backend"] != "onednn"
    assert "onednn" in [refusal["backend"] for refusal in top["refusals"]]
    text = tessera("explain", model, *SHAPE, "--runs", "1")[1]
    assert "refused by onednn" in text and top["refusals"][0]["reason"][:40] in text


def test_environment_and_list_choose_the_backends(ask, tessera, model):
    environment = {"TESSERA_BACKENDS": "reference"}
    report = ask("bench", model, *SHAPE, *QUICK, environment=environment)
    assert kernels_by_backend(report).keys() == {"reference"}
    environment = {"TESSERA_BACKENDS": "absent"}
    tessera("bench", model, *SHAPE, *QUICK, environment=environment, code=2)
    # The command line overrides the environment.
    assert ask("bench", model, *REFERENCE, *QUICK, environment=environment)["run_count"] >= 1


def backend_of(report, node):
    [step] = [step for step in report["steps"] if node in step["nodes"]]
    return step["backend"]


def test_pins_hold_nodes_by_name_prefix_and_property(needs_onednn, ask, model):
    nodes = ("stem/conv:0", "stem/relu", "head=conv")
    cases = {
        "stem/conv:0=reference": {"stem/conv:0"},
        "head=conv=reference": {"head=conv"},
        "stem/*=reference": {"stem/conv:0", "stem/relu"},
        "stage=head=reference": {"head=conv"},
    }
    for pin, pinned in cases.items():
        report = ask("explain", model, *SHAPE, "--runs", "1", "--pin", pin)
        on_reference = {node for node in nodes if backend_of(report, node) == "reference"}
        assert on_reference == pinned, pin


def test_pins_hold_algorithms(needs_onednn, ask, tessera, model):
    report = ask("explain", model, *SHAPE, "--runs", "1", "--pin", "head=conv=onednn")
    [step] = [step for step in report["steps"] if "head=conv" in step["nodes"]]
    pin = f"head=conv=onednn:{step['algorithm']}"
    again = ask("explain", model, *SHAPE, "--runs", "1", "--pin", pin)
    [step_again] = [step for step in again["steps"] if "head=conv" in step["nodes"]]
    assert step_again["algorithm"] == step["algorithm"]
    _, _, errors = tessera("explain", model, *SHAPE, "--pin", "head=conv=onednn:no-such", code=2)
    assert "head=conv" in errors and step["algorithm"] in errors


def test_exclusions_keep_backends_away(needs_onednn, ask, model):
    report = ask("explain", model, *SHAPE, "--runs", "1", "--exclude", "onednn:Conv")
    assert "onednn" not in (backend_of(report, "stem/conv:0"), backend_of(report, "head=conv"))
    for name in ("onednn", "dnnl"):
        report = ask("explain", model, *SHAPE, "--runs", "1", "--exclude", name)
        assert "onednn" not in {step["backend"] for step in report["steps"]}


def test_a_pin_that_nobody_can_serve_says_who_refused(needs_onednn, tessera, model):
    _, text, errors = tessera("run", model, *SHAPE, "--random", 1, "--pin", "top=onednn", code=2)
    assert text == ""
    assert "top" in errors and "ArgMax" in errors and "onednn" in errors


@pytest.mark.parametrize("backends", ["reference", "onednn"])
def test_fetched_steps_are_right_and_change_nothing(
    need_backend, tessera, ask, model, tmp_path, backends
):
    need_backend(backends)
    chosen = (*SHAPE, "--backends", backends, "--random", 1)
    tessera("run", model, *chosen, "--fetch-steps", "steps", "--trace", "trace.json")
    entries = json.loads((tmp_path / "steps/values.json").read_text())
    tessera("run", model, *REFERENCE, "--random", 1, "--dump-values", "values")
    right = {
        entry["name"]: np.load(tmp_path / "values" / entry["file"])
        for entry in json.loads((tmp_path / "values/values.json").read_text())
    }
    explained = ask("explain", model, *SHAPE, "--backends", backends, "--runs", "1")
    made = {
        port["value"]: (step["name"], step["backend"])
        for step in explained["steps"] if step["op"] != "convert"
        for port in step["outputs"]
    }  # fmt: skip
    # Fetching does not change the choice, so both name the same steps.
    assert {entry["name"]: (entry["node"], entry.get("backend", "")) for entry in entries} == made
    assert {"c2", "y"} <= made.keys()
    for entry in entries:
        values = np.load(tmp_path / "steps" / entry["file"])
        np.testing.assert_allclose(values, right[entry["name"]], rtol=1e-3, atol=1e-4)


def test_a_trace_has_stages_and_steps(tessera, model, tmp_path):
    _, _, errors = tessera("bench", model, *REFERENCE, *QUICK, "--trace", "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    events = [event for event in events if event["ph"] == "X"]  # without the names of lines
    spans = {event["name"]: event for event in events if event["cat"] == "stage"}
    assert {"load", "bind", "propose", "place", "build", "pack", "plan", "run"} <= spans.keys()

    def is_within(inner, outer):
        return (
            inner["ts"] >= outer["ts"] - 1
            and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1
        )

    for stage in ("propose", "place", "build", "pack", "plan"):
        assert is_within(spans[stage], spans["bind"]), stage
    steps = {event["name"]: event for event in events if event["cat"] != "stage"}
    assert {"stem/conv:0", "stem/relu", "head=conv", "top"} <= steps.keys()
    assert all(is_within(step, spans["run"]) for step in steps.values())
    arguments = steps["head=conv"]["args"]
    assert arguments["backend"] == "reference" and arguments["layouts"] == "row_major"
    assert arguments["bytes"] > 0 and arguments["flops"] > 0 and arguments["GFLOP/s"] > 0


def test_backends_are_listed_with_reasons(tessera, ask, tmp_path):
    listed = ask("backends")["backends"]
    reference = next(entry for entry in listed if entry["backend"] == "reference")
    assert reference["is_usable"] and reference["devices"] and reference["version"]
    for entry in listed:
        assert entry["is_usable"] or entry["reason"]
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"no library")
    code, text, _ = tessera("backends", "--backend-path", broken, code=None)
    # Long paths may be broken across lines.
    assert code == 0 and "libbroken.so" in text and "refused:" in " ".join(text.split())
    listed = ask("backends", "--backend-path", tmp_path)["backends"]
    [entry] = [entry for entry in listed if entry["file"].endswith("libbroken.so")]
    assert not entry["is_usable"] and entry["reason"]
    _, _, errors = tessera("backends", "--backend-path", tmp_path / "absent.so", code=2)
    assert "absent.so" in errors


def test_a_broken_plug_in_does_not_stop_a_run(tessera, model, tmp_path):
    (tmp_path / "libbroken.so").write_bytes(b"no library")
    _, _, errors = tessera("run", model, *SHAPE, "--random", 1, "--backend-path",
                           tmp_path / "libbroken.so")


MISTAKES = [
    ("--threads", "-1"),
    ("--threads", "4097"),
    ("--backends", ""),
    ("--backends", "reference,"),
    ("--backends", "reference,reference"),
    ("--backends", "absent"),
    ("--backend-path", "absent.so"),
    ("--pin", "top"),
    ("--pin", "=reference"),
    ("--pin", "top="),
    ("--pin", "top=reference:"),
    ("--pin", "top=absent"),
    ("--pin", "absent=reference"),
    ("--exclude", ":Conv"),
    ("--exclude", "reference:"),
    ("--exclude", "absent"),
    ("--precision", "float16"),
    ("--device", "abacus"),
    ("--shape", "x=1x3"),
    ("--input", "x=absent.npy"),
    ("--random", "x"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=" ".join)
@pytest.mark.parametrize("command", ["run", "bench", "explain"])
def test_mistakes_in_common_options_are_exit_code_2(tessera, model, command, mistake):
    own = ("--random", "1") if command == "run" and "--random" not in mistake else ()
    shape = () if "--shape" in mistake else SHAPE
    _, text, errors = tessera(command, model, *shape, *own, *mistake, "--json", code=2)
    assert errors != "" and "bug" not in errors
    error = json.loads(text)["error"]
    assert error["kind"] == "invalid_argument"
    assert "absent" not in mistake[1] or "absent" in errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "--seconds", "0"),
        ("bench", "--seconds", "nan"),
        ("bench", "--seconds", "1s"),
        ("bench", "--warmup", "-1"),
        ("bench", "--warmup", "many"),
        ("explain", "--runs", "0"),
        ("explain", "--runs", "1.5"),
        ("explain", "--node", ""),
        ("backends", "--backend-path", "absent"),
        ("bench",),
        ("explain",),
    ],
    ids=" ".join,
)
def test_mistakes_in_own_options_are_exit_code_2(tessera, model, arguments):
    is_of_model = arguments[0] != "backends" and len(arguments) > 1
    call = (arguments[0], *([model, *SHAPE] if is_of_model else []), *arguments[1:])
    _, text, errors = tessera(*call, code=2)
    assert text == "" and errors != "" and "bug" not in errors


def test_unknown_backends_are_told_the_known_ones(tessera, model):
    _, _, errors = tessera("run", model, *SHAPE, "--random", 1, "--backends", "absent", code=None)
    assert "'absent'" in errors and "reference" in errors


def test_a_failed_write_leaves_nothing(tessera, model, tmp_path):
    before = set(tmp_path.rglob("*"))
    tessera("bench", model, *REFERENCE, *QUICK, "--trace", "/dev/full", code=3)
    arguments = ("run", model, *REFERENCE, "--random", 1, "--fetch-steps", "steps")
    tessera(*arguments, "--trace", "/dev/full", code=3)
    assert set(tmp_path.rglob("*")) == before
