#include "cli/output/text_table.h"

#include <sstream>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

TEST(Printable, EscapesWhatCouldSteerATerminal) {
  struct Case {
    std::string text;
    std::string expected;
  };
  const Case cases[] = {
      {"conv1/weights:0", "conv1/weights:0"},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\xc2\x9b", "\\xc2\\x9b"},
      {"\xff\xc3", "\\xff\\xc3"},
      {"a\xe2\x80\xae"
       "b",
       "a\\xe2\\x80\\xae"
       "b"},
      {"\xe2\x80\x8b\xe2\x81\xa9", "\\xe2\\x80\\x8b\\xe2\\x81\\xa9"},
      {"\xd8\x9c\xd8\x9b", "\\xd8\\x9c\xd8\x9b"},
      {"\xef\xbf\xbd\xef\xbf\xbe\xef\xbb\xbf", "\xef\xbf\xbd\\xef\\xbf\\xbe\\xef\\xbb\\xbf"},
      {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},
      {"\xe2\x80\xa6\xe2\x86\x92", "\xe2\x80\xa6\xe2\x86\x92"},
      {"\xc0\xaf", "\\xc0\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xe0\x80\x80", "\\xe0\\x80\\x80"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xe2\x82", "\\xe2\\x82"},
  };
  for (const Case& row : cases) EXPECT_EQ(printable(row.text), row.expected);
}

TEST(Shorten, TakesOutTheMiddle) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6),
            "abc\xe2\x80\xa6"
            "fg");
  EXPECT_EQ(shorten("abcdefg", 1), "\xe2\x80\xa6");
  EXPECT_EQ(shorten("\xc3\xa9\xc3\xa8\xc3\xa9\xc3\xa8\xc3\xa9", 3), "\xc3\xa9\xe2\x80\xa6\xc3\xa9");
  EXPECT_EQ(character_count(shorten(std::string(500, 'x'), 30)), 30U);
}

TEST(TextTable, AlignsAndEndsLinesWithoutSpaces) {
  TextTable table({{"name"}, {"ms", Align::Right}, {"remark"}});
  table.add_row({"a", "1.25", ""});
  table.add_row({"long\xc3\xa9r", "10", "slow"});
  EXPECT_EQ(table.text({}, "  "),
            "  name      ms  remark\n"
            "  a       1.25\n"
            "  long\xc3\xa9r    10  slow\n");
}

TEST(TextTable, ShortensWhatMayBeShortened) {
  TextTable table({{"name", Align::Left, true}, {"type"}, {"other", Align::Left, true}});
  table.add_row({std::string(150, 'n'), "float32", std::string(60, 'o')});
  table.add_row({"b", "int8", "c"});
  std::istringstream lines(table.text({}));
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(character_count(line), kTextColumns);
  EXPECT_THAT(table.text({}), HasSubstr("float32"));
  EXPECT_THAT(table.text({}), HasSubstr("n\xe2\x80\xa6n"));
}

TEST(TextTable, WrapsBetweenWords) {
  const std::string words = std::string(60, 'a') + " " + std::string(38, 'b');
  EXPECT_EQ(wrapped(words, {}), words + "\n");
  EXPECT_EQ(wrapped(words + "b c", {}), words + "b\nc\n");
  EXPECT_EQ(wrapped(words + "bb c", {}),
            std::string(60, 'a') + "\n" + std::string(40, 'b') + " c\n");
  EXPECT_EQ(wrapped(std::string(150, 'd'), {}, "  "),
            "  " + std::string(98, 'd') + "\n  " + std::string(52, 'd') + "\n");
  EXPECT_EQ(wrapped("it took 12.3 \xc2\xb5s, once", {.columns = 13}),
            "it took\n12.3 \xc2\xb5s, once\n");
  EXPECT_EQ(wrapped("", {}, "  "), "");
  EXPECT_EQ(wrapped("\n", {}), "\\x0a\n");
}

size_t longest_table_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, character_count(line));
  }
  return longest;
}

TEST(TextStyle, IsWithinItsLimits) {
  EXPECT_EQ(terminal_style(0).columns, 100U) << "a terminal that does not know";
  EXPECT_EQ(terminal_style(20).columns, 60U);
  EXPECT_EQ(terminal_style(80).columns, 80U);
  EXPECT_EQ(terminal_style(500).columns, 160U);
  EXPECT_TRUE(terminal_style(80).cuts_names);
  EXPECT_FALSE(kPipeStyle.cuts_names);
}

TEST(TextTable, FillsTheTerminalAndNoMore) {
  TextTable table({{"name", Align::Left, true}, {"type"}, {"other", Align::Left, true}});
  table.add_row({std::string(150, 'n'), "float32", std::string(160, 'o')});
  for (const size_t columns : {60U, 100U, 160U}) {
    EXPECT_EQ(longest_table_line(table.text(terminal_style(columns))), columns);
  }
}

TEST(TextTable, CutsNothingInAPipe) {
  TextTable table({{"name", Align::Left, true}, {"type"}});
  table.add_row({std::string(250, 'n'), "float32"});
  table.add_row({"short", "int64"});
  // A long name moves the following cells in its own line only.
  EXPECT_EQ(table.text(kPipeStyle), "name" + std::string(38, ' ') + "type\n" +
                                        std::string(250, 'n') + "  float32\n" + "short" +
                                        std::string(37, ' ') + "int64\n");
}

TEST(TextTable, TakesSeveralLinesForARowThatIsTooWide) {
  TextTable table({{"step", Align::Right},
                   {"name", Align::Left, true},
                   {"backend"},
                   {"type"},
                   {"time", Align::Right},
                   {"share", Align::Right}});
  table.add_row(
      {"7", std::string(30, 'n'), "reference", "float32 1x1000x1x1", "123.4 \xc2\xb5s", "12.3 %"});
  table.add_row({"8", "m", "", "", "", ""});
  EXPECT_EQ(table.text(terminal_style(60)),
            "step  name\n"
            "    backend    type                    time   share\n"
            "   7  nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\n"
            "    reference  float32 1x1000x1x1  123.4 \xc2\xb5s  12.3 %\n"
            "   8  m\n");
  TextTable one({{"title that cannot be shortened, of a column that is far too wide to fit"}});
  one.add_row({"x"});
  EXPECT_EQ(longest_table_line(one.text(terminal_style(60))), 60U);
}

TEST(TextTable, BreaksLongWordsOnTerminalsOnly) {
  const std::string path(150, 'p');
  EXPECT_EQ(wrapped("a " + path + " b", kPipeStyle), "a\n" + path + "\nb\n");
  EXPECT_EQ(longest_table_line(wrapped("a " + path + " b", terminal_style(60))), 60U);
  EXPECT_EQ(fitted(path, kPipeStyle, 10), path);
  EXPECT_EQ(character_count(fitted(path, terminal_style(60), 10)), 50U);
}

TEST(TextTable, LabelsStandBeforeTheFirstLine) {
  EXPECT_EQ(labelled("ops", "Conv 26, Relu 26", 6, terminal_style(60)), "ops   Conv 26, Relu 26\n");
  EXPECT_EQ(labelled("ops", std::string(50, 'a') + " b c d", 6, terminal_style(60)),
            "ops   " + std::string(50, 'a') + " b c\n      d\n");
  EXPECT_EQ(labelled("ops", "", 6, {}), "ops\n");
}

}  // namespace
}  // namespace tessera::cli
