// The amount of work of a node whose types are known.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::ops {

// Floating-point operations of a node; nullopt if a type is unknown.
std::optional<int64_t> node_flops(const Graph& graph, const Node& node, const Registry& registry);

// Bytes read and written; 0 for views, nullopt if a type is unknown.
std::optional<int64_t> node_bytes(const Graph& graph, const Node& node, const Registry& registry);

// A sum that saturates instead of overflowing: sizes in hostile models may exceed 64 bits. A report
// then says "at least".
int64_t saturating_add(int64_t left, int64_t right);

}  // namespace tessera::ops
