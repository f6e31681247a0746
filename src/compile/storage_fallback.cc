#include "compile/storage_fallback.h"

#include <algorithm>

namespace tessera {
namespace {

bool reads(const Graph& graph, NodeId node, ValueId value) {
  const std::vector<ValueId>& inputs = graph[node].inputs;
  return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
}

bool takes_sparse(const Candidate& candidate, ValueId value, const LayoutTable& layouts) {
  return std::any_of(candidate.inputs.begin(), candidate.inputs.end(),
                     [&](const CandidateInput& port) {
                       return port.value == value && layouts.sparse_form(port.layout).has_value();
                     });
}

std::string explain(const Graph& graph, const Offers& offers, NodeId node, ValueId value,
                    const LayoutTable& layouts) {
  for (const Candidate& candidate : offers.candidates) {
    const bool is_for_node =
        std::find(candidate.nodes.begin(), candidate.nodes.end(), node) != candidate.nodes.end();
    if (is_for_node && takes_sparse(candidate, value, layouts)) {
      return "by estimate that costs less than the sparse kernel of " + candidate.backend();
    }
  }
  return "no backend in use has a kernel for " + graph[node].op + " that takes it sparse";
}

}  // namespace

std::vector<StorageFallback> find_storage_fallbacks(const Graph& graph, const Offers& offers,
                                                    const Placement& placement,
                                                    const LayoutTable& layouts) {
  std::vector<bool> is_sparse(graph.values.size(), false);
  for (size_t index = 0; index < is_sparse.size(); ++index) {
    const Value& value = graph.values[index];
    is_sparse[index] = value.sparse && value.is_constant() && value.sparse_constant;
  }
  for (const ValueId id : graph.inputs) {
    is_sparse[static_cast<size_t>(id.index)] = graph[id].is_io_sparse;
  }
  std::vector<StorageFallback> found;
  for (const int chosen : placement.chosen) {
    const Candidate& candidate = offers.candidates[static_cast<size_t>(chosen)];
    for (const CandidateInput& port : candidate.inputs) {
      const bool is_at_hand = is_sparse[static_cast<size_t>(port.value.index)];
      if (!is_at_hand || layouts.sparse_form(port.layout)) continue;
      for (const NodeId node : candidate.nodes) {
        if (!reads(graph, node, port.value)) continue;
        const Value& value = graph[port.value];
        found.push_back({.location = location_of(graph[node]),
                         .value = "value '" + value.name + "' (" + text(*value.sparse) + ")",
                         .layout = layouts.name(port.layout),
                         .reason = explain(graph, offers, node, port.value, layouts)});
      }
    }
    for (const CandidateOutput& port : candidate.outputs) {
      is_sparse[static_cast<size_t>(port.value.index)] =
          layouts.sparse_form(port.layout).has_value();
    }
  }
  return found;
}

}  // namespace tessera
