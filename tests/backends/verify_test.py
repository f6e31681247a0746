"""`tessera verify --backend`: an honest plug-in passes, and the right check catches each lie."""

import json

import pytest
from programs import plain_environment, run_program

# Lie -> the check that catches it, and a part of the location or message.
LIES = {
    "writes_behind_output": ("guard bytes", "Relu(7)"),
    "writes_before_output": ("guard bytes", "4 bytes before its start"),
    "changes_input": ("inputs unchanged", "input 0"),
    "overruns_workspace": ("workspace", "byte 65 of 64"),
    "wrong_numbers": ("numbers", "Relu"),
    "gives_nan": ("numbers", "found nan"),
    "loses_nan": ("special values", "expected nan, found 0"),
    "leaves_the_last_element": ("numbers", "Relu"),
    "in_place": ("in place", "Relu"),
    "forgets_to_add": ("adding", "Add(3x5, 3x5)"),
    "differs_from_run_to_run": ("the same twice", "Relu"),
    "dirty_padding": ("padding is zero", "liar:fours"),
    "wrong_with_two_threads": ("numbers", "2 threads"),
    "cannot_build": ("builds what it offers", "it cannot after all"),
    "cannot_load": ("saved kernels", "it cannot read that"),
    "wrong_when_loaded": ("saved kernels", "Relu"),
    "pack_overruns": ("packs", "as_it_is"),
    "pack_is_wrong": ("numbers", "MatMul"),
    "no_view": ("views", "Neg"),
    "view_reaches_out": ("legal offers", "reaches beyond"),
    "joint_elsewhere": ("views", "Concat"),
    "joint_overlaps": ("legal offers", "overlap"),
    "ignores_strides": ("strides", "Neg"),
    "writes_between_rows": ("guard bytes", "between its rows"),
    "illegal_offer": ("legal offers", "negative memory"),
    "loses_bits": ("layouts: there and back", "liar:fours"),
    "conversion_overruns": ("layouts: guard bytes and sources", "liar:fours"),
    "storage_too_small": ("layouts: guard bytes and sources", "liar:fours"),
    "conversion_changes_source": ("layouts: guard bytes and sources", "changes its source"),
    "conversion_leaves_padding": ("layouts: padding is zero", "liar:fours"),
    "direct_differs": ("conversions: as through the default layout", "'liar:fours' to"),
    "reference_overruns": ("guard bytes", "org.liar::Twice"),
    "type_rule_breaks": ("own ops: type rules", "no idea"),
    "reference_fails": ("own ops: references", "not of this rank"),
}


@pytest.fixture(scope="module")
def liar(built_plugin):
    return built_plugin("liar")


@pytest.fixture
def verify(tessera_binary, liar):
    def call(*arguments, lie=None, code=0):
        variables = {"TESSERA_TEST_LIE": lie} if lie else {}
        return run_program(tessera_binary, "verify", *arguments, code=code,
                           env=plain_environment(**variables))

    return call


def test_an_honest_one_passes_every_check(verify, liar):
    result = verify("--backend", liar, "--json", "--cases", 2, code=None)
    report = json.loads(result.stdout)
    assert result.returncode == 0 and report["failures"] == [], report["failures"]
    assert report["backend"] == "liar" and report["failed_count"] == 0
    counts = {check["check"]: check for check in report["checks"]}
    # Every check that catches a lie was also made without a lie, so none passes only because it
    # never runs.
    assert {check for check, _ in LIES.values()} <= set(counts)
    assert all(counts[check]["passed_count"] > 0 for check, _ in LIES.values())
    ops = {op["op"]: op for op in report["ops"]}
    assert ops["Relu"]["accepted_count"] >= 6 and ops["Conv"]["accepted_count"] == 0
    assert ops["Conv"]["reason"] == "not this one"


def test_another_process_finds_what_this_one_does(verify, liar):
    for lie in (None, "wrong_numbers"):
        apart = json.loads(verify("--backend", liar, "--json", lie=lie, code=None).stdout)
        here = json.loads(
            verify("--backend", liar, "--json", "--in-process", lie=lie, code=None).stdout)
        assert apart == here


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_caught_by_the_right_check(verify, liar, lie, bin_dir):
    if lie == "reference_overruns" and bin_dir.parent.name == "asan":
        pytest.skip("the sanitizer catches this one first, and ends the program")
    result = verify("--backend", liar, "--json", code=1, lie=lie)
    check, words = LIES[lie]
    failures = json.loads(result.stdout)["failures"]
    told = [failure["where"] + ": " + failure["message"] for failure in failures
            if failure["check"] == check]
    assert any(words in text for text in told), failures[:5]


def test_text_names_check_op_shape_and_candidate(verify, liar):
    result = verify("--backend", liar, code=1, lie="wrong_numbers")
    group = "Conv(1x3x9x7, #8x3x3x3, #8) pads=1,1,1,1; Relu(@)"
    for check in ("numbers", "other values"):
        assert f"FAILED {check}: {group}, candidate, 1 thread" in result.stdout
    assert result.stderr == ""  # no progress line without a terminal
    assert "expected" in result.stdout and "total" in result.stdout


def test_what_cannot_be_opened_fails_and_what_is_not_there_is_bad_input(verify, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    result = verify("--backend", tmp_path / "text.so", code=1)
    assert "FAILED opens" in result.stdout
    result = verify("--backend", tmp_path / "nowhere.so", code=2)
    assert "nowhere.so" in result.stderr
    verify("--backend", tmp_path / "text.so", "--cases", "0", code=2)
    verify("--backend", tmp_path / "text.so", "--seed", "x", code=2)
    verify("--backend", tmp_path / "text.so", "--timeout", "0", code=2)
    verify(code=2)


def test_every_plugin_that_was_built_passes(verify, bin_dir):
    libraries = sorted((bin_dir.parent / "lib" / "tessera").glob("*.so"))
    if not libraries:
        pytest.skip("no plug-in was built: tessera backends says why")
    # Sanitizers look at the code of the plug-ins, which one case of each op runs.
    cases = 1 if bin_dir.parent.name == "asan" else 3
    for library in libraries:
        done = verify("--backend", library, "--json", "--cases", cases, code=None)
        report = json.loads(done.stdout)
        assert report["failures"] == [] and report["failed_count"] == 0, (
            library.name, report["failures"])


@pytest.mark.parametrize("instructions", ["SSE41", "AVX2"])
def test_onednn_passes_with_its_kernels_for_older_processors(verify, bin_dir, monkeypatch,
                                                             instructions):
    """They compute in another order than those that this machine may get."""
    library = bin_dir.parent / "lib" / "tessera" / "backend_onednn.so"
    if not library.exists():
        pytest.skip("onednn was not built: tessera backends says why")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", instructions)
    verify("--backend", library, "--json", "--cases", 2)
