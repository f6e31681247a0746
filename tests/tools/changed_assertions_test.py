"""tools/changed_assertions finds the assertions in a file, and tells a renaming from a change."""

from load_tool import load_tool

tool = load_tool("changed_assertions")


def texts(path, text):
    return [assertion.text for assertion in tool.assertions_in(path, text)]


def test_calls_end_at_their_parenthesis():
    text = 'TEST(A, B) {\n  EXPECT_EQ(f(1,\n              ")"), "(");  // (\n  ASSERT_TRUE(g());\n}\n'
    assert texts("src/a_test.cc", text) == ['EXPECT_EQ(f(1, ")"), "(")', "ASSERT_TRUE(g())"]


def test_assertions_of_python_are_lines():
    assert texts("tests/a_test.py", "def test():\n    assert 1 == 1  # why\n    asserted = 2\n") == [
        "assert 1 == 1  # why"]


def test_a_renaming_changes_identifiers_only():
    assert tool.is_renamed("EXPECT_EQ(least, 2)", "EXPECT_EQ(min_cost, 2)")
    assert not tool.is_renamed("EXPECT_EQ(least, 2)", "EXPECT_EQ(least, 3)")
    assert not tool.is_renamed('EXPECT_EQ(f(), "a")', 'EXPECT_EQ(f(), "b")')
    assert not tool.is_renamed("EXPECT_EQ(least, 2)", "EXPECT_EQ(options.least, 2)")


def test_comments_do_not_count():
    assert tool.without_comment("assert x  # one") == tool.without_comment("assert x  # two")
    assert tool.without_comment('assert x == "#a"') != tool.without_comment('assert x == "#b"')


def test_a_wrong_commit_is_an_error_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["changed_assertions", "no-such-commit"])
    try:
        tool.main()
    except SystemExit as end:
        assert str(end).startswith("changed_assertions: ") and "no-such-commit" in str(end)
    else:
        raise AssertionError("it ended well")
