// Shared by tests of ops of com.microsoft: runs one op of that domain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/op_test.h"
#include "tessera/error.h"

namespace tessera::ops {

inline const Tensor kNothing;  // an omitted input

// Empty tensors are omitted inputs.
inline std::vector<Tensor> run_contrib(const std::string& op, Attributes attributes,
                                       const std::vector<Tensor>& inputs,
                                       const std::vector<bool>& outputs = {true}) {
  std::vector<bool> is_given;
  for (const Tensor& input : inputs) is_given.push_back(!input.is_empty());
  Node node = make_node(all_ops(), op, 1, std::move(attributes), is_given, outputs.size(),
                        kMicrosoftDomain);
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (!outputs[index]) node.outputs[index] = ValueId{};
  }
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

// The error message of the op for these inputs; "" if it accepts them.
inline std::string contrib_refusal(const std::string& op, const Attributes& attributes,
                                   const std::vector<Tensor>& inputs,
                                   const std::vector<bool>& outputs = {true}) {
  const auto error = thrown_by([&] { run_contrib(op, attributes, inputs, outputs); });
  return error ? error->message() : "";
}

// The inferred type of output 0 if only types are known.
inline std::string contrib_type(const std::string& op, const Attributes& attributes,
                                std::vector<InferInput> inputs, size_t output = 0) {
  std::vector<bool> is_given;
  for (const InferInput& input : inputs) is_given.push_back(input.is_present);
  const Node node = make_node(all_ops(), op, 1, attributes, is_given, output + 1, kMicrosoftDomain);
  return text(infer(all_ops().of(node), node, std::move(inputs))[output].type);
}

}  // namespace tessera::ops
