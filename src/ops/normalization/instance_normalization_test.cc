#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(InstanceNormalization, EachChannelOfEachPictureStandsAlone) {
  const auto outputs =
      run_op("InstanceNormalization", 6, attributes_of({{"epsilon", 0.0F}}),
             {floats({1, 2, 2}, {1, 3, 10, 30}), floats({2}, {1, 2}), floats({2}, {0, 1})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(-1, 1, -1, 3));
}

}  // namespace
}  // namespace tessera::ops
