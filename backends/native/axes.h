// The axes that a node of the Reduce family names.
#pragma once

#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// Which of the `rank` axes go, whether the node names them by an attribute or by an input; none
// where none does, as noop_with_empty_axes may say. Throws Failure (TESSERA_UNSUPPORTED) where they
// are not known before running.
std::vector<bool> reduced_axes(const plugin::Node& node, size_t rank);

}  // namespace tessera::native
