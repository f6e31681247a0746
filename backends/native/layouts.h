// The layouts with channels that all libraries share, with the ways between them and row-major, so
// that the kernels here that use them need no other library.
#pragma once

#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

std::vector<plugin::Layout> shared_layouts();

// The direct ways between two of them that do not pass by row-major.
std::vector<plugin::Conversion> direct_conversions();

}  // namespace tessera::native
