// The kernels of the plug-in `opencl`, except products and windows, compared with loops. `tessera
// verify --backend` compares all of its candidates with the reference.
#include <cmath>
#include <functional>
#include <limits>

#include "base/matchers_test.h"
#include "opencl_fixture.h"

namespace tessera::opencl {
namespace {

using plugin::Type;

using Dims = std::vector<int64_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// --- Elementwise ---------------------------------------------------------------------------------

TEST_F(OpenclTest, KeepsNanAndInfinities) {
  const TestTensor x = tensor_of<float>({4}, {kNan, -kInfinity, kInfinity, -1});
  const auto relu = run({"Relu", 14, {x}, {floats({4})}});
  EXPECT_TRUE(std::isnan(relu[0]));
  EXPECT_THAT(std::vector<float>(relu.begin() + 1, relu.end()), ElementsAre(0, kInfinity, 0));
  const auto largest = run({"Max", 13, {x, tensor_of<float>({4}, {1, 1, 1, kNan})}, {floats({4})}});
  EXPECT_TRUE(std::isnan(largest[0]) && std::isnan(largest[3]));
  const auto pooled = run({"MaxPool",
                           12,
                           {tensor_of<float>({1, 1, 1, 4}, {1, kNan, 3, 4})},
                           {floats({1, 1, 1, 2})},
                           {{"kernel_shape", Dims{1, 2}}, {"strides", Dims{1, 2}}}});
  EXPECT_TRUE(std::isnan(pooled[0]));
  EXPECT_EQ(pooled[1], 4);
}

TEST_F(OpenclTest, ComputesFunctions) {
  const TestTensor x = random_tensor({3, 5, 77});
  const std::vector<std::pair<std::string, std::function<double(double)>>> functions = {
      {"Abs", [](double a) { return std::fabs(a); }},
      {"Ceil", [](double a) { return std::ceil(a); }},
      {"Erf", [](double a) { return std::erf(a); }},
      {"Exp", [](double a) { return std::exp(a); }},
      {"Floor", [](double a) { return std::floor(a); }},
      {"HardSwish", [](double a) { return a * std::clamp(a / 6 + 0.5, 0.0, 1.0); }},
      {"Neg", [](double a) { return -a; }},
      {"Sigmoid", [](double a) { return 1 / (1 + std::exp(-a)); }},
      {"Softplus", [](double a) { return std::log1p(std::exp(a)); }},
      {"Tanh", [](double a) { return std::tanh(a); }},
  };
  for (const auto& [op, function] : functions) {
    std::vector<float> expected;
    for (const float element : x.elements<float>()) {
      expected.push_back(static_cast<float>(function(element)));
    }
    EXPECT_THAT(run({op, 22, {x}, {floats(x.dims)}}), Pointwise(FloatNear(2e-6F), expected)) << op;
  }
}

TEST_F(OpenclTest, BroadcastsOperands) {
  for (const Dims& right_dims : std::vector<Dims>{{2, 3, 4, 100}, {1}, {3, 1, 1}, {2, 1, 4, 1}}) {
    for (const int64_t last : {100, 5}) {
      Dims right = right_dims;
      if (right.back() == 100) right.back() = last;
      const TestTensor a = random_tensor({2, 3, 4, last}, 1);
      const TestTensor b = random_tensor(right, 2);
      const std::vector<int64_t> strides = [&] {
        std::vector<int64_t> found(4, 0);
        int64_t stride = 1;
        for (size_t axis = right.size(); axis-- > 0;) {
          if (right[axis] != 1) found[4 - right.size() + axis] = stride;
          stride *= right[axis];
        }
        return found;
      }();
      std::vector<float> expected;
      for (int64_t index = 0; index < a.count(); ++index) {
        const int64_t position = index % last * strides[3] + index / last % 4 * strides[2] +
                                 index / last / 4 % 3 * strides[1] + index / last / 12 * strides[0];
        expected.push_back(a.elements<float>()[static_cast<size_t>(index)] -
                           b.elements<float>()[static_cast<size_t>(position)]);
      }
      EXPECT_EQ(run({"Sub", 14, {a, b}, {floats(a.dims)}}), expected);
    }
  }
}

TEST_F(OpenclTest, ComputesWithIntegersAndBools) {
  const TestTensor a = tensor_of<int64_t>({3}, {1, 2, 1LL << 40}, TESSERA_INT64);
  const TestTensor b = tensor_of<int64_t>({1}, {2}, TESSERA_INT64);
  EXPECT_THAT(
      plugin_->run_single({"Mul", 14, {a, b}, {{TESSERA_INT64, {3}}}})[0].elements<int64_t>(),
      ElementsAre(2, 4, 1LL << 41));
  EXPECT_THAT(
      plugin_->run_single({"Less", 13, {a, b}, {{TESSERA_BOOL, {3}}}})[0].elements<uint8_t>(),
      ElementsAre(1, 0, 0));
  const TestTensor condition = tensor_of<uint8_t>({3}, {1, 0, 1}, TESSERA_BOOL);
  EXPECT_THAT(plugin_->run_single({"Where", 16, {condition, a, b}, {{TESSERA_INT64, {3}}}})[0]
                  .elements<int64_t>(),
              ElementsAre(1, 2, 1LL << 40));
}

// --- Rows ----------------------------------------------------------------------------------------

TEST_F(OpenclTest, ReducesAnyAxes) {
  const TestTensor x = random_tensor({3, 4, 70});
  const std::vector<float> elements = x.elements<float>();
  std::vector<float> over_last(12, 0);
  std::vector<float> over_middle(210, 0);
  for (size_t index = 0; index < elements.size(); ++index) {
    over_last[index / 70] += elements[index] / 70;
    over_middle[index / 280 * 70 + index % 70] += elements[index];
  }
  EXPECT_THAT(run({"ReduceMean", 13, {x}, {floats({3, 4})}, {{"axes", Dims{-1}}}}),
              Pointwise(FloatNear(1e-5F), over_last));
  EXPECT_THAT(run({"ReduceSum", 13, {x, constant_of({1})}, {floats({3, 1, 70})}}),
              Pointwise(FloatNear(1e-5F), over_middle));
}

TEST_F(OpenclTest, ComputesSoftmaxAlongAnyAxis) {
  for (const int64_t axis : {1, 2}) {
    for (const int64_t last : {5, 100}) {
      const TestTensor x = random_tensor({2, 3, last});
      const std::vector<float> elements = x.elements<float>();
      const auto row_of = [&](size_t index) {
        const auto columns = static_cast<size_t>(last);
        return axis == 2 ? index / columns : index / columns / 3 * columns + index % columns;
      };
      std::vector<double> sums(elements.size(), 0);
      for (size_t index = 0; index < elements.size(); ++index) {
        sums[row_of(index)] += std::exp(elements[index]);
      }
      std::vector<float> expected;
      for (size_t index = 0; index < elements.size(); ++index) {
        expected.push_back(static_cast<float>(std::exp(elements[index]) / sums[row_of(index)]));
      }
      EXPECT_THAT(run({"Softmax", 13, {x}, {floats(x.dims)}, {{"axis", axis}}}),
                  Pointwise(FloatNear(1e-6F), expected));
    }
  }
}

TEST_F(OpenclTest, NormalizesRows) {
  const TestTensor x = random_tensor({4, 96});
  const TestTensor scale = random_tensor({96}, 2);
  const TestTensor shift = random_tensor({96}, 3);
  const auto elements = x.elements<float>();
  std::vector<float> expected;
  for (size_t row = 0; row < 4; ++row) {
    double mean = 0;
    double variance = 0;
    for (size_t index = 0; index < 96; ++index) mean += elements[row * 96 + index] / 96;
    for (size_t index = 0; index < 96; ++index) {
      variance += std::pow(elements[row * 96 + index] - mean, 2) / 96;
    }
    for (size_t index = 0; index < 96; ++index) {
      expected.push_back(
          static_cast<float>((elements[row * 96 + index] - mean) / std::sqrt(variance + 1e-5) *
                                 scale.elements<float>()[index] +
                             shift.elements<float>()[index]));
    }
  }
  EXPECT_THAT(run({"LayerNormalization", 17, {x, scale, shift}, {floats(x.dims)}}),
              Pointwise(FloatNear(1e-4F), expected));
}

// --- Copies --------------------------------------------------------------------------------------

TEST_F(OpenclTest, MovesElements) {
  const TestTensor x = tensor_of<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5}, TESSERA_INT32);
  const auto moved = [&](const TestNode& node) {
    return plugin_->run_single(node)[0].elements<int32_t>();
  };
  EXPECT_THAT(moved({"Transpose", 13, {x}, {{TESSERA_INT32, {3, 2}}}}),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(moved({"Concat", 13, {x, x}, {{TESSERA_INT32, {2, 6}}}, {{"axis", int64_t{1}}}}),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(
      moved({"Slice",
             13,
             {x, constant_of({2}), constant_of({-100}), constant_of({1}), constant_of({-2})},
             {{TESSERA_INT32, {2, 2}}}}),
      ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(moved({"Pad", 13, {x, constant_of({1, -1, 0, 1})}, {{TESSERA_INT32, {3, 3}}}}),
              ElementsAre(0, 0, 0, 1, 2, 0, 4, 5, 0));
  EXPECT_THAT(moved({"Expand", 13, {x, constant_of({2, 2, 3})}, {{TESSERA_INT32, {2, 2, 3}}}}),
              ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
  const auto parts = plugin_->run_single({"Split",
                                          13,
                                          {x},
                                          {{TESSERA_INT32, {2, 1}}, {TESSERA_INT32, {2, 2}}},
                                          {{"axis", int64_t{1}}}});
  EXPECT_THAT(parts[0].elements<int32_t>(), ElementsAre(0, 3));
  EXPECT_THAT(parts[1].elements<int32_t>(), ElementsAre(1, 2, 4, 5));
}

TEST_F(OpenclTest, OffersViews) {
  const auto results =
      plugin_->run({"Reshape", 13, {random_tensor({2, 3}), constant_of({3, 2})}, {floats({3, 2})}});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results.begin()->first, "view");
}

}  // namespace
}  // namespace tessera::opencl
