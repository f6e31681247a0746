// The layouts that this backend provides, with conversions between them.
#pragma once

#include <vector>

#include "tessera/backend.h"

namespace tessera::onednn {

std::vector<plugin::Layout> all_layouts();

// Conversions between two of them that do not pass through row-major.
std::vector<plugin::Conversion> direct_conversions();

}  // namespace tessera::onednn
