#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Attributes normalization(const std::string& change, const std::vector<std::string>& stop_words = {},
                         bool is_case_sensitive = false) {
  Attributes attributes;
  attributes.set("case_change_action", change);
  if (!stop_words.empty()) attributes.set("stopwords", stop_words);
  attributes.set("is_case_sensitive", int64_t{is_case_sensitive});
  return attributes;
}

const Tensor kDays = words({"Monday", "tuesday", "Ärger"});

std::vector<std::string> normalized(const Attributes& attributes) {
  return texts(run_text({"StringNormalizer"}, attributes, {kDays})[0]);
}

TEST(StringNormalizer, ChangesTheCase) {
  EXPECT_THAT(normalized(normalization("NONE")), ElementsAre("Monday", "tuesday", "Ärger"));
  EXPECT_THAT(normalized(normalization("LOWER")), ElementsAre("monday", "tuesday", "ärger"));
  EXPECT_THAT(normalized(normalization("UPPER")), ElementsAre("MONDAY", "TUESDAY", "ÄRGER"));
  EXPECT_THAT(normalized({}), ElementsAre("Monday", "tuesday", "Ärger"));
}

TEST(StringNormalizer, DropsStopWords) {
  EXPECT_THAT(normalized(normalization("NONE", {"monday", "ÄRGER"})), ElementsAre("tuesday"));
  EXPECT_THAT(normalized(normalization("UPPER", {"monday", "tuesday"}, true)),
              ElementsAre("MONDAY", "ÄRGER"));
}

TEST(StringNormalizer, LeavesAnEmptyStringOfNoWords) {
  const Attributes all = normalization("NONE", {"monday", "tuesday", "ärger"});
  EXPECT_THAT(normalized(all), ElementsAre(""));
  const Tensor row = run_text({"StringNormalizer"}, all, {strings({1, 1}, {"Monday"})})[0];
  EXPECT_EQ(row.dims(), (std::vector<int64_t>{1, 1}));
}

TEST(StringNormalizer, TakesAListOrARow) {
  const auto error = [](const Shape& shape) {
    return text_error({"StringNormalizer"}, {}, {typed(DataType::String, shape)});
  };
  EXPECT_THAT(error(Shape{2, 2}), HasSubstr("[C] or [1, C]"));
  EXPECT_THAT(error(Shape{}), HasSubstr("[C] or [1, C]"));
  EXPECT_THAT(
      text_error({"StringNormalizer"}, normalization("Upper"), {typed(DataType::String, Shape{1})}),
      HasSubstr("expected NONE, LOWER or UPPER, found 'Upper'"));
}

}  // namespace
}  // namespace tessera::ops
