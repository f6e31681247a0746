#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Transpose, PermutesOrReverses) {
  const Tensor input = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto reversed = run_op("Transpose", 13, {}, {input});
  EXPECT_THAT(reversed[0].dims(), ElementsAre(3, 2, 1));
  EXPECT_THAT(values(reversed[0]), ElementsAre(1, 4, 2, 5, 3, 6));
  const auto permuted = run_op("Transpose", 13, attributes_of({{"perm", {1, 0, 2}}}), {input});
  EXPECT_THAT(permuted[0].dims(), ElementsAre(2, 1, 3));
  EXPECT_THAT(values(permuted[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const Tensor input = floats({1, 2}, {1, 2});
  for (const auto& perm : {list({0}), list({0, 0}), list({0, 2}), list({-1, 0}), list({0, 1, 2})}) {
    EXPECT_NE(refusal("Transpose", 13, attributes_of({{"perm", perm}}), {input}), "");
  }
}

TEST(Transpose, MovesSymbolsAndElements) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(shape_text(infer_op("Transpose", 13, {}, {typed(DataType::Float32, Shape{n, 3})})),
            "float32 3xn");
  InferInput matrix = typed(DataType::Int64, Shape{2, 2});
  matrix.elements = std::vector<Dim>{n, 1, 2, 3};
  EXPECT_EQ(*infer_op("Transpose", 13, {}, {matrix})[0].elements, (std::vector<Dim>{n, 2, 1, 3}));
}

}  // namespace
}  // namespace tessera::ops
