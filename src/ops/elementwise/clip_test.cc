#include <limits>

#include "base/tensor/float16.h"
#include "ops/op_test.h"

namespace tessera::ops {
namespace {

constexpr float kLargestFloat = std::numeric_limits<float>::max();

TEST(Clip, BoundsAreAttributesBeforeVersion11) {
  EXPECT_THAT(values(run_op("Clip", 6, attributes_of({{"min", 0.0F}, {"max", 6.0F}}),
                            {floats({3}, {-1, 3, 7})})[0]),
              ElementsAre(0, 3, 6));
}

TEST(Clip, BoundsAreInputsSinceVersion11) {
  const Tensor input = floats({4}, {-1, 3, 7, kNan});
  EXPECT_THAT(values(run_op("Clip", 11, {}, {input, floats({}, {0}), floats({1}, {6})})[0]),
              ElementsAre(0, 3, 6, testing::IsNan()));
  EXPECT_THAT(values(run_op("Clip", 11, {}, {input, {}, floats({}, {2})})[0]),
              ElementsAre(-1, 2, 2, testing::IsNan()));
}

TEST(Clip, OfABoundThatIsNanComesNan) {
  const Tensor input = floats({2}, {-1, kInfinity});
  EXPECT_THAT(values(run_op("Clip", 13, {}, {input, floats({}, {kNan}), floats({}, {6})})[0]),
              testing::Each(testing::IsNan()));
  EXPECT_THAT(values(run_op("Clip", 13, {}, {input, floats({}, {0}), floats({}, {kNan})})[0]),
              testing::Each(testing::IsNan()));
}

TEST(Clip, WithoutBoundsInfinitiesStaySinceVersion11) {
  const Tensor input = floats({2}, {-kInfinity, kInfinity});
  EXPECT_THAT(values(run_op("Clip", 6, {}, {input})[0]),
              ElementsAre(-kLargestFloat, kLargestFloat));
  EXPECT_THAT(values(run_op("Clip", 13, {}, {input})[0]), ElementsAre(-kInfinity, kInfinity));
  EXPECT_THAT(values(run_op("Clip", 13, {}, {input, floats({}, {0})})[0]),
              ElementsAre(0, kInfinity));
  const std::vector<Float16> half = {Float16(kInfinity)};
  const Tensor output =
      run_op("Clip", 13, {}, {Tensor::from<Float16>(DataType::Float16, {1}, half)})[0];
  EXPECT_EQ(static_cast<float>(output.as<Float16>()[0]), kInfinity);
}

TEST(Clip, CrossedBoundsGiveTheUpperOne) {
  EXPECT_THAT(
      integers(run_op("Clip", 12, {}, {ints({3}, {1, 2, 300}), ints({}, {5}), ints({}, {1})})[0]),
      ElementsAre(1, 1, 1));
}

TEST(Clip, BoundsAreScalars) {
  EXPECT_EQ(error_of([] { run_op("Clip", 11, {}, {floats({1}, {1}), floats({2}, {1, 2})}); }),
            "InvalidModel: node 'node' (Clip), input 'min': expected a scalar, found shape 2");
}

TEST(Clip, CarriesElements) {
  const Dim n = Dim::symbol("N");
  const InferInput input = with_elements({3}, {n, -4, 40});
  const InferInput zero = with_elements({}, {0});
  const InferInput ten = with_elements({}, {10});
  EXPECT_THAT(*infer_op("Clip", 13, {}, {input, zero})[0].elements,
              ElementsAre(n, Dim(0), Dim(40)));
  EXPECT_THAT(*infer_op("Clip", 13, {}, {input, zero, ten})[0].elements,
              ElementsAre(expression("min", {10, n}), Dim(0), Dim(10)));
}

}  // namespace
}  // namespace tessera::ops
