// Parts that the tests of the plug-in share: random tensors, and one opened plug-in for all tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test_graph.h"

namespace tessera::opencl {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline TestTensor random_tensor(const std::vector<int64_t>& dims, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-2, 2);
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> elements(static_cast<size_t>(count));
  for (float& element : elements) element = numbers(random);
  return tensor_of(dims, elements);
}

inline plugin::Type floats(const std::vector<int64_t>& dims) { return {TESSERA_FLOAT32, dims}; }

// One plug-in for all tests, because opening a device takes long.
class OpenclTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Two devices of PoCL, if it is the driver.
    setenv("POCL_DEVICES", "pthread pthread", 0);
    try {
      plugin_ = std::make_unique<TestPlugin>(blobs_);
    } catch (const NoDevice& reason) {
      missing_ = reason.what();
    }
  }
  static void TearDownTestSuite() { plugin_.reset(); }
  void SetUp() override {
    if (plugin_ == nullptr) GTEST_SKIP() << missing_;
  }

  // The elements of the first output, the same for all candidates.
  static std::vector<float> run(const TestNode& node) {
    std::vector<float> first;
    for (const auto& [algorithm, outputs] : plugin_->run(node)) {
      const std::vector<float> elements = outputs.at(0).elements<float>();
      if (!first.empty()) {
        EXPECT_THAT(elements, testing::Pointwise(testing::FloatNear(1e-4F), first)) << algorithm;
      }
      first = elements;
    }
    return first;
  }

  static inline std::map<std::string, std::string> blobs_;
  static inline std::unique_ptr<TestPlugin> plugin_;
  static inline std::string missing_;
};

// Row-major product of `m` x `k` and `k` x `n`.
inline std::vector<float> product(const float* a, const float* b, int64_t m, int64_t n, int64_t k) {
  std::vector<float> result;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (int64_t index = 0; index < k; ++index) {
        sum += static_cast<double>(a[row * k + index]) * b[index * n + column];
      }
      result.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

}  // namespace tessera::opencl
