#include "rewrite/passes.h"

#include <algorithm>
#include <vector>

#include "ops/schema.h"

namespace tessera {
namespace {

// Omits optional outputs at the end that nothing needs, so that kernels need not write them and
// those that cannot are offered too. The first output stays.
void omit_outputs(Node& node, const Graph& graph, const std::vector<bool>& is_needed,
                  const PassContext& context) {
  if (node.outputs.size() < 2) return;
  const std::vector<ops::Parameter> outputs =
      ops::parameters_of(context.registry.of(node).outputs, node.version);
  while (node.outputs.size() > 1 && node.outputs.size() <= outputs.size() &&
         outputs[node.outputs.size() - 1].arity == ops::Arity::Optional) {
    const ValueId id = node.outputs.back();
    if (!id.is_none()) {
      if (is_needed[static_cast<size_t>(id.index)] || graph[id].is_state) return;
      context.changes.push_back(location_of(node) + ": output '" + graph[id].name +
                                "' omitted: nothing needs it");
    }
    node.outputs.pop_back();
  }
}

}  // namespace

Graph remove_dead_nodes(Graph graph, const PassContext& context) {
  std::vector<bool> is_needed(graph.values.size(), false);
  const auto need = [&](ValueId id) {
    if (!id.is_none()) is_needed[static_cast<size_t>(id.index)] = true;
  };
  for (const ValueId id : graph.outputs) need(id);
  for (const ValueId id : graph.kept) need(id);
  // Readers follow makers, so in reverse order every reader is visited before its maker.
  for (size_t index = graph.nodes.size(); index-- > 0;) {
    Node& node = graph.nodes[index];
    node.is_removed = std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return !id.is_none() && (is_needed[static_cast<size_t>(id.index)] || graph[id].is_state);
    });
    if (node.is_removed) continue;
    omit_outputs(node, graph, is_needed, context);
    for (const ValueId id : node.inputs) need(id);
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) need(capture.outer);
    }
  }
  for (const Node& node : graph.nodes) {
    if (node.is_removed)
      context.changes.push_back(location_of(node) + " removed: nothing needs it");
  }
  return graph;
}

}  // namespace tessera
