// Groups of nodes that are worth a fused kernel, and one group as an expression over the points of
// a space.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/groups/group_space.h"
#include "tessera/backend_fusion.h"

namespace tessera::codegen {

struct FusedNodes {
  std::optional<plugin::FusedGroup> group;
  std::string refusal;  // if there is no group: a sentence without a final stop
};

// The group of these nodes, in ascending order. Refused if they cannot be computed in one pass, or
// need more instructions, reductions, inputs or outputs than a kernel should have. Does not check
// that they are convex.
FusedNodes fuse_nodes(const FusionGraph& graph, std::span<const NodeId> nodes);

// The groups of nodes that are worth a fused kernel (find_groups.cc). The largest groups: each node
// is in one at most, and no path from a node of a group through other nodes or groups leads back
// into it. After them, for each group, the parts that serve if another backend takes the other
// nodes: the group without the first nodes after a node that cannot be fused; and, if it reduces,
// the nodes before the reductions, and the rest. If nodes cut or join tensors, also the groups and
// parts without these nodes. Linear in the number of nodes.
std::vector<plugin::FusedGroup> find_groups(const FusionGraph& graph);

}  // namespace tessera::codegen
