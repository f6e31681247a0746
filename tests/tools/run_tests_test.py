"""tools/run_tests counts what GoogleTest and pytest report."""

import math
import os
import subprocess
import sys

import pytest
from load_tool import load_tool

run_tests = load_tool("run_tests")

# The cases of a JUnit file, the runner's exit status, and the expected counts.
CASES = {
    "passed": ('<testcase name="a" status="run"/><testcase name="b"/>', 0, (2, 0, 0)),
    "failed": ('<testcase status="run"><failure/></testcase><testcase/>', 1, (1, 1, 0)),
    "error in pytest": ("<testcase><error/></testcase>", 1, (0, 1, 0)),
    "skipped": ('<testcase status="notrun"/><testcase><skipped/></testcase>', 0, (0, 0, 2)),
    "a failure outside any test": ("<testcase/>", 2, (1, 1, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_cases_are_counted(tmp_path, name):
    cases, status, expected = CASES[name]
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    counts = run_tests.read_junit(report, status)
    assert (counts.passed, counts.failed, counts.skipped) == expected


def test_a_missing_report_counts_as_a_failure(tmp_path):
    assert run_tests.read_junit(tmp_path / "none.xml", 0).failed == 1


@pytest.fixture
def clock(monkeypatch):
    """Programs a and b, each of which takes ten seconds of simulated time."""
    class Clock:
        now = 100.0
        ran = []

    def run_program(preset, program, shard, shards):
        Clock.now += 10
        Clock.ran.append(program["name"])
        return run_tests.Counts(passed=1)

    Clock.ran = []
    programs = [{"name": name, "is_serial": False, "is_on_demand": False} for name in ("a", "b")]
    monkeypatch.setattr(run_tests.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(run_tests, "LEAST_SANITIZED_MINUTES", -math.inf)
    monkeypatch.setattr(run_tests, "unit_test_programs", lambda preset: programs)
    monkeypatch.setattr(run_tests, "run_pytest",
                        lambda *arguments: run_tests.Counts(passed=1))
    monkeypatch.setattr(run_tests, "run_program", run_program)
    return Clock


def sanitized(end):
    parts = run_tests.Parts()
    run_tests.test_sanitized(parts, ["tests/fuzz"], (), lambda program: True, 1, end)
    return parts


@pytest.mark.parametrize("end, ran, skipped", [(200, ["a", "b"], 0), (105, ["a"], 1), (99, [], 2)])
def test_nothing_begins_when_time_is_over_and_that_is_told(clock, monkeypatch, capsys, end, ran, skipped):
    monkeypatch.setattr(run_tests, "build", lambda preset, targets, end: True)
    counts = sanitized(end).total
    assert clock.ran == ran
    assert (counts.passed, counts.failed, counts.skipped) == (1 + len(ran), 0, skipped)
    is_told = f"no time left for {skipped} of 2 processes" in capsys.readouterr().out
    assert is_told == (skipped > 0)


@pytest.mark.parametrize("built, failed, skipped", [(None, 0, 1), (False, 1, 0)])
def test_what_was_not_built_is_told_apart_from_what_does_not_build(clock, monkeypatch, built, failed, skipped):
    monkeypatch.setattr(run_tests, "build", lambda preset, targets, end: built)
    counts = sanitized(1000).total
    assert (counts.passed, counts.failed, counts.skipped) == (0, failed, skipped)
    assert clock.ran == []


def test_no_build_begins_that_would_not_end_in_time(clock, monkeypatch, capsys):
    def build(preset, targets, end):
        raise AssertionError("it began")

    monkeypatch.setattr(run_tests, "build", build)
    monkeypatch.setattr(run_tests, "LEAST_SANITIZED_MINUTES", 2)
    counts = sanitized(clock.now + 100).total
    assert (counts.passed, counts.failed, counts.skipped) == (0, 0, 1)
    assert "no time left to build it" in capsys.readouterr().out


def test_each_part_is_listed_with_its_minutes_and_result(clock, monkeypatch):
    monkeypatch.setattr(run_tests, "build", lambda preset, targets, end: True)
    lines = sanitized(1000).text().splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "part", "build, asan", "pytest, asan", "unit tests, asan"]
    assert lines[-1].split() == ["unit", "tests,", "asan", "0.3", "2", "passed,", "0", "failed"]


GOOGLE_TEST = """#!/bin/sh
echo "[ RUN      ] Some.Case"
[ "$TESSERA_OPTIMIZE" = 0 ] || exit 9
{body}
"""


@pytest.mark.parametrize("body, expected, is_shown", [
    ("""echo '<testsuites><testcase/><testcase/></testsuites>' >"${GTEST_OUTPUT#xml:}" """,
     (2, 0, 0), False),
    ("""echo '<testsuites><testcase/><testcase><failure/></testcase></testsuites>' \
        >"${GTEST_OUTPUT#xml:}"; exit 1""", (1, 1, 0), True),
    ("kill -SEGV $$", (0, 1, 0), True),
], ids=["passed", "failed", "crashed"])
def test_a_program_of_unit_tests_is_counted(tmp_path, monkeypatch, capsys, body, expected, is_shown):
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    binary = tmp_path / "build" / "release" / "bin" / "some_test"
    binary.parent.mkdir(parents=True)
    binary.write_text(GOOGLE_TEST.replace("{body}", body))
    binary.chmod(0o755)
    program = {"name": "some_test", "environment": ["TESSERA_OPTIMIZE=0"]}
    counts = run_tests.run_program("release", program, 0, 1)
    assert (counts.passed, counts.failed, counts.skipped) == expected
    assert ("Some.Case" in capsys.readouterr().out) == is_shown


def test_a_program_that_was_not_built_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    (tmp_path / "build" / "release").mkdir(parents=True)
    assert run_tests.run_program("release", {"name": "none", "environment": []}, 0, 1).failed == 1


@pytest.mark.parametrize("changed, left_out", [
    (None, []),
    ([], ["native", "onednn"]),
    (["README.md", "src/place/place.cc"], ["native", "onednn"]),
    (["backends/native/layout/padding.cc"], ["onednn"]),
    (["tests/onednn/shape_test.cc"], ["native"]),
    (["include/tessera/backend_abi.h"], []),
    (["include/tessera/tessera.h"], ["native", "onednn"]),
    (["cmake/TesseraTargets.cmake"], []),
])
def test_plugins_are_sanitized_where_they_changed(changed, left_out):
    assert run_tests.plugins_to_leave_out(changed) == left_out


def test_programs_get_nobodys_settings_and_caches(tmp_path, monkeypatch):
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    for name in ("GTEST_FILTER", "TESSERA_BACKENDS", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "of the user")
    binary = tmp_path / "build" / "release" / "bin" / "some_test"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\nenv >{tmp_path}/told\n")
    binary.chmod(0o755)
    run_tests.run_program("release", {"name": "some_test", "environment": []}, 0, 1)
    assert "of the user" not in (tmp_path / "told").read_text()


def test_a_program_that_hangs_is_ended(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "MOST_SECONDS", 0.2)
    binary = tmp_path / "build" / "release" / "bin" / "some_test"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\nexec sleep 60\n")
    binary.chmod(0o755)
    program = {"name": "some_test", "environment": []}
    assert run_tests.run_program("release", program, 0, 1).failed == 1
    assert "longer than 0.2 s" in capsys.readouterr().out


def test_a_part_that_breaks_does_not_hide_the_rest():
    parts = run_tests.Parts()
    parts.run("broken", lambda: 1 / 0)
    parts.run("fine", lambda: run_tests.Counts(passed=2))
    assert (parts.total.passed, parts.total.failed) == (2, 1)


def test_an_unknown_base_means_that_everything_may_have_changed():
    assert run_tests.changed_files("no-such-branch") is None


def test_after_the_end_tests_are_skipped(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text((run_tests.ROOT / "tests" / "conftest.py").read_text())
    (folder / "programs.py").write_text("json_of = None\n")
    (folder / "some_test.py").write_text("def test_one():\n    pass\n")
    (folder / "pytest.ini").write_text("[pytest]\npython_files = *_test.py\n")
    for end, expected in (("1", "1 skipped"), ("9e9", "1 passed")):
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--end", end, folder],
                              cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(folder)})
        assert expected in done.stdout, done.stdout + done.stderr
