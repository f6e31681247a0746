// Shared by tests of ops of ai.onnx.ml.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/strings_test.h"

namespace tessera::ops {

// Runs a node whose inputs and outputs are tensors; labels of classes are integers.
inline std::vector<Tensor> run_ml(const std::string& op, int version, Attributes attributes,
                                  const std::vector<Tensor>& inputs, size_t outputs = 1) {
  const Node node = make_node(all_ops(), op, version, std::move(attributes),
                              std::vector<bool>(inputs.size(), true), outputs, kMlDomain);
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

inline std::string ml_error(const std::string& op, int version, const Attributes& attributes,
                            const std::vector<InferInput>& inputs) {
  return text_error({op, version, kMlDomain}, attributes, inputs);
}

inline Tensor doubles(std::vector<int64_t> dims, const std::vector<double>& elements) {
  return Tensor::from<double>(DataType::Float64, std::move(dims), elements);
}

inline std::vector<InferInput> rows_of(int64_t features, DataType type = DataType::Float32) {
  return {typed(type, Shape{Dim::symbol("N"), features})};
}

}  // namespace tessera::ops
