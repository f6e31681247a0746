#include <gmock/gmock.h>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(InstanceNormalization, EachChannelOfEachPictureStandsAlone) {
  Attributes attributes;
  attributes.set("epsilon", 0.0F);
  const auto outputs =
      run_op("InstanceNormalization", 6, attributes,
             {floats({1, 2, 2}, {1, 3, 10, 30}), floats({2}, {1, 2}), floats({2}, {0, 1})});
  EXPECT_THAT(values(outputs[0]), testing::ElementsAre(-1, 1, -1, 3));
}

}  // namespace
}  // namespace tessera::ops
