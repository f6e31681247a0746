// Softmax and LogSoftmax, alone and with the scaling and mask of attention.

#include <limits>
#include <string>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

Sizes sizes(Dice& dice, int64_t min_rank) {
  Sizes dims;
  const int64_t rank = dice.whole(min_rank, 5);
  const int64_t longest = rank < 3 ? 70 : rank == 3 ? 17 : 6;
  for (int64_t axis = 0; axis < rank; ++axis) {
    dims.push_back(dice.one_in(40) ? 0 : dice.one_in(6) ? 1 : dice.whole(1, longest));
  }
  if (dice.one_in(12) && rank < 4) {
    dims[static_cast<size_t>(dice.whole(0, rank - 1))] = dice.whole(200, 3000);
  }
  return dims;
}

// A mask that hides whole rows and parts of rows.
void hide(Dice& dice, Tensor& tensor, float hidden) {
  const std::span<float> elements = tensor.mutable_as<float>();
  if (elements.empty() || tensor.dims().empty()) return;
  const int64_t row = tensor.dims().back();
  for (int64_t count = dice.whole(1, 4); count > 0; --count) {
    const int64_t first = dice.whole(0, tensor.elements() / row - 1) * row;
    const int64_t length = dice.one_in(2) ? row : dice.whole(1, row);
    for (int64_t position = first; position < first + length; ++position) {
      elements[static_cast<size_t>(position)] = hidden;
    }
  }
}

RandomGraph alone(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, dice.one_in(3) ? 11 : 13);
  const Sizes dims = sizes(dice, 1);
  Tensor numbers = dice.tensor(dims, -20, 20);
  if (dice.one_in(6)) hide(dice, numbers, -kInfinity);
  if (dice.one_in(20)) hide(dice, numbers, kInfinity);
  if (dice.one_in(20)) hide(dice, numbers, std::numeric_limits<float>::quiet_NaN());
  if (dice.one_in(10)) hide(dice, numbers, 3e38F);
  made.input("x", std::move(numbers));
  Attributes attributes;
  const auto rank = static_cast<int64_t>(dims.size());
  if (!dice.one_in(4)) attributes.set("axis", dice.whole(-rank, rank - 1));
  if (dice.one_in(3) && rank > 1) attributes.set("axis", int64_t{1});
  if (rank == 1) attributes.set("axis", int64_t{0});
  made.node("y", dice.one_in(2) ? "Softmax" : "LogSoftmax", {"x"}, attributes);
  return made.ending_in("y");
}

RandomGraph masked(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const Sizes dims = sizes(dice, 1);
  made.input("x", dice.tensor(dims, -6, 6));
  std::string last = "x";
  const bool has_scale = dice.one_in(2);
  if (has_scale) {
    made.constant("factor", floats({}, {dice.number(0.1F, 3)}));
    const bool is_division = dice.one_in(2);
    const bool is_swapped = !is_division && dice.one_in(2);
    made.node("s", is_division ? "Div" : "Mul",
              is_swapped ? std::vector<std::string>{"factor", "x"}
                         : std::vector<std::string>{"x", "factor"},
              {last = "s"});
  }
  if (!has_scale || dice.one_in(2)) {
    Sizes mask = dims;
    for (size_t axis = 0; axis + 1 < mask.size(); ++axis)
      mask[axis] = dice.one_in(2) ? 1 : mask[axis];
    mask.erase(mask.begin(), mask.begin() + dice.whole(0, static_cast<int64_t>(mask.size()) - 1));
    Tensor numbers = dice.tensor(mask, -2, 2);
    if (dice.one_in(2)) hide(dice, numbers, -kInfinity);
    if (dice.one_in(2)) hide(dice, numbers, -1e9F);
    made.operand(dice, "m", std::move(numbers));
    made.node(
        "a", "Add",
        dice.one_in(2) ? std::vector<std::string>{last, "m"} : std::vector<std::string>{"m", last});
    last = "a";
  }
  made.node("y", dice.one_in(4) ? "LogSoftmax" : "Softmax", {last});
  return made.ending_in("y");
}

// Results of more than 8 MiB are streamed past the caches, in pieces of whole rows.
RandomGraph large_softmax(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const int64_t length = dice.pick(Sizes{7, 50, 197, 600, 1031, 9001});
  const int64_t rows = (int64_t{9} << 18) / length / 3 + 1;
  made.input("x", dice.tensor({3, rows, length}, -20, 20));
  std::string last = "x";
  if (dice.one_in(2)) {
    made.operand(dice, "m", dice.tensor({rows, length}, -2, 2));
    made.node("a", "Add", {"x", "m"}, {last = "a"});
  }
  made.node("y", dice.one_in(3) ? "LogSoftmax" : "Softmax", {last});
  return made.ending_in("y");
}

TEST(NativeSoftmax, PastTheCaches) {
  EXPECT_GE(check_each_target(113, 20, large_softmax).answered, 20);
}
TEST(NativeSoftmax, Alone) { EXPECT_GE(check_each_target(111, 3000, alone).answered, 3000); }
TEST(NativeSoftmax, ScaledAndMasked) {
  expect_answers(check_each_target(112, 1500, masked), 1500, 3);
}

}  // namespace
}  // namespace tessera
