#include "graph/graph.h"

#include <utility>

#include "tessera/error.h"

namespace tessera {
namespace {

// Calls visit(ValueId&) for everything that reads a value of `graph`.
template <class AnyGraph, class Visit>
void for_each_use(AnyGraph& graph, const Visit& visit) {
  for (auto& node : graph.nodes) {
    if (node.is_removed) continue;
    for (auto& input : node.inputs) {
      if (!input.is_none()) visit(input);
    }
    for (auto& body : node.bodies) {
      for (auto& capture : body.graph.captures) visit(capture.outer);
    }
  }
  for (auto& output : graph.outputs) visit(output);
  for (auto& kept : graph.kept) visit(kept);
}

}  // namespace

void take_captured_constants(const Graph& outer, Graph& body) {
  std::erase_if(body.captures, [&](const Capture& capture) {
    const Value& known = outer[capture.outer];
    if (!known.constant.has_elements() || known.is_state) return false;
    Value& inner = body[capture.inner];
    inner.type = known.type;
    inner.elements.reset();
    inner.constant = known.constant;
    inner.digest = known.digest;
    return true;
  });
}

ClosedBody close_body(const Graph& body) {
  ClosedBody closed{.graph = body, .captured = {}};
  for (const Capture& capture : body.captures) {
    closed.graph.inputs.push_back(capture.inner);
    closed.captured.push_back(capture.outer);
  }
  closed.graph.captures.clear();
  return closed;
}

ValueId add_value(Graph& graph, Value value) {
  graph.values.push_back(std::move(value));
  return {static_cast<int32_t>(graph.values.size()) - 1};
}

ValueId find_value(const Graph& graph, const std::string& name) {
  for (size_t index = 0; index < graph.values.size(); ++index) {
    if (graph.values[index].name == name) return {static_cast<int32_t>(index)};
  }
  return {};
}

Tensor elements_of(const Value& value) {
  if (value.constant.has_elements() || !value.sparse_constant) return value.constant;
  try {
    return value.sparse_constant->to_dense();
  } catch (const Error& error) {
    throw Error(error.kind(), "constant '" + value.name + "'", error.message());
  }
}

std::vector<NodeId> producers(const Graph& graph) {
  std::vector<NodeId> result(graph.values.size());
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    if (graph.nodes[index].is_removed) continue;
    for (const ValueId output : graph.nodes[index].outputs) {
      if (!output.is_none()) {
        result[static_cast<size_t>(output.index)] = {static_cast<int32_t>(index)};
      }
    }
  }
  return result;
}

std::vector<int> use_counts(const Graph& graph) {
  std::vector<int> counts(graph.values.size(), 0);
  for_each_use(graph, [&](const ValueId& id) { ++counts[static_cast<size_t>(id.index)]; });
  return counts;
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for_each_use(graph, [&](ValueId& id) {
    if (id == from) id = to;
  });
}

std::string location_of(const Node& node) { return "node '" + node.name + "' (" + node.op + ")"; }

}  // namespace tessera
