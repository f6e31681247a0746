// Shared by tests of ops on strings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/op_test.h"

namespace tessera::ops {

inline const std::string kMlDomain = "ai.onnx.ml";

inline Tensor strings(std::vector<int64_t> dims, std::vector<std::string> values) {
  return Tensor::strings(std::move(dims), std::move(values));
}

inline Tensor words(std::vector<std::string> values) {
  const auto count = static_cast<int64_t>(values.size());
  return strings({count}, std::move(values));
}

inline std::vector<std::string> texts(const Tensor& tensor) {
  EXPECT_EQ(tensor.type(), DataType::String);
  const auto elements = tensor.as<std::string>();
  return {elements.begin(), elements.end()};
}

struct TextOp {
  std::string name;
  int opset = 28;
  std::string domain = "";
};

inline Node text_node(const TextOp& op, Attributes attributes, size_t inputs, size_t outputs) {
  return make_node(all_ops(), op.name, op.opset, std::move(attributes),
                   std::vector<bool>(inputs, true), outputs, op.domain);
}

// Infers the types of the outputs, runs the node, and expects that the results have these types.
inline std::vector<Tensor> run_text(const TextOp& op, Attributes attributes,
                                    const std::vector<Tensor>& inputs, size_t output_count = 1) {
  const Node node = text_node(op, std::move(attributes), inputs.size(), output_count);
  const Op& definition = all_ops().of(node);
  std::vector<InferInput> known;
  for (const Tensor& input : inputs) known.push_back(infer_input(input));
  const std::vector<InferOutput> types = infer(definition, node, std::move(known));
  std::vector<Tensor> outputs(output_count);
  run_on_values(definition, {node, inputs, outputs});
  for (size_t index = 0; index < output_count; ++index) {
    EXPECT_EQ(outputs[index].type(), types[index].type.element);
    if (types[index].type.is_known_tensor()) {
      EXPECT_EQ(outputs[index].dims(), dims_from(*types[index].type.shape));
    }
  }
  return outputs;
}

inline std::string text_type(const TextOp& op, Attributes attributes,
                             std::vector<InferInput> inputs) {
  const size_t outputs = all_ops().find(op.domain, op.name)->outputs.size();
  const Node node = text_node(op, std::move(attributes), inputs.size(), outputs);
  return text(infer(all_ops().of(node), node, std::move(inputs))[0].type);
}

inline std::string text_error(const TextOp& op, const Attributes& attributes,
                              const std::vector<InferInput>& inputs) {
  return error_of(ErrorKind::InvalidModel, [&] { text_type(op, attributes, inputs); });
}

}  // namespace tessera::ops
