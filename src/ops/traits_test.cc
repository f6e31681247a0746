// Checks the traits of ops on random numbers.

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

constexpr int kNewest = 23;
constexpr int kElements = 64;
// HardSwish is the steepest: slope 1.5 where it meets the identity.
constexpr float kSteepest = 1.5F;

class Traits : public testing::Test {
 protected:
  Tensor draw(const std::vector<int64_t>& dims) {
    std::vector<float> values(kElements);
    std::uniform_real_distribution<float> numbers(-4, 4);
    for (float& value : values) value = numbers(random_);
    return floats(dims, values);
  }

  std::mt19937 random_{1};
};

Attributes needed_attributes(const std::string& op) {
  Attributes attributes;
  if (op == "Transpose") attributes.set("perm", std::vector<int64_t>{1, 0, 2, 3});
  if (op == "Concat") attributes.set("axis", int64_t{1});
  if (op == "DepthToSpace") attributes.set("blocksize", int64_t{2});
  if (op == "Einsum") attributes.set("equation", std::string("abcd->ad"));
  if (op == "AveragePool" || op == "LpPool" || op == "MaxPool") {
    attributes.set("kernel_shape", std::vector<int64_t>{2, 2});
  }
  return attributes;
}

TEST_F(Traits, NonExpansiveOpsBringNumbersNoFurtherApart) {
  int tried = 0;
  for (const Op* op : all_ops().all()) {
    if ((op->traits & kNonExpansive) == 0) continue;
    EXPECT_NE(op->traits & kElementwise, 0U) << op->name;
    const int opset = op->last_version == kAnyVersion ? kNewest + 2 : op->last_version;
    for (int round = 0; round < 50; ++round) {
      const Tensor left = draw({kElements});
      const Tensor right = draw({kElements});
      const std::vector<float> of_left = values(run_op(op->name, opset, {}, {left})[0]);
      const std::vector<float> of_right = values(run_op(op->name, opset, {}, {right})[0]);
      for (size_t index = 0; index < of_left.size(); ++index) {
        const float apart = std::abs(values(left)[index] - values(right)[index]);
        ASSERT_LE(std::abs(of_left[index] - of_right[index]), kSteepest * apart + 1e-5F)
            << op->name;
      }
    }
    ++tried;
  }
  EXPECT_GE(tried, 14);
}

TEST_F(Traits, OfMagnitudesComesABound) {
  const std::vector<int64_t> dims = {1, 4, 4, 4};
  std::set<std::string> tried;
  for (const Op* op : all_ops().all()) {
    if ((op->traits & kBoundsMagnitude) == 0) continue;
    const bool is_product = (op->traits & kProduct) != 0;
    const bool is_convolution = (op->traits & kConvolution) != 0;
    const auto is_needed = [](const Parameter& input) { return input.arity != Arity::Optional; };
    const auto needed = std::count_if(op->inputs.begin(), op->inputs.end(), is_needed);
    std::vector<Tensor> inputs;
    if (is_convolution) {
      inputs = {draw(dims), draw({4, 4, 2, 2})};
    } else if (op->name == "Gemm") {
      inputs = {draw({8, 8}), draw({8, 8})};
    } else if (op->name == "CumSum") {
      inputs = {draw(dims), ints({}, {1})};
    } else if (op->name == "Expand") {
      inputs = {draw(dims), ints({4}, {2, 1, 1, 1})};
    } else if (op->name == "Slice") {
      inputs = {draw(dims), ints({1}, {1}), ints({1}, {3})};
    } else {
      for (std::ptrdiff_t index = 0; index < needed; ++index) inputs.push_back(draw(dims));
    }
    std::vector<Tensor> magnitudes;
    for (const Tensor& input : inputs) {
      if (input.type() != DataType::Float32) {
        magnitudes.push_back(input);
        continue;
      }
      std::vector<float> elements = values(input);
      for (float& element : elements) element = std::abs(element);
      magnitudes.push_back(floats(input.dims(), elements));
    }
    const Attributes attributes = needed_attributes(op->name);
    const std::vector<float> made = values(run_op(op->name, kNewest, attributes, inputs)[0]);
    const std::vector<float> bound = values(run_op(op->name, kNewest, attributes, magnitudes)[0]);
    ASSERT_EQ(made.size(), bound.size()) << op->name;
    for (size_t index = 0; index < made.size(); ++index) {
      ASSERT_LE(std::abs(made[index]), bound[index] * (1 + 1e-5F) + 1e-5F) << op->name;
    }
    EXPECT_TRUE(!is_convolution || is_product) << op->name;
    tried.insert(op->name);
  }
  EXPECT_GE(tried.size(), 19U);
}

}  // namespace
}  // namespace tessera::ops
