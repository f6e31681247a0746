#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(GlobalPool, GivesOneNumberForEachChannel) {
  const Tensor input = floats({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6});
  const Tensor average = run_op("GlobalAveragePool", 6, {}, {input})[0];
  EXPECT_EQ(average.dims(), (std::vector<int64_t>{1, 2, 1, 1}));
  EXPECT_THAT(values(average), ElementsAre(3, -3));
  EXPECT_THAT(values(run_op("GlobalMaxPool", 6, {}, {input})[0]), ElementsAre(6, -1));
}

}  // namespace
}  // namespace tessera::ops
