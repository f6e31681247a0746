#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(GatherNd, PicksByTuples) {
  const Tensor data = floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto slices = run_op("GatherND", 12, {}, {data, ints({2, 1, 2}, {0, 1, 1, 0})});
  EXPECT_THAT(slices[0].dims(), ElementsAre(2, 1, 2));
  EXPECT_THAT(values(slices[0]), ElementsAre(2, 3, 4, 5));
  const auto batched =
      run_op("GatherND", 12, attributes_of({{"batch_dims", 1}}), {data, ints({2, 1}, {1, -2})});
  EXPECT_THAT(values(batched[0]), ElementsAre(2, 3, 4, 5));
}

TEST(GatherNd, RefusesBadTuples) {
  const Tensor data = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal("GatherND", 13, {}, {data, ints({1, 3}, {0, 0, 0})}), HasSubstr("1 to 2"));
  EXPECT_THAT(refusal("GatherND", 13, {}, {data, ints({1, 0}, {})}), HasSubstr("1 to 2"));
  EXPECT_THAT(refusal("GatherND", 13, {}, {data, ints({1, 2}, {0, 2})}), HasSubstr("found 2"));
  EXPECT_THAT(refusal("GatherND", 13, attributes_of({{"batch_dims", 2}}),
                      {data, ints({2, 2}, {0, 0, 0, 0})}),
              HasSubstr("batch_dims in [0, 2)"));
  EXPECT_THAT(refusal("GatherND", 13, {}, {floats({}, {1}), ints({1}, {0})}),
              HasSubstr("batch_dims"));
}

}  // namespace
}  // namespace tessera::ops
