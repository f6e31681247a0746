#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

Tensor run_constant(const std::string& name, Attribute value, int opset = 13) {
  Attributes attributes;
  attributes.set(name, std::move(value));
  return run_op("Constant", opset, attributes, {})[0];
}

TEST(Constant, EveryKindOfValue) {
  EXPECT_THAT(values(run_constant("value", floats({2}, {1, 2}), 6)), ElementsAre(1, 2));
  EXPECT_THAT(values(run_constant("value_float", 1.5F)), ElementsAre(1.5F));
  EXPECT_THAT(integers(run_constant("value_int", int64_t{7})), ElementsAre(7));
  EXPECT_THAT(values(run_constant("value_floats", std::vector<float>{1, 2})), ElementsAre(1, 2));
  EXPECT_THAT(integers(run_constant("value_ints", std::vector<int64_t>{3, 4})), ElementsAre(3, 4));
  EXPECT_EQ(run_constant("value_ints", std::vector<int64_t>{}).dims(), std::vector<int64_t>{0});
}

TEST(Constant, ElementsAreKnown) {
  EXPECT_THAT(*infer_op("Constant", 13, attributes_of({{"value_ints", {3, -4}}}), {})[0].elements,
              ElementsAre(Dim(3), Dim(-4)));
}

TEST(Constant, HoldsStrings) {
  const auto run = [](const std::string& name, Attribute value) {
    Attributes attributes;
    attributes.set(name, std::move(value));
    return run_text({"Constant"}, std::move(attributes), {})[0];
  };
  const Tensor one = run("value_string", std::string("x"));
  EXPECT_TRUE(one.dims().empty());
  EXPECT_THAT(texts(one), ElementsAre("x"));
  EXPECT_THAT(texts(run("value_strings", std::vector<std::string>{"a", ""})), ElementsAre("a", ""));
  const Tensor square = run("value", strings({1, 2}, {"a", "b"}));
  EXPECT_EQ(square.dims(), (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(texts(square), ElementsAre("a", "b"));
}

TEST(Constant, RefusesWhatItCannotTell) {
  EXPECT_THAT(error_of([] { run_op("Constant", 13, {}, {}); }),
              HasSubstr("expected exactly one of the attributes"));
  EXPECT_THAT(error_of([] { run_op("Constant", 6, {}, {}); }),
              HasSubstr("Constant version 1 requires it"));
}

}  // namespace
}  // namespace tessera::ops
