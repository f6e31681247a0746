#include <gmock/gmock.h>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// Expected values from ONNX Runtime.
TEST(AveragePool, PaddingCountsOnlyOnRequest) {
  Attributes attributes;
  attributes.set("kernel_shape", std::vector<int64_t>{2});
  attributes.set("pads", std::vector<int64_t>{1, 0});
  const Tensor input = floats({1, 1, 3}, {2, 4, 6});
  EXPECT_THAT(values(run_op("AveragePool", 6, attributes, {input})[0]),
              testing::ElementsAre(2, 3, 5));
  attributes.set("count_include_pad", int64_t{1});
  EXPECT_THAT(values(run_op("AveragePool", 7, attributes, {input})[0]),
              testing::ElementsAre(1, 3, 5));
}

TEST(AveragePool, ARoundedUpWindowCountsNoElementsBeyondThePadding) {
  Attributes attributes;
  attributes.set("kernel_shape", std::vector<int64_t>{2});
  attributes.set("strides", std::vector<int64_t>{2});
  attributes.set("ceil_mode", int64_t{1});
  attributes.set("count_include_pad", int64_t{1});
  EXPECT_THAT(values(run_op("AveragePool", 19, attributes, {floats({1, 1, 3}, {2, 4, 6})})[0]),
              testing::ElementsAre(3, 6));
}

TEST(AveragePool, TapsAreSpreadByDilation) {
  Attributes attributes;
  attributes.set("kernel_shape", std::vector<int64_t>{2});
  attributes.set("dilations", std::vector<int64_t>{2});
  EXPECT_THAT(values(run_op("AveragePool", 19, attributes, {floats({1, 1, 4}, {1, 2, 5, 8})})[0]),
              testing::ElementsAre(3, 5));
}

}  // namespace
}  // namespace tessera::ops
