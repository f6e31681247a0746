#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(EyeLike, HasOnesOnADiagonal) {
  const Tensor input = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto eye = [&](int64_t k) {
    return values(run_op("EyeLike", 9, attributes_of({{"k", k}}), {input})[0]);
  };
  EXPECT_THAT(eye(0), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(eye(1), ElementsAre(0, 1, 0, 0, 0, 1));
  EXPECT_THAT(eye(2), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THAT(eye(-1), ElementsAre(0, 0, 0, 1, 0, 0));
  for (const int64_t outside : {int64_t{3}, int64_t{-2}, kSmallest, kLargest}) {
    EXPECT_THAT(eye(outside), testing::Each(0.0F)) << outside;
  }
}

TEST(EyeLike, HasTheTypeOfTheAttributeOrTheInput) {
  const Tensor input = floats({2, 2}, {1, 2, 3, 4});
  const auto typed_eye = [&](int64_t type) {
    return run_op("EyeLike", 22, attributes_of({{"dtype", type}}), {input})[0];
  };
  EXPECT_THAT(bytes(typed_eye(9)), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(integers(typed_eye(7)), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(typed_eye(16).type(), DataType::BFloat16);
  const Tensor like = run_op("EyeLike", 9, {}, {bools({2, 2}, {0, 0, 0, 0})})[0];
  EXPECT_EQ(like.type(), DataType::Bool);
  EXPECT_THAT(bytes(like), ElementsAre(1, 0, 0, 1));
}

TEST(EyeLike, RefusesOtherRanksAndTypes) {
  EXPECT_THAT(refusal("EyeLike", 9, {}, {floats({2}, {1, 2})}), HasSubstr("found shape 2"));
  EXPECT_THAT(refusal("EyeLike", 9, attributes_of({{"dtype", 8}}), {floats({1, 1}, {1})}),
              HasSubstr("found 8 (string)"));
  const Shape shape = {Dim::symbol("rows"), 3};
  EXPECT_EQ(infer_op("EyeLike", 9, {}, {typed(DataType::Int32, shape)})[0].type,
            Type::tensor(DataType::Int32, shape));
}

}  // namespace
}  // namespace tessera::ops
