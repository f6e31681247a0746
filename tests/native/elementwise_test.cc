// Functions of one variable, in every dense layout.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "each_target.h"

namespace tessera {
namespace {

RandomGraph function(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"Abs", "Exp", "Neg"};
  RandomGraph made(registry, 19);
  std::vector<int64_t> dims = {dice.whole(1, 3), dice.whole(1, 37)};
  const int64_t axes = dice.whole(0, 3);
  for (int64_t axis = 0; axis < axes; ++axis) dims.push_back(dice.whole(1, 9));
  made.input("x", dice.tensor(dims, -3, 3));
  made.builder.node("y", dice.pick(kOps), {"x"}, {"y"}, {});
  made.builder.output("y");
  return made;
}

TEST(NativeElementwise, FunctionsAsTheReference) {
  const Totals totals = check_each_target(1, 3000, function);
  EXPECT_GE(totals.answered, 3000);
}

}  // namespace
}  // namespace tessera
