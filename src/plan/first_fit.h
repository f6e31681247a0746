// Quick arrangements, which the exact search of search_offsets.h starts from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing_grid.h"

namespace tessera {

// Places one buffer after the other at the lowest offset where it overlaps nothing that is live at
// the same time: the largest first, those with the largest area, and the longest-lived; gives the
// offsets of the order that needs the least, and stops at one that needs no more than `enough`
// units. Thousands of buffers get the first order alone; and tens of thousands of which most are
// live together are placed as they begin, each where it fits best, because any other order costs
// the square of their number.
std::vector<int64_t> pack_first_fit(std::span<const GridBuffer> buffers, int64_t enough);

}  // namespace tessera
