// The groups of nodes that are offered: few, because each takes long to compile and to measure.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/backend.h"

namespace tessera::openvino {

using Region = std::vector<int32_t>;  // nodes, ascending; convex

// Regions of `graph` whose nodes are all supported (`is_supported`, by node):
//   - the whole graph, if all of its nodes are supported;
//   - else the connected parts that no path through an unsupported node leaves and enters again,
//     the ones with the most work first, at most kMaxParts;
//   - of each part that can be cut at a single value, the halves, quarters and eighths by work, so
//     that no node is in more than four regions of one part.
// Parts other than the whole graph have at least kMinNodes nodes.
std::vector<Region> find_regions(const plugin::Graph& graph, const std::vector<bool>& is_supported);

constexpr size_t kMinNodes = 4;
constexpr size_t kMaxParts = 8;

}  // namespace tessera::openvino
