// One group of nodes as an expression over the points of a space.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/fusion_role.h"
#include "codegen/iteration_space.h"
#include "graph/graph.h"
#include "tessera/backend_fusion.h"

namespace tessera::codegen {

// A graph with what fusing asks about it again and again. The graph must outlive it.
struct FusionGraph {
  explicit FusionGraph(const Graph& graph);

  const Graph& graph;
  std::vector<FusionRole> roles;  // by node
  std::vector<NodeId> producers;  // by value
  std::vector<int> use_counts;    // by value
};

// The dimensions of a value whose type is known; {1} for a scalar.
std::vector<int64_t> known_dims(const Graph& graph, ValueId value);

// A space, and the level of each value that the nodes on it compute.
struct GroupSpace {
  IterationSpace space;
  std::map<ValueId, Level> levels;  // of output 0 of each node
};

// Extends `group` by a node that reads some of its values (by `roles`, a View reads one). Returns
// false if the node does not fit; `group` is then undefined. nullopt in `group` means that the node
// is the first one.
bool add_node(const FusionGraph& graph, NodeId node, std::optional<GroupSpace>& group);

struct FusedNodes {
  std::optional<plugin::FusedGroup> group;
  std::string refusal;  // if there is no group: a sentence without a final stop
};

// The group of these nodes, in ascending order. Refused if they cannot be computed in one pass, or
// need more instructions, reductions, inputs or outputs than a kernel should have. Does not check
// that they are convex.
FusedNodes fuse_nodes(const FusionGraph& graph, std::span<const NodeId> nodes);

}  // namespace tessera::codegen
