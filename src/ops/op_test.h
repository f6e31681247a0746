// Shared by tests of ops: runs one op on plain values.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "graph/attributes_test.h"
#include "ops/all_ops_test.h"
#include "ops/evaluate.h"
#include "ops/schema.h"

namespace tessera::ops {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// A node as import would create it; `opset` selects the version. Empty tensors are omitted inputs.
inline Node make_node(const Registry& registry, const std::string& op, int opset,
                      Attributes attributes, const std::vector<bool>& inputs_given,
                      size_t output_count, const std::string& domain = "") {
  const Op* found = registry.find(domain, op);
  EXPECT_NE(found, nullptr) << op;
  Node node;
  node.name = "node";
  node.op = op;
  node.domain = domain;
  node.version = version_in(*found, opset).value_or(0);
  node.attributes = std::move(attributes);
  for (size_t index = 0; index < inputs_given.size(); ++index) {
    node.inputs.push_back(inputs_given[index] ? ValueId{static_cast<int32_t>(index)} : ValueId{});
  }
  for (size_t index = 0; index < output_count; ++index) {
    node.outputs.push_back({static_cast<int32_t>(100 + index)});
  }
  complete(*found, node);
  return node;
}

inline std::vector<Tensor> run_op(const std::string& op, int opset, Attributes attributes,
                                  const std::vector<Tensor>& inputs, size_t output_count = 1) {
  std::vector<bool> is_given;
  for (const Tensor& input : inputs) is_given.push_back(!input.is_empty());
  const Node node = make_node(all_ops(), op, opset, std::move(attributes), is_given, output_count);
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

// The inferred types if only types are known: for rules with symbols and unknown ranks.
inline std::vector<InferOutput> infer_op(const std::string& op, int opset, Attributes attributes,
                                         std::vector<InferInput> inputs, size_t output_count = 1) {
  std::vector<bool> is_given;
  for (const InferInput& input : inputs) is_given.push_back(input.is_present);
  const Node node = make_node(all_ops(), op, opset, std::move(attributes), is_given, output_count);
  return infer(all_ops().of(node), node, std::move(inputs));
}

inline InferInput typed(DataType element, std::optional<Shape> shape) {
  InferInput input;
  input.is_present = true;
  input.type = Type::tensor(element, std::move(shape));
  return input;
}

// An integer tensor of `shape` whose elements are known as far as `elements` says.
inline InferInput with_elements(Shape shape, std::vector<Dim> elements) {
  InferInput input = typed(DataType::Int64, std::move(shape));
  input.elements = std::move(elements);
  return input;
}

inline std::vector<uint8_t> bytes(const Tensor& tensor) {
  const auto elements = tensor.as<uint8_t>();
  return {elements.begin(), elements.end()};
}

}  // namespace tessera::ops
