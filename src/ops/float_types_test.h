// Shared by tests of ops on images: floating types, and ops of domain com.microsoft.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/movement_test.h"

namespace tessera::ops {

// `tensor` as elements of the type with that number in ONNX, and the other way round.
inline Tensor cast_onnx(const Tensor& tensor, int64_t onnx_type) {
  return run_op("Cast", 13, attributes_of({{"to", onnx_type}}), {tensor})[0];
}
inline std::vector<float> as_floats(const Tensor& tensor) { return values(cast_onnx(tensor, 1)); }

inline constexpr int64_t kOnnxFloat32 = 1;
inline constexpr int64_t kOnnxFloat16 = 10;
inline constexpr int64_t kOnnxFloat64 = 11;
inline constexpr int64_t kOnnxBfloat16 = 16;
inline constexpr int64_t kOnnxFloatTypes[] = {kOnnxFloat32, kOnnxFloat16, kOnnxFloat64,
                                              kOnnxBfloat16};

// run_op() for an op of domain com.microsoft with one output.
inline Tensor run_microsoft_op(const std::string& op, Attributes attributes,
                               const std::vector<Tensor>& inputs) {
  const std::vector<bool> are_given(inputs.size(), true);
  const Node node =
      make_node(all_ops(), op, 1, std::move(attributes), are_given, 1, "com.microsoft");
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool)[0];
}

}  // namespace tessera::ops
