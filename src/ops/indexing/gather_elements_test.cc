#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(GatherElements, EachElementPicksItsOwn) {
  const Tensor data = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto outputs = run_op("GatherElements", 13, {}, {data, ints({2, 3}, {1, 2, 0, 2, 0, -3})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(4, 8, 3, 7, 2, 3));
  const auto along_rows = run_op("GatherElements", 11, attributes_of({{"axis", 1}}),
                                 {floats({2, 2}, {1, 2, 3, 4}), ints({2, 2}, {0, 0, 1, 0})});
  EXPECT_THAT(values(along_rows[0]), ElementsAre(1, 1, 4, 3));
}

TEST(GatherElements, RefusesWhatReachesOutside) {
  const Tensor data = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal("GatherElements", 13, {}, {data, ints({1, 3}, {0, 0, 0})}),
              HasSubstr("at most the data's dimensions 2x2"));
  EXPECT_THAT(refusal("GatherElements", 13, {}, {data, ints({1}, {0})}), HasSubstr("rank"));
  EXPECT_THAT(refusal("GatherElements", 13, {}, {data, ints({1, 1}, {2})}),
              HasSubstr("[-2, 2), found 2"));
}

}  // namespace
}  // namespace tessera::ops
