#include "graph/released_weight.h"

#include <vector>

namespace tessera {
namespace {

bool is_released(const Value& value) {
  return value.is_constant() && !value.constant.has_elements() && !value.sparse_constant;
}

}  // namespace

std::optional<ReleasedWeight> find_released_weight(const Graph& graph,
                                                   std::span<const ValueId> values) {
  for (const ValueId id : values) {
    if (is_released(graph[id])) return ReleasedWeight{graph[id].name};
  }
  return std::nullopt;
}

std::optional<ReleasedWeight> find_released_weight(const Graph& graph) {
  const std::vector<int> uses = use_counts(graph);
  for (size_t index = 0; index < uses.size(); ++index) {
    if (uses[index] > 0 && is_released(graph.values[index])) {
      return ReleasedWeight{graph.values[index].name};
    }
  }
  return std::nullopt;
}

}  // namespace tessera
