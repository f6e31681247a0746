// Tensors of bytes, and ops of com.microsoft, for tests of quantised ops.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/op_test.h"

namespace tessera::ops {

inline Tensor unsigned_bytes(std::vector<int64_t> dims, const std::vector<uint8_t>& values) {
  return Tensor::from<uint8_t>(DataType::UInt8, std::move(dims), values);
}

inline Tensor signed_bytes(std::vector<int64_t> dims, const std::vector<int8_t>& values) {
  return Tensor::from<int8_t>(DataType::Int8, std::move(dims), values);
}

inline Tensor scalar(float value) { return floats({}, {value}); }
inline Tensor zero_point(uint8_t value) { return unsigned_bytes({}, {value}); }

inline Node microsoft_node(const std::string& op, Attributes attributes,
                           const std::vector<bool>& is_given, size_t output_count) {
  return make_node(all_ops(), op, 1, std::move(attributes), is_given, output_count,
                   "com.microsoft");
}

// The outputs of an op of com.microsoft. Empty tensors are omitted inputs.
inline std::vector<Tensor> run_microsoft(const std::string& op, Attributes attributes,
                                         const std::vector<Tensor>& inputs,
                                         size_t output_count = 1) {
  std::vector<bool> is_given;
  for (const Tensor& input : inputs) is_given.push_back(!input.is_empty());
  const Node node = microsoft_node(op, std::move(attributes), is_given, output_count);
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

// Its inferred types if only types are known.
inline std::vector<InferOutput> infer_microsoft(const std::string& op, Attributes attributes,
                                                std::vector<InferInput> inputs,
                                                size_t output_count = 1) {
  std::vector<bool> is_given;
  for (const InferInput& input : inputs) is_given.push_back(input.is_present);
  const Node node = microsoft_node(op, std::move(attributes), is_given, output_count);
  return infer(all_ops().of(node), node, std::move(inputs));
}

// The error message of its type rule.
inline std::string microsoft_refusal(const std::string& op, Attributes attributes,
                                     std::vector<InferInput> inputs,
                                     ErrorKind kind = ErrorKind::InvalidModel) {
  return error_of(kind, [&] { infer_microsoft(op, std::move(attributes), std::move(inputs)); });
}

inline InferInput floating(Shape shape) { return typed(DataType::Float32, std::move(shape)); }
inline InferInput bytewise(Shape shape) { return typed(DataType::UInt8, std::move(shape)); }

}  // namespace tessera::ops
