// Inputs that may begin at any element.
#pragma once

#include "tessera/backend.h"

namespace tessera::native {

// For kernels whose loads need no alignment: dense inputs without a pack may begin at any element.
// Otherwise the host copies them to an aligned address in each run, and large arrays of NumPy have
// none: malloc() returns 16 bytes behind the beginning of a page.
inline void accept_any_address(const plugin::Graph& graph, plugin::Candidate& candidate) {
  for (plugin::InputPort& port : candidate.inputs) {
    const bool is_dense =
        port.layout == TESSERA_LAYOUT_DEFAULT || port.layout == TESSERA_LAYOUT_ANY_DENSE;
    if (port.pack || !is_dense) continue;
    const int64_t bytes = plugin::element_bytes(graph.value(port.value).type().data_type);
    if (bytes > 0) port.alignment_bytes = bytes;
  }
}

}  // namespace tessera::native
