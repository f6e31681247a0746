#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Gather, PicksSlicesAlongAnAxis) {
  const Tensor data = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto columns =
      run_op("Gather", 13, attributes_of({{"axis", 1}}), {data, ints({1, 2}, {-1, 0})});
  EXPECT_THAT(columns[0].dims(), ElementsAre(2, 1, 2));
  EXPECT_THAT(values(columns[0]), ElementsAre(3, 1, 6, 4));
  const auto row = run_op("Gather", 13, {}, {data, ints({}, {1})});
  EXPECT_THAT(row[0].dims(), ElementsAre(3));
  EXPECT_THAT(values(row[0]), ElementsAre(4, 5, 6));
}

TEST(Gather, RefusesIndicesOutOfRange) {
  const Tensor data = floats({2}, {1, 2});
  EXPECT_EQ(refusal("Gather", 13, {}, {data, ints({2})}), "expected an index in [-2, 2), found 2");
  EXPECT_THAT(refusal("Gather", 13, {}, {data, ints({-3})}), HasSubstr("found -3"));
  EXPECT_THAT(refusal("Gather", 13, {}, {floats({0}, {}), ints({0})}), HasSubstr("found 0"));
  EXPECT_THAT(refusal("Gather", 13, {}, {floats({}, {1}), ints({0})}), HasSubstr("axis"));
}

TEST(Gather, FollowsElements) {
  InferInput index = infer_input(ints({}, {-2}));
  const auto outputs = infer_op("Gather", 13, {}, {followed({Dim::symbol("n"), 3}), index});
  EXPECT_EQ(shape_text(outputs), "int64 scalar");
  EXPECT_EQ(*outputs[0].elements, std::vector<Dim>{Dim::symbol("n")});
}

}  // namespace
}  // namespace tessera::ops
