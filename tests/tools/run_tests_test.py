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
