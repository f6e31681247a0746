"""Tessera survives a plug-in that breaks the contract: models run as without it, and a reason is
reported."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from programs import plain_environment, run_program
from small_models import save_relu_and_sigmoid
from terminal import run_on_terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Mischief -> what the reported reason contains.
FAILS_TO_OPEN = {
    "other_version": "version 4096 of the plug-in contract",
    "constructor_throws": "no licence was found",
    "constructor_throws_a_number": "no std::exception",
    "open_throws": "the moon is in the wrong phase",
    "open_throws_a_number": "no std::exception",
    "open_fails_silently": "without a reason",
    "fills_nothing": "name",
    "no_name": "name",
    "wrong_characters": "lower-case letters",
    "no_version": "version",
    "small_struct": "16 bytes",
    "no_device": "no device",
    "device_without_functions": "device 'hostile' lacks the function allocate",
    "device_with_a_small_interface": "device 'hostile' has an interface of 8 bytes",
    "device_with_an_odd_alignment": "alignment of 48 bytes, expected a power of two",
    "null_layouts": "list of layouts is null",
    "null_ops": "list of ops is null",
    "null_simple_kernels": "list of simple kernels is null",
    "negative_count": "-3 layouts",
    "same_layout_twice": "'hostile:own' is listed twice",
    "no_from_default": "'hostile:own' lacks its conversion from_default",
    "no_to_default": "'hostile:own' lacks its conversion to_default",
    "no_storage_bytes": "'hostile:own' lacks storage_bytes",
    "layout_without_name": "a layout has no name",
    "layout_of_another": "other:own",
    "layout_with_wrong_characters": "hostile:a b",
    "layout_on_no_device": "device 7",
    "conversion_without_function": "conversion",
    "op_without_type_rule": "Nothing",
    "op_of_onnx": "domain",
    "kernel_without_function": "simple kernel",
}

# Mischief -> what the refusal of the Relu contains.
FAILS_TO_SERVE = {
    "propose_throws": "it does not want to",
    "propose_throws_a_number": "no std::exception",
    "propose_fails": "it does not know what to do",
    "offers_null": "",
    "null_nodes": "",
    "no_nodes": "",
    "negative_node": "",
    "node_that_is_not_there": "",
    "refuses_what_is_not_there": "",
    "refuses_without_reason": "without a reason",
    "input_that_is_not_there": "input 4096 is not read",
    "output_that_is_not_there": "output -5 is not made",
    "input_for_output": "is not made by its nodes",
    "no_inputs": "leaves out input",
    "null_inputs": "list of inputs is null",
    "negative_inputs": "list of inputs is null",
    "no_outputs": "which others need",
    "null_outputs": "list of outputs is null",
    "negative_workspace": "negative memory",
    "huge_workspace": "more memory than any machine has",
    "unknown_layout": "'hostile:new'",
    "null_algorithm": "algorithm is null",
    "small_candidate": "struct_size",
    "no_build": "no function to build",
    "in_place_of_nothing": "in-place input that does not exist",
    "unknown_request": "has an unknown request",
    "odd_alignment": "alignment",
    "packs_what_varies": "which is no constant",
    "strange_built_for": "built for",
    "not_convex": "between its nodes",
    "storage_is_huge": "'hostile:own' does not hold",
    "build_fails": "it ran out of luck",
    "build_fails_silently": "without a reason",
    "build_throws": "bad day",
    "build_throws_a_number": "no std::exception",
    "build_gives_nothing": "no function to run",
    "builds_bigger": "more workspace",
}

FAILS_TO_RUN = {
    "run_fails": "it lost its way",
    "run_throws_a_number": "no std::exception",
    "piece_fails": "a piece of it broke",
    "conversion_fails": "the conversion broke",
}

# The stage at which a plug-in crashes, ends the process or hangs -> the check that fails.
STAGES = {
    "opening": "opens",
    "sizing": "layouts: there and back",
    "converting": "layouts: there and back",
    "inferring": "own ops: type rules",
    "proposing": "legal offers",
    "building": "builds what it offers",
    "running": "runs",
    "closing": "closes",
}

# Mischief that must also be survived if plug-in and host use different C++ standard libraries:
# exceptions on both sides of the interface.
WITH_LIBCXX = ["constructor_throws", "constructor_throws_a_number", "open_throws", "propose_throws",
               "build_fails", "build_throws", "run_fails", "run_throws_a_number", "piece_fails"]


@pytest.fixture(scope="module")
def plugins(bin_dir):
    folder = bin_dir.parent / "tests" / "backends"
    assert (folder / "hostile.so").exists(), f"{folder} is not built: tools/build release"
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_relu_and_sigmoid(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def tessera(tessera_binary, model):
    def call(*arguments, mischief=None, code=0):
        variables = {"TESSERA_TEST_MISCHIEF": mischief} if mischief else {}
        return run_program(tessera_binary, *arguments, code=code, cwd=model.parent,
                           env=plain_environment(**variables))

    return call


def read_backend(tessera, library, mischief=None):
    """The entry for `library` in `tessera backends`."""
    result = tessera("backends", "--json", "--backend-path", library, mischief=mischief)
    [entry] = [entry for entry in json.loads(result.stdout)["backends"]
               if str(library) in str(entry.get("file", ""))]
    return entry


def run(tessera, model, library, mischief=None):
    return tessera("run", model, "--input", "x=x.npy", "--expect", "y=y.npy",
                   "--backend-path", library, mischief=mischief, code=None)


def refusals(tessera, model, library, mischief):
    """The plug-in's reasons in `tessera explain` for refusing the node 'relu', and the steps of the
    plan."""
    result = tessera("explain", model, "--json", "--backend-path", library, mischief=mischief)
    steps = json.loads(result.stdout)["steps"]
    reasons = [refusal["reason"] for step in steps for refusal in step["refusals"]
               if refusal["backend"] == "hostile" and refusal["node"] == "relu"]
    return reasons, [step for step in steps if step["backend"] == "hostile"]


def test_without_mischief_it_serves(tessera, model, plugins):
    entry = read_backend(tessera, plugins / "hostile.so")
    assert entry["is_usable"] and entry["backend"] == "hostile"
    reasons, steps = refusals(tessera, model, plugins / "hostile.so", None)
    assert reasons == [] and [step["algorithm"] for step in steps] == ["wicked"]
    result = run(tessera, model, plugins / "hostile.so")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("mischief", FAILS_TO_OPEN)
def test_one_that_cannot_be_opened_is_a_line(tessera, model, plugins, mischief):
    entry = read_backend(tessera, plugins / "hostile.so", mischief)
    assert not entry["is_usable"]
    assert FAILS_TO_OPEN[mischief] in entry["reason"]
    result = run(tessera, model, plugins / "hostile.so", mischief)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("library", "reason"), [
    ("hostile_no_plugin.so", "tessera_contract_version"),
    ("hostile_no_open.so", "tessera_open_backend"),
    ("text.so", "could not be loaded"),
    ("empty.so", "could not be loaded"),
])
def test_a_file_that_is_no_plugin_is_a_line(tessera, model, plugins, library, reason):
    (model.parent / "text.so").write_text("This is no library.\n")
    (model.parent / "empty.so").write_text("")
    folder = plugins if (plugins / library).exists() else model.parent
    entry = read_backend(tessera, folder / library)
    assert not entry["is_usable"] and reason in entry["reason"]
    assert run(tessera, model, folder / library).returncode == 0


def test_a_path_where_nothing_is_is_an_error(tessera, model):
    result = run(tessera, model, "nowhere.so")
    assert result.returncode == 2 and "nowhere.so" in result.stderr


@pytest.mark.parametrize("mischief", FAILS_TO_SERVE)
def test_what_it_cannot_serve_is_refused_and_runs_elsewhere(tessera, model, plugins, mischief):
    reasons, steps = refusals(tessera, model, plugins / "hostile.so", mischief)
    assert steps == []
    assert reasons and FAILS_TO_SERVE[mischief] in " / ".join(reasons)
    result = run(tessera, model, plugins / "hostile.so", mischief)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("mischief", FAILS_TO_RUN)
def test_what_fails_when_run_names_the_step_and_the_backend(tessera, model, plugins, mischief):
    result = run(tessera, model, plugins / "hostile.so", mischief)
    assert result.returncode == 3
    assert FAILS_TO_RUN[mischief] in result.stderr and "hostile" in result.stderr
    tessera("run", model, "--input", "x=x.npy", "--expect", "y=y.npy", "--exclude", "hostile",
            "--backend-path", plugins / "hostile.so", mischief=mischief)


def test_a_folder_with_good_and_bad_ones_is_opened(tessera, model, plugins, tmp_path):
    for library in ("hostile.so", "hostile_no_open.so", "hostile_no_plugin.so"):
        shutil.copy(plugins / library, tmp_path)
    result = tessera("backends", "--json", "--backend-path", tmp_path)
    entries = [entry for entry in json.loads(result.stdout)["backends"]
               if str(tmp_path) in str(entry.get("file", ""))]
    assert sorted(entry["is_usable"] for entry in entries) == [False, False, True]
    assert run(tessera, model, tmp_path).returncode == 0


@pytest.fixture(scope="module")
def libcxx_plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libcxx")
    compiler = "clang++-19"
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed: tools/setup check")
    (folder / "empty.cc").write_text("#include <string>\n")
    command = [compiler, "-std=c++20", "-stdlib=libc++", "-fPIC", "-fvisibility=hidden"]
    if subprocess.run([*command, "-fsyntax-only", folder / "empty.cc"], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip("libc++ is not installed: tools/setup check")
    run_program(*command, "-shared", f"-I{ROOT / 'include'}", "-o", folder / "hostile.so",
                ROOT / "tests" / "backends" / "hostile" / "hostile.cc")
    return folder / "hostile.so"


@pytest.mark.parametrize("mischief", WITH_LIBCXX)
def test_exceptions_of_another_cxx_library_are_survived(tessera, model, libcxx_plugin, mischief):
    if mischief in FAILS_TO_OPEN:
        entry = read_backend(tessera, libcxx_plugin, mischief)
        assert not entry["is_usable"] and FAILS_TO_OPEN[mischief] in entry["reason"]
    elif mischief in FAILS_TO_SERVE:
        reasons, steps = refusals(tessera, model, libcxx_plugin, mischief)
        assert steps == [] and FAILS_TO_SERVE[mischief] in " / ".join(reasons)
    else:
        result = run(tessera, model, libcxx_plugin, mischief)
        assert result.returncode == 3 and FAILS_TO_RUN[mischief] in result.stderr


def verify_hostile(tessera, plugins, mischief, *arguments):
    result = tessera("verify", "--backend", plugins / "hostile.so", "--json", *arguments, code=1,
                     mischief=mischief)
    return json.loads(result.stdout)


def assert_judged_on(report, stage):
    """Every check was made that the missing stage does not prevent."""
    if stage == "opening":
        return
    checks = {check["check"]: check for check in report["checks"]}
    assert report["backend"] == "hostile" and checks["opens"]["passed_count"] == 1
    is_given_up = "judged to the end" in checks
    assert stage == "closing" or is_given_up or checks["closes"]["passed_count"] == 1
    if stage in ("inferring", "closing"):
        assert checks["numbers"]["passed_count"] > 0 and checks["numbers"]["failed_count"] == 0
    if not is_given_up:
        assert len(report["ops"]) > 50  # the whole table of ops


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("deed", ["crashes", "exits"])
def test_verify_outlives_a_plugin_that_ends_its_process(tessera, plugins, bin_dir, deed, stage):
    report = verify_hostile(tessera, plugins, f"{deed}_{stage}")
    words = "the plug-in crashed (segmentation fault)"
    if deed == "exits":
        words = "the plug-in ended the process (exit code"
    elif bin_dir.parent.name == "asan":
        words = "the plug-in"  # with a sanitizer the process ends in another way
    told = [failure for failure in report["failures"] if words in failure["message"]]
    assert told and told[0]["check"] == STAGES[stage], report["failures"][:3]
    assert_judged_on(report, stage)


@pytest.mark.parametrize("stage", STAGES)
def test_verify_does_not_wait_for_a_plugin_that_hangs(tessera, plugins, stage):
    report = verify_hostile(tessera, plugins, f"hangs_{stage}", "--timeout", "1")
    told = [failure for failure in report["failures"] if "within 1 s" in failure["message"]]
    assert told and told[0]["check"] == STAGES[stage], report["failures"][:3]
    assert_judged_on(report, stage)


def test_verify_names_op_and_case_of_a_crash_and_goes_on(tessera, plugins, bin_dir):
    result = tessera("verify", "--backend", plugins / "hostile.so", code=1,
                     mischief="aborts_running")
    assert result.stderr == ""
    assert "FAILED runs: op Relu, case 1: the plug-in crashed (aborted)" in result.stdout
    assert "Relu(7), candidate 'wicked', 1 thread" in result.stdout
    # After the case that crashed, the next case is tried, and then no further case of this op.
    assert "FAILED runs: op Relu, case 2:" in result.stdout
    assert "FAILED runs: op Relu, case 3:" not in result.stdout
    assert "not tried: crashed before" in result.stdout


def test_verify_finds_nothing_wrong_without_mischief(tessera, plugins):
    tessera("verify", "--backend", plugins / "hostile.so", "--json")


def test_verify_in_process_ends_with_the_plugin(tessera, plugins, bin_dir):
    if bin_dir.parent.name == "asan":
        pytest.skip("the sanitizer ends the process in its own way")
    result = tessera("verify", "--backend", plugins / "hostile.so", "--in-process",
                     code=-signal.SIGSEGV, mischief="crashes_running")
    assert result.stdout == ""


def test_verify_without_its_worker_says_how_to_build_it(tessera_binary, plugins, tmp_path):
    alone = tmp_path / "folder" / "tessera"
    alone.parent.mkdir()
    shutil.copy(tessera_binary, alone)
    result = run_program(alone, "verify", "--backend", plugins / "hostile.so")
    assert "backend hostile" in result.stdout
    assert "judged in this process" in result.stderr and "tessera-worker" in result.stderr
    assert "make demo" in result.stderr and "tools/build release tessera_worker" in result.stderr


def test_verify_shows_on_a_terminal_what_it_checks(tessera_binary, plugins):
    command = [tessera_binary, "verify", "--backend", plugins / "hostile.so", "--timeout", "2"]
    environment = {**os.environ, "TESSERA_TEST_MISCHIEF": "hangs_running"}
    shown = run_on_terminal(command, "stderr", stdout=subprocess.PIPE, env=environment).stderr
    assert b"checking Conv+Relu, case 1 of 1: runs, 1 s so far" in shown
    assert shown.endswith(b"\r\x1b[K")
