#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(LayerNormalization, GivesMeanAndInverseDeviationToo) {
  const auto outputs =
      run_op("LayerNormalization", 17, attributes_of({{"epsilon", 0.0F}}),
             {floats({2, 2}, {1, 3, 10, 30}), floats({2}, {1, 2}), floats({1}, {1})}, 3);
  EXPECT_THAT(values(outputs[0]), ElementsAre(0, 3, 0, 3));
  EXPECT_EQ(outputs[1].dims(), (std::vector<int64_t>{2, 1}));
  EXPECT_THAT(values(outputs[1]), ElementsAre(2, 20));
  EXPECT_THAT(values(outputs[2]), ElementsAre(1, 0.1F));
}

// Rows without elements cause no allocation and no iteration.
TEST(LayerNormalization, RowsWithoutElementsCostNothing) {
  const auto outputs =
      run_op("LayerNormalization", 17, {}, {floats({int64_t{1} << 50, 0}, {}), floats({1}, {1})});
  EXPECT_EQ(outputs[0].elements(), 0);
}

}  // namespace
}  // namespace tessera::ops
