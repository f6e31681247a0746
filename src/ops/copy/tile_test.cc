#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Tile, RepeatsEachAxis) {
  const auto outputs = run_op("Tile", 13, {}, {floats({2, 2}, {1, 2, 3, 4}), ints({2, 2})});
  EXPECT_THAT(outputs[0].dims(), ElementsAre(4, 4));
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(run_op("Tile", 6, {}, {floats({2}, {1, 2}), ints({0})})[0].dims(), ElementsAre(0));
}

TEST(Tile, RefusesBadRepeats) {
  const Tensor input = floats({2}, {1, 2});
  EXPECT_THAT(refusal("Tile", 13, {}, {input, ints({-1})}), HasSubstr("found -1"));
  EXPECT_THAT(refusal("Tile", 13, {}, {input, ints({kLargest})}), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("Tile", 13, {}, {input, ints({1, 1})}),
              HasSubstr("for each of 1 dimensions, found 2"));
}

TEST(Tile, FollowsElementsAndSymbols) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(*infer_op("Tile", 13, {}, {followed({n, 1}), followed({2})})[0].elements,
            (std::vector<Dim>{n, 1, n, 1}));
  EXPECT_EQ(
      *infer_op("Tile", 13, {}, {typed(DataType::Float32, Shape{n}), followed({3})})[0].type.shape,
      Shape{multiply(n, 3)});
}

}  // namespace
}  // namespace tessera::ops
