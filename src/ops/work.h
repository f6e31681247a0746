// How much work a node is, once its types are known.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::ops {

// Floating-point operations of a node; nullopt while a type is unknown.
std::optional<int64_t> node_flops(const Graph& graph, const Node& node, const Registry& registry);

// Bytes read and written; 0 for views, nullopt while a type is unknown.
std::optional<int64_t> node_bytes(const Graph& graph, const Node& node, const Registry& registry);

// Sizes of hostile models may add up to more than 64 bits hold; a report then says "at least".
int64_t saturating_add(int64_t left, int64_t right);

}  // namespace tessera::ops
