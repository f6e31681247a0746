"""tessera diff: two plans of models, caches, and files that `tessera explain --json` printed."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto
from programs import run_program
from small_models import node, normal, save_model, tensor_type

QUICK = ("--threads", "1", "--runs", "1")
REFERENCE = ("--backends", "reference")


def write_model(path, second="head"):
    """Two convolutions with activations, which libraries fuse; `second` is the name of one."""
    random = np.random.default_rng(0)
    nodes = [node("Conv", "x w1", "c1", "stem", pads=[1] * 4),
             node("Relu", "c1", "r1", "stem_relu"),
             node("Conv", "r1 w2", "c2", second, pads=[1] * 4),
             node("Relu", "c2", "r2", f"{second}_relu"), node("ArgMax", "r2", "y", "top", axis=1)]
    save_model(path, nodes, {"x": ["batch", 3, 12, 12]},
               {"y": tensor_type(TensorProto.INT64, None)},
               {"w1": normal(random, 16, 3, 3, 3), "w2": normal(random, 16, 16, 3, 3)})


SHAPE = ("--shape", "x=1x3x12x12")


@pytest.fixture
def folder(tmp_path):
    write_model(tmp_path / "model.onnx")
    write_model(tmp_path / "other.onnx", "body")
    return tmp_path


@pytest.fixture
def call(tessera_binary, folder):
    return lambda *arguments, **options: run_program(
        tessera_binary, *arguments, cwd=folder, **options)


@pytest.fixture
def diff(call):
    """The JSON of a comparison."""

    def diff(*arguments, code):
        found = json.loads(call("diff", *arguments, "--json", code=code).stdout)
        assert found["is_equal"] == (code == 0)
        return found

    return diff


@pytest.fixture
def explain(call, folder):
    """Writes the output of `tessera explain --json` to a file, and returns it."""

    def explain(name, *arguments):
        text = call("explain", "model.onnx", *SHAPE, *QUICK, "--json", *arguments).stdout
        (folder / name).write_text(text)
        return json.loads(text)

    return explain


def nodes_of(change):
    return sorted({node for side in ("a_steps", "b_steps") for step in change[side]
                   for node in step["nodes"]})


def test_a_model_equals_itself(diff):
    found = diff("model.onnx", "model.onnx", *SHAPE, *QUICK, code=0)
    assert found["plan_a"]["step_count"] == found["equal_step_count"] > 0
    assert found["step_changes"] == found["settings"] == []


def test_two_sets_of_options_of_one_model(diff, needs_native):
    found = diff("model.onnx", *SHAPE, *QUICK, "--a=--backends native --no-fuse",
                 f"--b={' '.join(REFERENCE)}", code=1)
    assert found["plan_a"]["options"] == "--backends native --no-fuse"
    assert found["plan_b"]["file"] == "model.onnx"
    backends = {(step["backend"], other["backend"]) for change in found["step_changes"]
                for step in change["a_steps"] for other in change["b_steps"]}
    assert ("native", "reference") in backends
    kinds = {kind for change in found["step_changes"] for kind in change["kinds"]}
    assert "backend" in kinds
    # Every time is counted once, and the largest difference is first.
    for side in "ab":
        total = sum(change[f"{side}_us"] for change in found["step_changes"])
        assert total + found[f"equal_{side}_us"] == pytest.approx(found[f"plan_{side}"]["steps_us"])
    sizes = [abs(change["difference_us"]) for change in found["step_changes"]]
    assert sizes == sorted(sizes, reverse=True)


def test_options_of_one_side_replace_those_of_both(diff):
    found = diff("model.onnx", *SHAPE, *QUICK, *REFERENCE, "--b=--threads 2", code=0)
    assert [found[f"plan_{side}"]["thread_count"] for side in "ab"] == [1, 2]
    assert found["settings"] == [{"setting": "threads", "a_text": "1", "b_text": "2"}]
    found = diff("model.onnx", *QUICK, *REFERENCE, "--a=--shape 'x=1x3x12x12'",
                 '--b=--shape "x=2x3x12x12"', code=1)
    assert all(change["kinds"] == ["shape"] for change in found["step_changes"])


def test_other_nodes_are_added_and_removed(diff):
    found = diff("model.onnx", "other.onnx", *SHAPE, *QUICK, *REFERENCE, code=1)
    named = {name: [change["kinds"] for change in found["step_changes"] if name in nodes_of(change)]
             for name in ("head", "body", "stem")}
    assert named == {"head": [["removed"]], "body": [["added"]], "stem": []}


def test_a_pinned_node_is_a_change_of_its_backend(diff, needs_native):
    found = diff("model.onnx", *SHAPE, *QUICK, "--backends", "native,reference",
                 "--b=--pin top=reference", code=1)
    change, = [change for change in found["step_changes"] if nodes_of(change) == ["top"]]
    assert change["kinds"][0] == "backend"
    assert [change[side][0]["backend"] for side in ("a_steps", "b_steps")] == ["native", "reference"]


def test_files_of_explain_are_compared_without_the_model(call, diff, explain, folder):
    first = explain("a.json", *REFERENCE)
    second = explain("b.json", *REFERENCE)
    os.remove(folder / "model.onnx")
    found = diff("a.json", "b.json", code=0)
    assert found["plan_a"]["median_us"] == first["median_us"]
    assert found["plan_b"]["steps_us"] == pytest.approx(
        sum(step["median_us"] for step in second["steps"]))
    second["processor"], second["version"] = "another, avx1024", "9.9.9"
    second["libraries"][0]["version"] = "7"
    second["steps"][-1]["algorithm"] = "better"
    (folder / "b.json").write_text("\n" + json.dumps(second))
    found = diff("a.json", "b.json", code=1)
    assert [change["setting"] for change in found["settings"]] == [
        "processor", "Tessera", second["libraries"][0]["backend"]]
    assert [change["kinds"] for change in found["step_changes"]] == [["algorithm"]]
    text = call("diff", "a.json", "b.json", code=1).stdout
    assert f"processor: {first['processor']} → another, avx1024\n" in text


def test_a_file_of_explain_and_a_model(diff, explain):
    explain("a.json", *REFERENCE)
    found = diff("a.json", "model.onnx", *SHAPE, *QUICK, *REFERENCE, code=0)
    assert [found[f"plan_{side}"]["file"] for side in "ab"] == ["a.json", "model.onnx"]
    assert found["plan_a"]["model"] == "model.onnx"


def test_plans_of_caches(call, diff, folder, needs_native):
    for name, backends in (("native", "native,reference"), ("reference", "reference")):
        call("tune", "model.onnx", *SHAPE, "--threads", "1", "--backends", backends, "--cache-dir",
             name)
        file, = (folder / name).glob("*.cache")
        shutil.move(file, folder / f"{name}.cache")
    found = diff("native.cache", "reference.cache", "--model", "model.onnx", *SHAPE, *QUICK,
                 "--a=--backends native,reference", "--b=--backends reference", code=1)
    backends = [{step["backend"] for change in found["step_changes"] for step in change[side]}
                for side in ("a_steps", "b_steps")]
    assert "native" in backends[0] and backends[1] == {"reference"}
    assert [found[f"plan_{side}"]["file"] for side in "ab"] == ["native.cache", "reference.cache"]
    # Compares with the plan that this machine would choose by itself.
    diff("reference.cache", "model.onnx", "--model", "model.onnx", *SHAPE, *QUICK, *REFERENCE,
         code=0)
    # Neither the working folder nor the user's has a plan that the cache lacks.
    done = call("diff", "native.cache", "model.onnx", "--model", "model.onnx", *SHAPE,
                "--threads", "2", "--runs", "1", code=1)
    assert "CacheMiss" in done.stderr


def test_a_plan_of_another_cache_is_not_taken_for_that_of_the_named_one(call, folder):
    """The working folder has a plan that fits; the named cache has none."""
    tune = ("tune", "model.onnx", *SHAPE, "--threads", "1", *REFERENCE, "--cache-dir", "work")
    call(*tune)
    file, = (folder / "work").glob("*.cache")
    shutil.copy(file, folder / "one.cache")
    call(*tune[:-1], "two", "--nan", "fast")
    file, = (folder / "two").glob("*.cache")
    done = call("diff", file, "model.onnx", "--model", "model.onnx", *SHAPE, *QUICK, *REFERENCE,
                "--cache-dir", "work", code=2)
    assert "expected a plan for this model, these shapes, options and threads" in done.stderr


# Arguments, and a part of the message; the exit code is 2.
WRONG = [
    (("model.onnx",), "B: expected a second plan, or --a or --b"),
    ((), "expected A, found none"),
    (("model.onnx", "b.onnx", "c.onnx"),
     "expected 2 arguments besides options, found 'c.onnx' after 'b.onnx'"),
    (("model.onnx", ""), "expected B, found an empty text"),
    (("model.onnx", "--b=--thread 1"), "--b '--thread 1': there is no option '--thread'; did you mean"),
    (("model.onnx", "--b=model.onnx"), "expected no argument besides options, found 'model.onnx'"),
    (("model.onnx", "--b=--threads"), "expected a value after '--threads', found nothing"),
    (("model.onnx", "--b=--threads two"), "--threads 'two'"),
    (("model.onnx", "--a=--json"), "there is no option '--json'"),
    (("model.onnx", "--a=--help"), "there is no option '--help'"),
    (("model.onnx", "absent.onnx"), "B 'absent.onnx': expected a file, found none"),
    (("absent.json", "model.onnx"), "A 'absent.json': expected a file, found none"),
    ((".", "model.onnx"), "A '.': expected a file, found a folder"),
    (("/dev/null", "model.onnx"), "found a pipe with something else"),
    (("explained.json", "explained.json", "--threads", "1"), "expected a model or a cache to use them"),
    (("explained.json", "explained.json", "--runs", "2"), "expected a model or a cache to use them"),
    (("explained.json", "model.onnx", "--a=--threads 1"), "--a: expected a model or a cache to bind"),
    (("model.onnx", "model.onnx", "--model", "model.onnx"), "expected a cache as A or B, found none"),
    (("broken.json", "model.onnx", *SHAPE), "file 'broken.json': expected JSON"),
    (("part.json", "explained.json"), "it was printed with --node"),
    (("bad.cache", "model.onnx"), "expected --model MODEL"),
    (("bad.cache", "model.onnx", "--model", "model.onnx", *SHAPE), "bad.cache"),
    (("-", "-"), "standard input can be read only once"),
    (("model.onnx", "model.onnx", "--runs", "0"), "--runs"),
]


@pytest.mark.parametrize("arguments, message", WRONG)
def test_a_wrong_request_says_what_to_do(call, explain, folder, arguments, message):
    explain("explained.json", *REFERENCE)
    explain("part.json", *REFERENCE, "--node", "top")
    (folder / "broken.json").write_text('{"format": 1, "steps": [')
    (folder / "bad.cache").write_bytes(b"TESSERA\x1a" + bytes(80))
    done = call("diff", *arguments, code=2, stdin=subprocess.DEVNULL)
    assert message in done.stderr and not done.stdout


def test_a_model_of_standard_input(tessera_binary, folder):
    run_program(tessera_binary, "diff", "-", "model.onnx", *SHAPE, *QUICK, *REFERENCE, cwd=folder,
                input=(folder / "model.onnx").read_bytes())


def test_names_that_are_not_unicode_are_compared_too(diff, explain, folder):
    content = (folder / "model.onnx").read_bytes()
    # The onnx package refuses to write such names; other programs do not.
    (folder / "model.onnx").write_bytes(content.replace(b"stem_relu", b"stem_\xff\xfe\xc3\x28"))
    explain("a.json", *REFERENCE)
    diff("a.json", "model.onnx", *SHAPE, *QUICK, *REFERENCE, code=0)
    diff("model.onnx", "model.onnx", *SHAPE, *QUICK, *REFERENCE, code=0)


def test_pipes_of_explain(tessera_binary, explain, folder):
    explain("a.json", *REFERENCE)
    run_program("bash", "-c", f"{tessera_binary} diff <(cat a.json) <(cat a.json)", cwd=folder)
