#include "cli/text_table.h"

#include <gmock/gmock.h>

#include <sstream>

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
  EXPECT_EQ(table.text("  "),
            "  name      ms  remark\n"
            "  a       1.25\n"
            "  long\xc3\xa9r    10  slow\n");
}

TEST(TextTable, ShortensWhatMayBeShortened) {
  TextTable table({{"name", Align::Left, true}, {"type"}, {"other", Align::Left, true}});
  table.add_row({std::string(150, 'n'), "float32", std::string(60, 'o')});
  table.add_row({"b", "int8", "c"});
  std::istringstream lines(table.text());
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(character_count(line), kTextColumns);
  EXPECT_THAT(table.text(), testing::HasSubstr("float32"));
  EXPECT_THAT(table.text(), testing::HasSubstr("n\xe2\x80\xa6n"));
}

TEST(Quantities, HaveThreeDigitsAndAUnit) {
  EXPECT_EQ(quantity_text(0), "0");
  EXPECT_EQ(quantity_text(999), "999");
  EXPECT_EQ(quantity_text(1'500'000), "1.50 M");
  EXPECT_EQ(quantity_text(39.2e9), "39.2 G");
  EXPECT_EQ(bytes_text(17), "17 B");
  EXPECT_EQ(bytes_text(3 << 19), "1.50 MiB");
}

TEST(TextTable, WrapsBetweenWords) {
  const std::string words = std::string(60, 'a') + " " + std::string(38, 'b');
  EXPECT_EQ(wrapped(words), words + "\n");
  EXPECT_EQ(wrapped(words + "b c"), words + "b\nc\n");
  EXPECT_EQ(wrapped(words + "bb c"), std::string(60, 'a') + "\n" + std::string(40, 'b') + " c\n");
  EXPECT_EQ(wrapped(std::string(150, 'd'), "  "),
            "  " + std::string(98, 'd') + "\n  " + std::string(52, 'd') + "\n");
  EXPECT_EQ(wrapped("", "  "), "");
  EXPECT_EQ(wrapped("\n"), "\\x0a\n");
}

}  // namespace
}  // namespace tessera::cli
