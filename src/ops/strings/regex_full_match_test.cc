#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Attributes pattern(const std::string& text) {
  Attributes attributes;
  attributes.set("pattern", text);
  return attributes;
}

TEST(RegexFullMatch, MatchesWholeStrings) {
  const Tensor matches = run_text({"RegexFullMatch"}, pattern(R"(www\.[\w.-]+\.com)"),
                                  {words({"www.a.com", "x www.a.com", "www.a.org", ""})})[0];
  EXPECT_EQ(matches.type(), DataType::Bool);
  EXPECT_THAT(bytes(matches), ElementsAre(1, 0, 0, 0));
}

TEST(RegexFullMatch, KnowsLettersOfAllAlphabets) {
  EXPECT_THAT(bytes(run_text({"RegexFullMatch"}, pattern("\\p{L}."), {words({"éx", "漢字"})})[0]),
              ElementsAre(1, 1));
}

TEST(RegexFullMatch, MatchesOnlyEmptyStringsWithoutAPattern) {
  EXPECT_THAT(bytes(run_text({"RegexFullMatch"}, {}, {words({"", "a"})})[0]), ElementsAre(1, 0));
}

TEST(RegexFullMatch, RefusesWhatIsNoPattern) {
  // RE2 has no references to groups.
  for (const char* wrong : {"(", R"((a)\1)"}) {
    EXPECT_THAT(text_error({"RegexFullMatch"}, pattern(wrong), {typed(DataType::String, Shape{1})}),
                AllOf(HasSubstr("attribute 'pattern'"), HasSubstr(wrong)));
  }
}

}  // namespace
}  // namespace tessera::ops
