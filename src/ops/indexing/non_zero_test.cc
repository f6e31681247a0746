#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Tensor non_zero(const Tensor& input) { return run_op("NonZero", 13, {}, {input})[0]; }

TEST(NonZero, GivesARowOfIndicesForEachAxis) {
  const Tensor found = non_zero(floats({2, 3}, {1, 0, 2, 0, 0, 3}));
  EXPECT_THAT(found.dims(), ElementsAre(2, 3));
  EXPECT_THAT(integers(found), ElementsAre(0, 0, 1, 0, 2, 2));
}

TEST(NonZero, TakesWhatIsNotEqualToZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(integers(non_zero(floats({4}, {-0.0F, nan, 1e-45F, 0}))), ElementsAre(1, 2));
  EXPECT_THAT(integers(non_zero(ints({3}, {0, -1, 7}))), ElementsAre(1, 2));
  EXPECT_THAT(integers(non_zero(bools({4}, {1, 0, 0, 1}))), ElementsAre(0, 3));
  EXPECT_THAT(integers(run_op("NonZero", 9, {}, {floats({2}, {0, 1})})[0]), ElementsAre(1));
}

TEST(NonZero, MayFindNothing) {
  EXPECT_THAT(non_zero(floats({2, 2}, {0, 0, 0, 0})).dims(), ElementsAre(2, 0));
  EXPECT_THAT(non_zero(floats({0, 2}, {})).dims(), ElementsAre(2, 0));
}

TEST(NonZero, OfAScalarHasNoAxes) {
  EXPECT_THAT(non_zero(floats({}, {5})).dims(), ElementsAre(0, 1));
  EXPECT_THAT(non_zero(floats({}, {0})).dims(), ElementsAre(0, 0));
}

TEST(NonZero, OnlyRunningTellsHowMany) {
  const auto found = infer_op("NonZero", 13, {}, {typed(DataType::Float32, Shape{4, 5})});
  const Shape& shape = *found[0].type.shape;
  ASSERT_EQ(shape.size(), 2);
  EXPECT_EQ(shape[0], Dim(2));
  EXPECT_FALSE(shape[1].is_known());
  EXPECT_EQ(
      infer_op("NonZero", 13, {}, {typed(DataType::Float32, std::nullopt)})[0].type.shape->size(),
      2);
}

}  // namespace
}  // namespace tessera::ops
