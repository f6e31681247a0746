#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(ScatterElements, EachUpdateFindsItsOwn) {
  const Tensor data = floats({1, 5}, {1, 2, 3, 4, 5});
  const auto outputs = run_op("ScatterElements", 11, attributes_of({{"axis", 1}}),
                              {data, ints({1, 2}, {1, -2}), floats({1, 2}, {1.5F, 2.5F})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 1.5F, 3, 2.5F, 5));
}

TEST(ScatterElements, AddsTwiceToOneElement) {
  const auto outputs = run_op(
      "ScatterElements", 16, attributes_of({{"reduction", "add"}}),
      {floats({2, 2}, {1, 2, 3, 4}), ints({2, 2}, {0, 1, 0, 1}), floats({2, 2}, {1, 1, 1, 1})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(3, 2, 3, 6));
}

TEST(ScatterElements, RefusesWhatReachesOutside) {
  const Tensor data = floats({2, 2}, {1, 2, 3, 4});
  const Tensor one = floats({1, 1}, {1});
  EXPECT_THAT(refusal("ScatterElements", 13, {}, {data, ints({1, 1}, {-3}), one}),
              HasSubstr("found -3"));
  EXPECT_THAT(refusal("ScatterElements", 13, {},
                      {data, ints({1, 3}, {0, 0, 0}), floats({1, 3}, {1, 1, 1})}),
              HasSubstr("at most"));
  EXPECT_THAT(refusal("ScatterElements", 13, {}, {data, ints({1, 2}, {0, 0}), one}),
              HasSubstr("the shape of the indices, 1x2, found 1x1"));
}

TEST(Scatter, IsTheOlderName) {
  const Tensor data = floats({3, 2}, {0, 0, 0, 0, 0, 0});
  const auto outputs =
      run_op("Scatter", 10, {}, {data, ints({2, 2}, {1, 0, 2, -2}), floats({2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 2, 1, 4, 3, 0));
  EXPECT_FALSE(version_in(*all_ops().find("", "Scatter"), 11));
}

}  // namespace
}  // namespace tessera::ops
