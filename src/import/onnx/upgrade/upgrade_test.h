// Shared by tests of upgrades: imports one node with all ops of this build, and describes what it
// becomes.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "import/onnx/test_models.h"
#include "ops/all_ops_test.h"

namespace tessera::onnx_import {

inline ImportedModel import_with_all_ops(const onnx::ModelProto& model) {
  return import_onnx_bytes(model.SerializeAsString(), "/nonexistent", all_ops(),
                           Log([](const std::string&) {}));
}

template <class Numbers>
void write_list(std::ostream& text, const Numbers& numbers) {
  text << "[";
  for (size_t index = 0; index < numbers.size(); ++index) {
    text << (index == 0 ? "" : " ") << numbers[index];
  }
  text << "]";
}

inline void write_tensor(std::ostream& text, const Tensor& tensor) {
  text << name(tensor.type());
  for (const int64_t dim : tensor.dims()) text << " " << dim;
  text << " ";
  if (tensor.type() == DataType::Int64) return write_list(text, tensor.as<int64_t>());
  if (tensor.type() == DataType::Float32) return write_list(text, tensor.as<float>());
  text << "...";
}

inline void write_attribute(std::ostream& text, const Attribute& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) text << *number;
  if (const auto* number = std::get_if<float>(&value)) text << *number;
  if (const auto* words = std::get_if<std::string>(&value)) text << *words;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) write_list(text, *list);
  if (const auto* list = std::get_if<std::vector<float>>(&value)) write_list(text, *list);
  if (const auto* tensor = std::get_if<Tensor>(&value)) write_tensor(text, *tensor);
}

// "Concat 4 axis=1 (x, y)"; constants are written with their elements.
inline std::string node_text(const Graph& graph, const Node& node) {
  std::ostringstream text;
  text << node.op << " " << node.version;
  for (const auto& [name, value] : node.attributes.all()) {
    text << " " << name << "=";
    write_attribute(text, value);
  }
  text << " (";
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    const Value& input = graph[node.inputs[index]];
    text << (index == 0 ? "" : ", ");
    if (input.is_constant()) {
      write_tensor(text, input.constant);
    } else {
      text << input.name;
    }
  }
  text << ")";
  return text.str();
}

inline std::vector<std::string> node_texts(const Graph& graph) {
  std::vector<std::string> texts;
  for (const Node& node : graph.nodes) texts.push_back(node_text(graph, node));
  return texts;
}

inline onnx::AttributeProto& attribute(onnx::NodeProto& node, const char* name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  return attribute;
}

inline void set_ints(onnx::NodeProto& node, const char* name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& list = attribute(node, name);
  list.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) list.add_ints(value);
}

// What a node of this op that reads x, and becomes y, is after import.
struct UpgradeCase {
  const char* what;
  const char* op;
  int opset;
  void (*change)(onnx::NodeProto& node, onnx::GraphProto& graph);
  std::vector<std::string> expected;
};

inline onnx::ModelProto model_of(const UpgradeCase& row) {
  onnx::ModelProto model = make_model(row.opset);
  model.set_ir_version(3);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3, 4, 4});
  onnx::NodeProto& node = add_node(graph, row.op, {"x"}, {"y"}, "n");
  add_output(graph, "y");
  row.change(node, graph);
  return model;
}

}  // namespace tessera::onnx_import
