#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const std::vector<float> kMinusOnes(12, -1.0F);

TEST(PRelu, OneSlopeForEachChannelInVersion6) {
  const Tensor input = floats({2, 3, 2}, kMinusOnes);
  EXPECT_THAT(values(run_op("PRelu", 6, {}, {input, floats({3}, {1, 2, 3})})[0]),
              ElementsAre(-1, -1, -2, -2, -3, -3, -1, -1, -2, -2, -3, -3));
  EXPECT_THAT(values(run_op("PRelu", 6, {}, {input, floats({1}, {5})})[0]), testing::Each(-5));
  EXPECT_EQ(error_of([&] { run_op("PRelu", 6, {}, {input, floats({2}, {1, 2})}); }),
            "InvalidModel: node 'node' (PRelu), input 'slope': expected a shape that broadcasts to "
            "2x3x2, found 2");
}

TEST(PRelu, TheSlopeIsStretchedSinceVersion7) {
  const Tensor input = floats({2, 3, 2}, kMinusOnes);
  EXPECT_THAT(values(run_op("PRelu", 7, {}, {input, floats({2}, {1, 2})})[0]),
              ElementsAre(-1, -2, -1, -2, -1, -2, -1, -2, -1, -2, -1, -2));
  EXPECT_THAT(values(run_op("PRelu", 16, {}, {input, floats({3, 1}, {1, 2, 3})})[0]),
              ElementsAre(-1, -1, -2, -2, -3, -3, -1, -1, -2, -2, -3, -3));
}

TEST(PRelu, TheInputIsNeverStretched) {
  EXPECT_THAT(error_of([] { run_op("PRelu", 9, {}, {floats({1}, {1}), floats({2}, {1, 2})}); }),
              HasSubstr("expected a shape that broadcasts to 1, found 2"));
}

TEST(PRelu, NanStaysAndIntegersWrapAround) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(values(run_op("PRelu", 9, {}, {floats({2}, {nan, 3}), floats({}, {2})})[0]),
              ElementsAre(testing::IsNan(), 3));
  // Zero is multiplied by the slope too.
  EXPECT_THAT(values(run_op("PRelu", 9, {}, {floats({2}, {0, 3}), floats({}, {nan})})[0]),
              ElementsAre(testing::IsNan(), 3));
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(integers(run_op("PRelu", 9, {}, {ints({2}, {smallest, -2}), ints({}, {3})})[0]),
              ElementsAre(smallest, -6));
}

}  // namespace
}  // namespace tessera::ops
