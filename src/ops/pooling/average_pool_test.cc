#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// Expected values from ONNX Runtime.
TEST(AveragePool, PaddingCountsOnlyOnRequest) {
  Attributes attributes = attributes_of({{"kernel_shape", {2}}, {"pads", {1, 0}}});
  const Tensor input = floats({1, 1, 3}, {2, 4, 6});
  EXPECT_THAT(values(run_op("AveragePool", 6, attributes, {input})[0]), ElementsAre(2, 3, 5));
  attributes.set("count_include_pad", int64_t{1});
  EXPECT_THAT(values(run_op("AveragePool", 7, attributes, {input})[0]), ElementsAre(1, 3, 5));
}

TEST(AveragePool, ARoundedUpWindowCountsNoElementsBeyondThePadding) {
  EXPECT_THAT(values(run_op("AveragePool", 19,
                            attributes_of({{"kernel_shape", {2}},
                                           {"strides", {2}},
                                           {"ceil_mode", 1},
                                           {"count_include_pad", 1}}),
                            {floats({1, 1, 3}, {2, 4, 6})})[0]),
              ElementsAre(3, 6));
}

TEST(AveragePool, TapsAreSpreadByDilation) {
  EXPECT_THAT(
      values(run_op("AveragePool", 19, attributes_of({{"kernel_shape", {2}}, {"dilations", {2}}}),
                    {floats({1, 1, 4}, {1, 2, 5, 8})})[0]),
      ElementsAre(3, 5));
}

}  // namespace
}  // namespace tessera::ops
