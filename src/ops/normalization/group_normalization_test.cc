#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(GroupNormalization, ScalesByGroupInVersion18AndByChannelSince21) {
  const Attributes attributes = attributes_of({{"epsilon", 0.0F}, {"num_groups", 1}});
  const Tensor input = floats({1, 2, 1}, {1, 3});
  EXPECT_THAT(values(run_op("GroupNormalization", 18, attributes,
                            {input, floats({1}, {2}), floats({1}, {1})})[0]),
              ElementsAre(-1, 3));
  EXPECT_THAT(values(run_op("GroupNormalization", 21, attributes,
                            {input, floats({2}, {2, 3}), floats({2}, {1, 0})})[0]),
              ElementsAre(-1, 3));
  EXPECT_THAT(values(run_op("GroupNormalization", 21, attributes,
                            {input, floats({2}, {2, 5}), floats({2}, {1, 0})})[0]),
              ElementsAre(-1, 5));
}

}  // namespace
}  // namespace tessera::ops
