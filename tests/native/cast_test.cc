// Conversions between element types, and ops that only copy.

#include <map>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

// ONNX's numbers of the types.
const std::map<DataType, int64_t> kNumberOf = {
    {DataType::Bool, 9},     {DataType::Int8, 3},      {DataType::Int16, 5},
    {DataType::Int32, 6},    {DataType::Int64, 7},     {DataType::UInt8, 2},
    {DataType::UInt16, 4},   {DataType::UInt32, 12},   {DataType::UInt64, 13},
    {DataType::Float16, 10}, {DataType::BFloat16, 16}, {DataType::Float32, 1},
    {DataType::Float64, 11}};

DataType castable_type(Dice& dice) {
  std::vector<DataType> types;
  for (const auto& [type, number] : kNumberOf) types.push_back(type);
  return dice.pick(types);
}

TEST(NativeCast, AllTypesToAllTypes) {
  const Totals totals = check_each_target(
      21, 4000,
      [](Dice& dice, const ops::Registry& registry) {
        const std::vector<ElementRange> ranges = {{-300, 300, true},
                                                  {-70000, 70000, true},
                                                  {-5e9F, 5e9F, true},
                                                  {-3e19F, 3e19F, true},
                                                  {-1e-4F, 1e-4F, true}};
        RandomGraph made(registry, 21);
        made.input(
            "x", random_elements(dice, castable_type(dice), random_dims(dice), dice.pick(ranges)));
        Attributes attributes;
        const DataType to = castable_type(dice);
        if (dice.one_in(4)) {
          made.operand(dice, "like", random_elements(dice, to, {2}));
          made.node("y", "CastLike", {"x", "like"});
        } else {
          attributes.set("to", kNumberOf.at(to));
          made.node("y", "Cast", {"x"}, attributes);
        }
        return made.ending_in("y");
      },
      {.relative = 0, .of_largest = 0});
  EXPECT_GE(totals.answered, 4000);
}

TEST(NativeCast, CopiesOfAllTypes) {
  const Totals totals = check_each_target(22, 600, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 13);
    const DataType type = castable_type(dice);
    if (is_floating(type) && dice.one_in(2)) {
      made.input("x", random_elements(dice, type, random_dims(dice)));
      const float ratio = 0.5F;
      made.constant("r", floats({}, {ratio}));
      made.node("y", "Dropout", {"x", "r"});
    } else {
      made.input("x", random_elements(dice, type, random_dims(dice)));
      made.node("y", "Identity", {"x"});
    }
    return made.ending_in("y");
  });
  EXPECT_GE(totals.answered, 600);
}

}  // namespace
}  // namespace tessera
