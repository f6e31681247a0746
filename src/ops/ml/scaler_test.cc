#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Attributes scaling(std::vector<float> offset, std::vector<float> scale) {
  Attributes attributes;
  if (!offset.empty()) attributes.set("offset", std::move(offset));
  if (!scale.empty()) attributes.set("scale", std::move(scale));
  return attributes;
}

TEST(Scaler, ShiftsThenMultiplies) {
  EXPECT_THAT(
      values(run_ml("Scaler", 1, scaling({1, 2}, {10, 100}), {floats({2, 2}, {1, 1, 2, 2})})[0]),
      ElementsAre(0, -100, 10, 0));
  EXPECT_THAT(values(run_ml("Scaler", 1, scaling({1}, {2}), {ints({1, 2}, {3, 4})})[0]),
              ElementsAre(4, 6));
}

TEST(Scaler, LeavesOutWhatTheNodeLeavesOut) {
  EXPECT_THAT(values(run_ml("Scaler", 1, scaling({}, {2}), {floats({3})})[0]), ElementsAre(6));
  EXPECT_THAT(values(run_ml("Scaler", 1, scaling({1}, {}), {floats({3})})[0]), ElementsAre(2));
}

TEST(Scaler, RefusesOtherLengths) {
  EXPECT_THAT(
      ml_error("Scaler", 1, scaling({1, 2}, {1}), rows_of(3)),
      HasSubstr("attribute 'offset': expected 1 number or 3, one for each feature, found 2"));
}

}  // namespace
}  // namespace tessera::ops
