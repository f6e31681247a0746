#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

constexpr float kNearGroupNorm = 1e-4F;

Attributes group_attributes(int64_t groups, int64_t channels_last, int64_t activation = 0) {
  return attributes_of(
      {{"groups", groups}, {"channels_last", channels_last}, {"activation", activation}});
}

// Two channels, of which one is 0, 2 and the other 10, 30.
const Tensor kLast = floats({1, 1, 2, 2}, {0, 10, 2, 30});
const Tensor kSecond = floats({1, 2, 1, 2}, {0, 2, 10, 30});
const Tensor kScale = floats({1, 2});
const Tensor kShift = floats({0, 1});

TEST(GroupNorm, NormalisesGroupsInBothLayouts) {
  EXPECT_THAT(values(run_contrib("GroupNorm", group_attributes(2, 1), {kLast, kScale, kShift})[0]),
              Pointwise(FloatNear(kNearGroupNorm), std::vector<float>{-1, -1, 1, 3}));
  EXPECT_THAT(
      values(run_contrib("GroupNorm", group_attributes(2, 0), {kSecond, kScale, kShift})[0]),
      Pointwise(FloatNear(kNearGroupNorm), std::vector<float>{-1, 1, -1, 3}));
}

TEST(GroupNorm, ActivatesWithSilu) {
  const float silu = 1 / (1 + std::exp(-1.0F));
  EXPECT_THAT(
      values(run_contrib("GroupNorm", group_attributes(2, 1, 1),
                         {kLast, floats({1, 1}), floats({0, 0})})[0]),
      Pointwise(FloatNear(kNearGroupNorm), std::vector<float>{silu - 1, silu - 1, silu, silu}));
}

TEST(SkipGroupNorm, AddsBefore) {
  const Tensor zeros = floats({1, 1, 2, 2}, {0, 0, 0, 0});
  const Tensor ones = floats({1, 1});
  const Tensor none = floats({0, 0});
  const auto whole = run_contrib("SkipGroupNorm", group_attributes(2, 1),
                                 {zeros, ones, none, kLast, floats({1, 5})}, {true, true});
  EXPECT_THAT(values(whole[0]),
              Pointwise(FloatNear(kNearGroupNorm), std::vector<float>{-1, -1, 1, 1}));
  EXPECT_THAT(values(whole[1]), ElementsAre(1, 15, 3, 35));
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, 2}, {1, 1, 1, 2}}) {
    const auto channels = run_contrib("SkipGroupNorm", group_attributes(1, 1),
                                      {zeros, ones, none, floats(dims, {3, 7})}, {true, true});
    EXPECT_THAT(values(channels[0]),
                Pointwise(FloatNear(kNearGroupNorm), std::vector<float>{-1, 1, -1, 1}));
    EXPECT_THAT(values(channels[1]), ElementsAre(3, 7, 3, 7));
  }
  const auto second = run_contrib("SkipGroupNorm", group_attributes(2, 0),
                                  {kSecond, ones, none, floats({1, 2}, {1, 2})}, {true, true});
  EXPECT_THAT(values(second[1]), ElementsAre(1, 3, 12, 32));
}

TEST(GroupNorm, RefusesWrongGroupsAndShapes) {
  const auto refusal_of = [](const Attributes& given, const Tensor& scale) {
    return contrib_refusal("GroupNorm", given, {kLast, scale, kShift});
  };
  EXPECT_THAT(refusal_of(group_attributes(3, 1), kScale), HasSubstr("in 3 equal groups"));
  EXPECT_THAT(refusal_of(group_attributes(0, 1), kScale), HasSubstr("'groups' of at least 1"));
  EXPECT_THAT(refusal_of(group_attributes(1, 1, 2), kScale), HasSubstr("found 2"));
  EXPECT_THAT(refusal_of(group_attributes(1, 1), floats({1})), HasSubstr("expected shape [2]"));
  EXPECT_THAT(contrib_refusal("SkipGroupNorm", group_attributes(1, 1),
                              {kLast, kScale, kShift, floats({1, 2, 3})}),
              HasSubstr("expected shape [1x1x2x2]"));
}

}  // namespace
}  // namespace tessera::ops
