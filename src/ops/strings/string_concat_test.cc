#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StringConcat, JoinsElementsOfBoth) {
  EXPECT_THAT(texts(run_text({"StringConcat"}, {}, {words({"a", ""}), words({"b", "ü"})})[0]),
              ElementsAre("ab", "ü"));
}

TEST(StringConcat, Broadcasts) {
  const Tensor joined =
      run_text({"StringConcat"}, {}, {strings({2, 1}, {"a", "b"}), words({"1", "2"})})[0];
  EXPECT_EQ(joined.dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(texts(joined), ElementsAre("a1", "a2", "b1", "b2"));
  EXPECT_TRUE(texts(run_text({"StringConcat"}, {}, {words({}), words({"x"})})[0]).empty());
}

TEST(StringConcat, RefusesShapesThatDoNotFit) {
  EXPECT_NE(text_error({"StringConcat"}, {},
                       {typed(DataType::String, Shape{2}), typed(DataType::String, Shape{3})}),
            "");
  EXPECT_THAT(text_error({"StringConcat"}, {},
                         {typed(DataType::String, Shape{2}), typed(DataType::Int64, Shape{2})}),
              HasSubstr("expected elements of string, found int64"));
}

}  // namespace
}  // namespace tessera::ops
