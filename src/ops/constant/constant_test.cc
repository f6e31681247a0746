#include "ops/op_test.h"

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

TEST(Constant, RefusesWhatItCannotTell) {
  EXPECT_THAT(error_of([] { run_constant("value_string", std::string("x")); }),
              StartsWith("Unsupported: node 'node' (Constant)"));
  EXPECT_THAT(error_of([] { run_op("Constant", 13, {}, {}); }),
              HasSubstr("expected exactly one of the attributes"));
  EXPECT_THAT(error_of([] { run_op("Constant", 6, {}, {}); }),
              HasSubstr("Constant version 1 requires it"));
}

}  // namespace
}  // namespace tessera::ops
