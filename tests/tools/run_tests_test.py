"""tools/run_tests counts what ctest and pytest report."""

import pytest
from load_tool import load_tool

run_tests = load_tool("run_tests")

# The cases of a JUnit file, the runner's exit status, and what they come to.
CASES = {
    "passed": ('<testcase name="a" status="run"/><testcase name="b"/>', 0, (2, 0, 0)),
    "failed in ctest": ('<testcase status="fail"><failure/></testcase><testcase/>', 8, (1, 1, 0)),
    "error in pytest": ("<testcase><error/></testcase>", 1, (0, 1, 0)),
    "skipped": ('<testcase status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
                "</testcase><testcase><skipped/></testcase>", 0, (0, 0, 2)),
    "not built": ('<testcase status="notrun"><skipped message="Unable to find executable: x"/>'
                  "</testcase>", 8, (0, 1, 0)),
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
    """Folders a and b of unit tests, of which each takes ten seconds of an invented time."""
    class Clock:
        now = 100.0
        ran = []

    def run_ctest(preset, jobs, options, folder):
        Clock.now += 10
        Clock.ran.append(folder)
        return run_tests.Counts(passed=1)

    Clock.ran = []
    monkeypatch.setattr(run_tests.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(run_tests, "unit_test_folders", lambda preset: ["a", "b"])
    monkeypatch.setattr(run_tests, "run_pytest", lambda preset, folders: run_tests.Counts(passed=1))
    monkeypatch.setattr(run_tests, "run_ctest", run_ctest)
    return Clock


@pytest.mark.parametrize("end, ran, skipped", [(200, ["a", "b"], 0), (105, ["a"], 1), (99, [], 2)])
def test_nothing_begins_when_time_is_over_and_that_is_told(clock, monkeypatch, capsys, end, ran, skipped):
    monkeypatch.setattr(run_tests, "build", lambda preset, targets, end: True)
    counts = run_tests.test_sanitized(["tests/fuzz"], (), (), 1, end)
    assert clock.ran == ran
    assert (counts.passed, counts.failed, counts.skipped) == (1 + len(ran), 0, skipped)
    assert capsys.readouterr().out.count("no time left for the unit tests of") == skipped


@pytest.mark.parametrize("built, failed, skipped", [(None, 0, 1), (False, 1, 0)])
def test_what_was_not_built_is_told_apart_from_what_does_not_build(clock, monkeypatch, built, failed, skipped):
    monkeypatch.setattr(run_tests, "build", lambda preset, targets, end: built)
    counts = run_tests.test_sanitized(["tests/fuzz"], (), (), 1, 1000)
    assert (counts.passed, counts.failed, counts.skipped) == (0, failed, skipped)
    assert clock.ran == []
