// The layouts that this backend brings, and the ways between them.
#pragma once

#include <vector>

#include "tessera/backend.h"

namespace tessera::onednn {

std::vector<plugin::Layout> all_layouts();

// The direct ways between two of them that do not pass by row-major.
std::vector<plugin::Conversion> direct_conversions();

}  // namespace tessera::onednn
