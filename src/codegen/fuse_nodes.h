// One group of nodes as an expression over the points of a space.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "codegen/group_space.h"
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

}  // namespace tessera::codegen
