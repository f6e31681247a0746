// Poolings of odd sizes.
#include "candidate_check.h"
#include "random_nodes.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

RandomGraph pooling(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rank = dice.one_in(3) ? dice.pick(Sizes{1, 3}) : 2;
  const std::vector<std::string> names = {"MaxPool", "AveragePool", "GlobalAveragePool",
                                          "GlobalMaxPool"};
  const std::string& op = dice.one_in(4) ? dice.pick(names) : names[dice.one_in(2) ? 1 : 0];
  Sizes dims = {dice.whole(1, 3), dice.pick(Sizes{1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 40})};
  Sizes kernel;
  Sizes strides;
  Sizes dilations;
  Sizes pads;
  const bool is_dilated = dice.one_in(4);
  for (int64_t axis = 0; axis < rank; ++axis) {
    kernel.push_back(dice.whole(1, rank == 3 ? 3 : 4));
    strides.push_back(dice.whole(1, 3));
    dilations.push_back(is_dilated ? dice.whole(1, 2) : 1);
    dims.push_back((kernel.back() - 1) * dilations.back() + dice.whole(1, rank == 3 ? 6 : 15));
  }
  for (int64_t side = 0; side < 2 * rank; ++side) {
    pads.push_back(dice.whole(0, kernel[static_cast<size_t>(side % rank)] / 2));
  }
  made.input("x", dice.tensor(dims));
  Attributes attributes;
  if (!op.starts_with("Global")) {
    attributes.set("kernel_shape", kernel);
    attributes.set("strides", strides);
    attributes.set("dilations", dilations);
    if (dice.one_in(3)) attributes.set("ceil_mode", int64_t{1});
    if (op == "AveragePool" && dice.one_in(2)) attributes.set("count_include_pad", int64_t{1});
    if (dice.one_in(4)) {
      const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
      attributes.set("auto_pad", dice.pick(words));
    } else if (dice.one_in(2)) {
      attributes.set("pads", pads);
    }
  }
  made.node("pool", op, {"x"}, attributes);
  return made.ending_in("pool");
}

TEST(OnednnPoolings, Pooling) {
  // Fewer than 500, because some cases have windows that contain only padding, or count the padding
  // that ceil_mode adds.
  EXPECT_GE(check_cases("onednn", 21, 500, pooling).answered, 400);
}

// More than 32 elements, one after the other, lose digits.
TEST(OnednnPoolings, WideAveragesAreRefused) {
  for (const int64_t side : {5, 6}) {
    const Totals totals =
        check_cases("onednn", 23, 1, [&](Dice& dice, const ops::Registry& registry) {
          RandomGraph made(registry, 20);
          made.input("x", dice.tensor({1, 3, side, side}));
          made.node("y", "GlobalAveragePool", {"x"});
          return made.ending_in("y");
        });
    EXPECT_EQ(totals.answered, side == 5 ? 1 : 0);
  }
}

TEST(OnednnPoolings, IndicesAreRefused) {
  const Totals totals = check_cases("onednn", 22, 1, max_pool_with_indices);
  EXPECT_EQ(totals.answered, 0);
  EXPECT_EQ(totals.refusals.begin()->first,
            "MaxPool: oneDNN does not return the indices of maxima");
}

}  // namespace
}  // namespace tessera
