#include "import/onnx/names/used_names.h"

namespace tessera::onnx_import {
namespace {

using Names = std::unordered_set<std::string_view>;

void add_names(const onnx::GraphProto& graph, Names& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    names.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_names(attribute.g(), names);
      for (const onnx::GraphProto& inner : attribute.graphs()) add_names(inner, names);
    }
  }
}

}  // namespace

Names used_names(const onnx::GraphProto& graph) {
  Names names;
  add_names(graph, names);
  return names;
}

}  // namespace tessera::onnx_import
