#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Upsample, ScalesAsAttributeOrInput) {
  const Tensor input = floats({1, 2}, {1, 2});
  const auto given = attributes_of({{"scales", std::vector<float>{2, 2}}});
  EXPECT_THAT(values(run_op("Upsample", 7, given, {input})[0]),
              ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  const auto linear =
      run_op("Upsample", 9, attributes_of({{"mode", "linear"}}), {input, floats({2}, {1, 2})});
  EXPECT_THAT(values(linear[0]), ElementsAre(1, 1.5F, 2, 2));
}

TEST(Upsample, Version1ScalesPictures) {
  const auto given = attributes_of({{"height_scale", 1.0F}, {"width_scale", 2.0F}});
  EXPECT_THAT(values(run_op("Upsample", 6, given, {floats({1, 1, 1, 2}, {1, 2})})[0]),
              ElementsAre(1, 1, 2, 2));
}

TEST(Upsample, IsGoneFromVersion10On) {
  EXPECT_FALSE(version_in(*all_ops().find("", "Upsample"), 10).has_value());
}

TEST(Upsample, RefusesScalesThatShrink) {
  const Tensor input = floats({2}, {1, 2});
  EXPECT_THAT(refusal("Upsample", 9, {}, {input, floats({1}, {0.5F})}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("Upsample", 9, {}, {input, floats({2}, {1, 1})}), HasSubstr("found 2"));
}

}  // namespace
}  // namespace tessera::ops
