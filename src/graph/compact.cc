#include "graph/compact.h"

#include <utility>

namespace tessera {

Graph compact(Graph graph) {
  std::erase_if(graph.nodes, [](const Node& node) { return node.is_removed; });

  std::vector<int> uses = use_counts(graph);
  const auto keep = [&](ValueId id) {
    if (!id.is_none()) ++uses[static_cast<size_t>(id.index)];
  };
  for (const ValueId id : graph.inputs) keep(id);
  for (const Capture& capture : graph.captures) keep(capture.inner);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) keep(id);
  }

  std::vector<ValueId> renumbered(graph.values.size());
  std::vector<Value> values;
  for (size_t index = 0; index < graph.values.size(); ++index) {
    if (uses[index] == 0) continue;
    renumbered[index] = {static_cast<int32_t>(values.size())};
    values.push_back(std::move(graph.values[index]));
  }
  graph.values = std::move(values);

  const auto renumber = [&](ValueId& id) {
    if (!id.is_none()) id = renumbered[static_cast<size_t>(id.index)];
  };
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) renumber(id);
    for (ValueId& id : node.outputs) renumber(id);
    for (Body& body : node.bodies) {
      for (Capture& capture : body.graph.captures) renumber(capture.outer);
    }
  }
  for (ValueId& id : graph.inputs) renumber(id);
  for (ValueId& id : graph.outputs) renumber(id);
  for (ValueId& id : graph.kept) renumber(id);
  for (Capture& capture : graph.captures) renumber(capture.inner);
  return graph;
}

}  // namespace tessera
