// Softmax, LRN, and the normalizations, in every layout.
#include "candidate_check.h"
#include "random_nodes.h"

namespace tessera {
namespace {

const std::vector<int64_t> kNormalizedChannels = {1, 3, 8, 13, 16, 17, 24, 32, 35};

std::vector<int64_t> picture(Dice& dice) {
  std::vector<int64_t> dims = {dice.whole(1, 3), dice.pick(kNormalizedChannels)};
  const int64_t axes = dice.whole(0, 3);
  for (int64_t axis = 0; axis < axes; ++axis) dims.push_back(dice.whole(1, 9));
  return dims;
}

RandomGraph softmax(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, dice.one_in(3) ? 11 : 13);
  const std::vector<int64_t> dims = picture(dice);
  made.input("x", dice.tensor(dims, -6, 6));
  Attributes attributes;
  const auto rank = static_cast<int64_t>(dims.size());
  if (!dice.one_in(4)) attributes.set("axis", dice.whole(-rank, rank - 1));
  made.node("y", dice.one_in(2) ? "Softmax" : "LogSoftmax", {"x"}, attributes);
  return made.ending_in("y");
}

RandomGraph batch_normalization(Dice& dice, const ops::Registry& registry) {
  return random_batch_normalization(dice, registry, picture(dice));
}

RandomGraph layer_normalization(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const std::vector<int64_t> dims = picture(dice);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = dice.whole(0, rank - 1);
  const std::vector<int64_t> rows(dims.begin() + axis, dims.end());
  made.input("x", dice.tensor(dims, -3, 5));
  made.operand(dice, "scale", dice.tensor(rows, 0.5F, 2));
  const bool has_shift = !dice.one_in(3);
  if (has_shift) made.operand(dice, "shift", dice.tensor(rows));
  made.node("y", "LayerNormalization",
            has_shift ? std::vector<std::string>{"x", "scale", "shift"}
                      : std::vector<std::string>{"x", "scale"},
            attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}}));
  return made.ending_in("y");
}

RandomGraph instance_normalization(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  std::vector<int64_t> dims = picture(dice);
  dims.push_back(dice.whole(2, 40));
  made.input("x", dice.tensor(dims, -3, 5));
  made.constant("scale", dice.tensor({dims[1]}, 0.5F, 2));
  made.constant("shift", dice.tensor({dims[1]}));
  made.node("y", "InstanceNormalization", {"x", "scale", "shift"});
  return made.ending_in("y");
}

RandomGraph lrn(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  std::vector<int64_t> dims = picture(dice);
  dims.resize(4, 5);
  made.input("x", dice.tensor(dims, -3, 3));
  Attributes attributes;
  const std::vector<int64_t> sizes = {1, 3, 5, 7, 4};
  attributes.set("size", dice.pick(sizes));
  attributes.set("alpha", dice.number(1e-4F, 0.5F));
  if (dice.one_in(2)) attributes.set("beta", dice.number(0.25F, 1));
  if (dice.one_in(2)) attributes.set("bias", dice.number(0.5F, 2));
  made.node("y", "LRN", {"x"}, attributes);
  return made.ending_in("y");
}

TEST(OnednnNormalization, Softmax) {
  EXPECT_EQ(check_cases("onednn", 21, 150, softmax).answered, 150);
}
TEST(OnednnNormalization, BatchNormalization) {
  expect_answers(check_cases("onednn", 22, 100, batch_normalization), 100, 2);
}
// In a row of one or two elements, which are near their mean, few digits are significant.
TEST(OnednnNormalization, LayerNormalization) {
  const Tolerance tolerance = {.relative = 1e-4, .of_largest = 1e-4};
  const Totals totals = check_cases("onednn", 23, 100, layer_normalization, tolerance);
  EXPECT_GE(totals.answered, 98);
  int64_t refused = 0;  // long rows
  for (const auto& [reason, count] : totals.refusals) {
    EXPECT_TRUE(reason.find("is not exact enough") != std::string::npos) << reason;
    refused += count;
  }
  EXPECT_EQ(totals.answered + refused, 100);
}
// If the mean is large, the library's has no correct digits.
TEST(OnednnNormalization, InstanceNormalizationIsRefused) {
  const Totals totals = check_cases("onednn", 24, 60, instance_normalization);
  EXPECT_EQ(totals.answered, 0);
  EXPECT_TRUE(totals.refusals.begin()->first.find("is not exact enough") != std::string::npos);
}
TEST(OnednnNormalization, Lrn) {
  const Totals totals = check_cases("onednn", 25, 100, lrn);
  EXPECT_GE(totals.answered, 70);
  EXPECT_EQ(totals.refusals.size(), 1U);  // even sizes
}

}  // namespace
}  // namespace tessera
