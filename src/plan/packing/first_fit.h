// Quick packings, from which the exact search of search_offsets.h starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing/packing_grid.h"

namespace tessera {

// Places the buffers one by one at the lowest offset at which they overlap no buffer that is live
// at the same time. Tries three orders: by size, by area (size times lifetime), and by lifetime,
// each in descending order. Returns the offsets of the order that needs the least memory, and stops
// early if an order needs at most `enough` units. Above some thousands of buffers, only the first
// order is tried. If tens of thousands of buffers are mostly live at the same time, these orders
// would take quadratic time; then the buffers are placed in the order in which their lifetimes
// begin, each by best fit.
std::vector<int64_t> pack_first_fit(std::span<const GridBuffer> buffers, int64_t enough);

}  // namespace tessera
