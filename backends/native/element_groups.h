// Finds which elementwise nodes can be computed in one pass.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// Groups of two nodes or more (ascending ids), of which `is_element[node]` holds for each. All have
// results of the same dimensions, only the last one's is read outside, and the larger ones come
// first. A group and what is left of it without its first nodes are both there: another backend may
// take those. `fits` tells whether a group is small enough for one pass.
std::vector<std::vector<int32_t>> find_element_groups(
    const plugin::Graph& graph, const std::vector<bool>& is_element,
    const std::function<bool(const std::vector<int32_t>& nodes)>& fits);

}  // namespace tessera::native
