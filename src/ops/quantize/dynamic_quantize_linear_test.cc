#include "ops/op_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

TEST(DynamicQuantizeLinear, HasTheRangeOfTheNumbers) {
  // The example of the standard.
  const std::vector<Tensor> made =
      run_op("DynamicQuantizeLinear", 11, {}, {floats({0, 2, -3, -2.5F, 1.34F, 0.5F})}, 3);
  EXPECT_THAT(bytes(made[0]), ElementsAre(153, 255, 0, 26, 221, 179));
  EXPECT_FLOAT_EQ(made[1].as<float>()[0], 0.0196078438F);
  EXPECT_THAT(bytes(made[2]), ElementsAre(153));
}

TEST(DynamicQuantizeLinear, KeepsZeroExact) {
  const std::vector<Tensor> positive =
      run_op("DynamicQuantizeLinear", 11, {}, {floats({1, 2.55F})}, 3);
  EXPECT_THAT(bytes(positive[0]), ElementsAre(100, 255));
  EXPECT_THAT(bytes(positive[2]), ElementsAre(0));
  const std::vector<Tensor> zeros = run_op("DynamicQuantizeLinear", 11, {}, {floats({0, 0})}, 3);
  EXPECT_THAT(bytes(zeros[0]), ElementsAre(0, 0));
}

}  // namespace
}  // namespace tessera::ops
