// Finds the groups of nodes that are worth a fused kernel.
#pragma once

#include <vector>

#include "codegen/fuse_nodes.h"

namespace tessera::codegen {

// The largest groups: each node is in one at most, and no path from a node of a group through other
// nodes or groups leads back into it. After them, for each group, the parts that serve if another
// backend takes the other nodes: the group without the first nodes after a node that cannot be
// fused; and, if it reduces, the nodes before the reductions, and the rest. If nodes cut or join
// tensors, also the groups and parts without these nodes. Linear in the number of nodes.
std::vector<plugin::FusedGroup> find_groups(const FusionGraph& graph);

}  // namespace tessera::codegen
