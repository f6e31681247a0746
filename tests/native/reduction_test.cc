// The Reduce family and the global poolings: all axes, all layouts, special values.

#include <limits>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

const std::vector<std::string> kReduceOps = {
    "ReduceL1",   "ReduceL2",  "ReduceLogSum", "ReduceMax", "ReduceLogSumExp",
    "ReduceMean", "ReduceMin", "ReduceProd",   "ReduceSum", "ReduceSumSquare"};

// Numbers near 1 for products, positive numbers for logarithms of sums.
Tensor numbers_for(Dice& dice, const std::string& op, const Sizes& dims) {
  if (op == "ReduceProd") return dice.tensor(dims, 0.95F, 1.05F);
  if (op == "ReduceLogSum") return dice.tensor(dims, 0.1F, 2);
  // Sums near zero have few significant digits.
  return dice.tensor(dims, -2, 5);
}

// Inserts infinities, NaN, and numbers whose squares overflow float32.
void spoil(Dice& dice, Tensor& tensor) {
  const std::vector<float> odd = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                  1e30F,     -3e38F,     1e-30F,
                                  0.0F,      -0.0F};
  const std::span<float> elements = tensor.mutable_as<float>();
  if (elements.empty()) return;
  if (dice.one_in(3)) std::fill(elements.begin(), elements.end(), dice.pick(odd));
  for (int64_t count = dice.whole(1, 4); count > 0; --count) {
    const int64_t position = dice.whole(0, static_cast<int64_t>(elements.size()) - 1);
    elements[static_cast<size_t>(position)] = dice.pick(odd);
  }
}

Sizes sizes(Dice& dice) {
  Sizes dims;
  const int64_t rank = dice.whole(0, 5);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t longest = rank < 3 ? 200 : 19;
    dims.push_back(dice.one_in(40) ? 0 : dice.one_in(4) ? 1 : dice.whole(1, longest));
  }
  if (dice.one_in(12) && rank > 0) dims.back() = dice.whole(600, 9000);
  return dims;
}

Sizes some_axes(Dice& dice, int64_t rank) {
  Sizes axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (dice.one_in(2)) axes.push_back(dice.one_in(2) ? axis : axis - rank);
  }
  return axes;
}

void append_reduction(Dice& dice, RandomGraph& made, const std::string& op, const Sizes& axes) {
  Attributes attributes = attributes_of({{"keepdims", dice.whole(0, 1)}});
  std::vector<std::string> inputs = {"x"};
  if (!axes.empty() || dice.one_in(2)) {
    made.constant(
        "axes", Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(axes.size())}, axes));
    inputs.emplace_back("axes");
    if (dice.one_in(3)) attributes.set("noop_with_empty_axes", int64_t{1});
  }
  made.node("y", op, inputs, attributes);
  made.builder.output("y");
}

RandomGraph reduction(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const std::string op = dice.pick(kReduceOps);
  const Sizes dims = sizes(dice);
  Tensor numbers = numbers_for(dice, op, dims);
  if (dice.one_in(4)) spoil(dice, numbers);
  made.input("x", std::move(numbers));
  append_reduction(dice, made, op, some_axes(dice, static_cast<int64_t>(dims.size())));
  return made;
}

// Reductions over pixels or over channels, as in convolutional networks.
RandomGraph feature_map(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  Sizes dims = {dice.whole(1, 3), dice.whole(1, 40)};
  const int64_t rank = dice.whole(3, 5);
  while (static_cast<int64_t>(dims.size()) < rank) dims.push_back(dice.whole(1, 13));
  const std::vector<std::string> pools = {"GlobalAveragePool", "GlobalMaxPool"};
  if (dice.one_in(3)) {
    made.input("x", dice.tensor(dims, -2, 5));
    made.node("y", dice.pick(pools), {"x"});
    return made.ending_in("y");
  }
  const std::string op = dice.pick(kReduceOps);
  made.input("x", numbers_for(dice, op, dims));
  Sizes axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  append_reduction(dice, made, op, dice.one_in(3) ? Sizes{1} : axes);
  return made;
}

RandomGraph reduction_of_other_types(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const Sizes dims = sizes(dice);
  const std::vector<std::string> exact = {"ReduceL1",  "ReduceMax",  "ReduceMean",     "ReduceMin",
                                          "ReduceSum", "ReduceProd", "ReduceSumSquare"};
  const std::vector<std::string> ordered = {"ReduceMax", "ReduceMin"};
  std::string op = dice.pick(exact);
  const DataType types[] = {DataType::Int32, DataType::Int64, DataType::Float64, DataType::Int8,
                            DataType::UInt8};
  const int64_t kind = dice.whole(0, 4);
  if (kind >= 3) op = dice.pick(ordered);
  made.input("x", whole_numbers(dice, types[kind], dims, 250));
  append_reduction(dice, made, op, some_axes(dice, static_cast<int64_t>(dims.size())));
  return made;
}

// A sum in float32 alone would have a far larger error than is allowed.
RandomGraph long_sum(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t length = int64_t{1} << 22;
  const Sizes dims = dice.one_in(2) ? Sizes{length} : Sizes{length / 4, 4};
  made.input("x", dice.tensor(dims, 0.1F, 0.1001F));
  const std::vector<std::string> sums = {"ReduceSum", "ReduceMean", "ReduceL2"};
  append_reduction(dice, made, dice.pick(sums), {0});
  return made;
}

// As many numbers of float64, of which a plain sum would lose digits.
RandomGraph long_wide_sum(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  made.input("x", random_elements(dice, DataType::Float64,
                                  {(int64_t{1} << 20) + dice.whole(0, 300)}, {0.1F, 0.1001F}));
  const std::vector<std::string> sums = {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare",
                                         "ReduceMax"};
  append_reduction(dice, made, dice.pick(sums), {0});
  return made;
}

TEST(NativeReduction, AnyAxes) {
  const Tolerance tolerance = {.relative = 1e-5, .of_largest = 1e-6};
  EXPECT_GE(check_each_target(101, 3000, reduction, tolerance).answered, 3000);
}
TEST(NativeReduction, FeatureMaps) {
  EXPECT_GE(check_each_target(102, 800, feature_map).answered, 800);
}
TEST(NativeReduction, OtherTypes) {
  EXPECT_GE(check_each_target(103, 800, reduction_of_other_types).answered, 800);
}
TEST(NativeReduction, LongSums) {
  const Tolerance tolerance = {.relative = 1e-6, .of_largest = 1e-6};
  EXPECT_GE(check_each_target(104, 10, long_sum, tolerance).answered, 10);
}
TEST(NativeReduction, LongSumsOfFloat64) {
  const Tolerance tolerance = {.relative = 1e-15, .of_largest = 0};
  EXPECT_GE(check_each_target(105, 20, long_wide_sum, tolerance).answered, 20);
}

}  // namespace
}  // namespace tessera
