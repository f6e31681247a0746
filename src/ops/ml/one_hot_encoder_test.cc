#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TextOp kEncoder = {"OneHotEncoder", 1, kMlDomain};

Attributes numbers(std::vector<int64_t> categories) {
  Attributes attributes;
  attributes.set("cats_int64s", std::move(categories));
  return attributes;
}

TEST(OneHotEncoder, MarksCategories) {
  const Tensor marks = run_text(kEncoder, numbers({5, 6}), {ints({1, 2}, {6, 7})})[0];
  EXPECT_THAT(marks.dims(), ElementsAre(1, 2, 2));
  EXPECT_THAT(values(marks), ElementsAre(0, 1, 0, 0));
}

TEST(OneHotEncoder, MarksAnyIntegers) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(values(run_text(kEncoder, numbers({-1, lowest, 0}), {ints({3}, {lowest, -1, 1})})[0]),
              ElementsAre(0, 1, 0, 1, 0, 0, 0, 0, 0));
}

// As in ONNX Runtime.
TEST(OneHotEncoder, MarksTheLastOfEqualCategories) {
  EXPECT_THAT(values(run_text(kEncoder, numbers({5, 6, 5}), {ints({1}, {5})})[0]),
              ElementsAre(0, 0, 1));
}

TEST(OneHotEncoder, MarksStrings) {
  Attributes attributes;
  attributes.set("cats_strings", std::vector<std::string>{"a", "b"});
  EXPECT_THAT(values(run_text(kEncoder, attributes, {words({"b", "a"})})[0]),
              ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(text_error(kEncoder, attributes, {typed(DataType::Int64, Shape{1})}),
              HasSubstr("expected strings, as the categories are, found int64"));
}

TEST(OneHotEncoder, CutsFloatsToIntegers) {
  EXPECT_THAT(values(run_text(kEncoder, numbers({0, 1}), {floats({1.5F, -0.5F, kNan, 1e30F})})[0]),
              ElementsAre(0, 1, 1, 0, 0, 0, 0, 0));
}

TEST(OneHotEncoder, FailsForOtherCategoriesIfAsked) {
  Attributes attributes = numbers({0});
  attributes.set("zeros", int64_t{0});
  EXPECT_THAT(
      error_of(ErrorKind::InvalidArgument, [&] { run_text(kEncoder, attributes, {ints({0, 3})}); }),
      HasSubstr("found none for element 1"));
}

TEST(OneHotEncoder, RefusesNoCategories) {
  EXPECT_THAT(text_error(kEncoder, {}, {typed(DataType::Int64, Shape{1})}),
              HasSubstr("found none"));
}

}  // namespace
}  // namespace tessera::ops
