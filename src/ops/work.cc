#include "ops/work.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {
namespace {

std::vector<Type> types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<Type> types;
  for (const ValueId id : ids) types.push_back(id.is_none() ? Type{} : graph[id].type);
  return types;
}

bool are_known(const Graph& graph, const std::vector<ValueId>& ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](ValueId id) { return id.is_none() || graph[id].type.is_known_tensor(); });
}

}  // namespace

int64_t saturating_add(int64_t left, int64_t right) {
  int64_t sum = 0;
  return __builtin_add_overflow(left, right, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::optional<int64_t> node_flops(const Graph& graph, const Node& node, const Registry& registry) {
  if (!are_known(graph, node.inputs) || !are_known(graph, node.outputs)) return std::nullopt;
  return registry.of(node).flops(node, types_of(graph, node.inputs), types_of(graph, node.outputs));
}

std::optional<int64_t> node_bytes(const Graph& graph, const Node& node, const Registry& registry) {
  if (!are_known(graph, node.inputs) || !are_known(graph, node.outputs)) return std::nullopt;
  if (registry.has_trait(node, kView)) return 0;
  int64_t bytes = 0;
  for (const auto& ids : {node.inputs, node.outputs}) {
    for (const ValueId id : ids) {
      if (!id.is_none()) bytes = saturating_add(bytes, *type_bytes(graph[id].type));
    }
  }
  return bytes;
}

}  // namespace tessera::ops
