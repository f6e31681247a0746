// Poolings of odd sizes in every layout.

#include <limits>
#include <string>
#include <vector>

#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

RandomGraph pooling(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rank = dice.one_in(3) ? dice.pick(Sizes{1, 3}) : 2;
  const bool is_largest = dice.one_in(2);
  Sizes dims = {dice.whole(1, 3), dice.pick(Sizes{1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 40, 70})};
  if (rank == 3) dims[1] = dice.whole(1, 20);
  Sizes kernel;
  Sizes strides;
  Sizes dilations;
  Sizes pads;
  const bool is_dilated = dice.one_in(4);
  const bool is_generous = dice.one_in(6);
  for (int64_t axis = 0; axis < rank; ++axis) {
    kernel.push_back(dice.whole(1, rank == 3 ? 3 : 5));
    strides.push_back(dice.whole(1, dice.one_in(4) ? 5 : 3));
    dilations.push_back(is_dilated ? dice.whole(1, 3) : 1);
    const int64_t longest = rank == 1 ? 200 : rank == 2 ? 30 : 7;
    dims.push_back((kernel.back() - 1) * dilations.back() + dice.whole(1, longest));
  }
  for (int64_t side = 0; side < 2 * rank; ++side) {
    const int64_t axis = side % rank;
    // Windows that contain only padding are legal.
    pads.push_back(dice.whole(0, is_generous ? 7 : kernel[static_cast<size_t>(axis)] / 2));
  }
  Tensor numbers = dice.tensor(dims, -1, is_largest ? 1 : 2);
  if (is_largest && dice.one_in(4)) {
    const std::span<float> elements = numbers.mutable_as<float>();
    for (int64_t count = dice.whole(1, 5); count > 0; --count) {
      const int64_t position = dice.whole(0, numbers.elements() - 1);
      elements[static_cast<size_t>(position)] = dice.one_in(2)
                                                    ? std::numeric_limits<float>::quiet_NaN()
                                                    : -std::numeric_limits<float>::infinity();
    }
  }
  made.input("x", std::move(numbers));
  Attributes attributes =
      attributes_of({{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}});
  if (dice.one_in(3)) attributes.set("ceil_mode", int64_t{1});
  if (!is_largest && dice.one_in(2)) attributes.set("count_include_pad", int64_t{1});
  if (dice.one_in(4)) {
    const std::vector<std::string> words = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    attributes.set("auto_pad", dice.pick(words));
  } else if (dice.one_in(2) || is_generous) {
    attributes.set("pads", pads);
  }
  made.node("pool", is_largest ? "MaxPool" : "AveragePool", {"x"}, attributes);
  return made.ending_in("pool");
}

// Rows and windows longer than those that are processed at a time.
RandomGraph long_rows(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  made.input("x", dice.tensor({1, 2, dice.whole(3000, 9000)}, -1, 2));
  const Attributes attributes =
      attributes_of({{"kernel_shape", {dice.one_in(2) ? dice.whole(1, 9) : dice.whole(1500, 2600)}},
                     {"strides", {dice.one_in(2) ? dice.whole(1, 3) : dice.whole(1000, 2500)}},
                     {"pads", {dice.whole(0, 1), dice.whole(0, 1)}}});
  made.node("pool", dice.one_in(2) ? "MaxPool" : "AveragePool", {"x"}, attributes);
  return made.ending_in("pool");
}

TEST(NativePooling, OddSizes) { EXPECT_GE(check_each_target(131, 3000, pooling).answered, 3000); }
TEST(NativePooling, LongRows) { EXPECT_GE(check_each_target(132, 60, long_rows).answered, 60); }

TEST(NativePooling, IndicesAreRefused) {
  const Totals totals = check_cases("native", 133, 1, max_pool_with_indices);
  EXPECT_EQ(totals.answered, 0);
  EXPECT_EQ(totals.refusals.begin()->first, "MaxPool: does not return the indices of maxima");
}

}  // namespace
}  // namespace tessera
