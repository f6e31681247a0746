// Shared by tests of attention: ops of other domains, and operands that make the weights visible.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/movement_test.h"

namespace tessera::ops {

// run_op() for ops of com.microsoft.
inline std::vector<Tensor> run_microsoft(const std::string& op, Attributes attributes,
                                         const std::vector<Tensor>& inputs,
                                         size_t output_count = 1) {
  std::vector<bool> is_given;
  for (const Tensor& input : inputs) is_given.push_back(!input.is_empty());
  const Node node =
      make_node(all_ops(), op, 1, std::move(attributes), is_given, output_count, "com.microsoft");
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

inline std::string microsoft_refusal(const std::string& op, Attributes given,
                                     const std::vector<Tensor>& inputs, size_t output_count = 1) {
  const auto error = thrown_by([&] { run_microsoft(op, std::move(given), inputs, output_count); });
  return error ? error->message() : "";
}

inline Tensor int32s(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  return Tensor::from<int32_t>(DataType::Int32, std::move(dims), values);
}

inline Tensor zeros(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return floats(dims, std::vector<float>(static_cast<size_t>(count), 0.0F));
}

// [1, 1, count, count]: values whose attention is the weights.
inline Tensor unit_values(int64_t count) {
  std::vector<float> elements(static_cast<size_t>(count * count), 0.0F);
  for (int64_t index = 0; index < count; ++index) {
    elements[static_cast<size_t>(index * (count + 1))] = 1;
  }
  return floats({1, 1, count, count}, elements);
}

// The weights of scores 0 and `score`.
inline float weight_of_zero(double score) { return static_cast<float>(1 / (1 + std::exp(score))); }
inline float weight_of(double score) { return 1 - weight_of_zero(score); }

constexpr float kHalf = 0.5F;
constexpr float kThird = 1.0F / 3;

inline auto is_about(std::vector<float> expected) {
  return Pointwise(FloatNear(1e-6F), std::move(expected));
}

}  // namespace tessera::ops
