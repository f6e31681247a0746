// A packing problem for tests that bounds by the live units of single sections do not solve.
#pragma once

#include <vector>

#include "plan/packing/packing_grid.h"

namespace tessera {

// At most five units are live at the same time, but six are needed. In five, the buffers of three
// units are at the two ends. Each leaves two units at one end: for the one, buffers 2 and 3 fill
// them, for the other 2 and 4. Buffer 2 cannot be at both ends, so 3 and 4 are in the same unit
// beside it, but both are live in section 2.
inline std::vector<GridBuffer> knot() {
  return {{0, 1, 2}, {0, 2, 3}, {1, 4, 1}, {1, 3, 1}, {2, 4, 1}, {3, 6, 3}, {4, 6, 2}};
}

}  // namespace tessera
