#include "rewrite/lower_functions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ops/onnx_types.h"
#include "ops/op.h"
#include "rewrite/passes.h"

namespace tessera {
namespace {

const FunctionLowering* lowering_of(const Node& node) {
  for (const auto& family : {einsum_lowerings(), fused_lowerings(), normalization_lowerings(),
                             attention_lowerings(), plain_lowerings()}) {
    for (const FunctionLowering& each : family) {
      if (each.op == node.op && each.domain == node.domain) return &each;
    }
  }
  return nullptr;
}

ValueId cast(NodeBuilder& builder, ValueId id, DataType element) {
  return builder.add("Cast", {id}, attribute_list({{"to", int64_t{ops::onnx_number_of(element)}}}));
}

// All inputs have known element types, and nothing is a state or a list.
bool is_plain(const Graph& graph, const Node& node) {
  const auto is_tensor = [&](ValueId id) {
    return id.is_none() || (graph[id].type.is_tensor() && !graph[id].is_state &&
                            graph[id].type.element != DataType::Undefined);
  };
  return std::ranges::all_of(node.inputs, is_tensor) &&
         std::ranges::all_of(node.outputs, is_tensor);
}

}  // namespace

Attributes attribute_list(std::initializer_list<std::pair<std::string, Attribute>> pairs) {
  Attributes attributes;
  for (const auto& [name, value] : pairs) attributes.set(name, value);
  return attributes;
}

ValueId widened(NodeBuilder& builder, ValueId id) {
  const DataType element = builder.element_of(id);
  const bool is_narrow = element == DataType::Float16 || element == DataType::BFloat16;
  return is_narrow ? cast(builder, id, DataType::Float32) : id;
}

void give_as(NodeBuilder& builder, size_t index, ValueId id, DataType element) {
  if (!builder.has_output(index)) return;
  builder.give(index, builder.element_of(id) == element ? id : cast(builder, id, element));
}

Graph lower_functions(Graph graph, const PassContext& context) {
  const auto has_lowering = [](const Node& node) { return lowering_of(node) != nullptr; };
  if (std::ranges::none_of(graph.nodes, has_lowering)) return graph;
  NodeBuilder builder(graph, context.registry);  // knows the names of all nodes
  std::vector<Node> nodes = std::exchange(graph.nodes, {});
  for (Node& node : nodes) {
    const FunctionLowering* lowering = lowering_of(node);
    if (lowering != nullptr && is_plain(graph, node)) {
      builder.begin(node);
      if (lowering->write(builder)) {
        builder.commit();
        context.changes.push_back(location_of(node) + " computed by simpler ops");
        continue;
      }
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

}  // namespace tessera
