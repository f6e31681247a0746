// The window that a pooling or a convolution slides over the spatial axes, always three of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// Depth, rows, columns. With fewer spatial axes the first ones have length 1.
using Window = std::array<plugin::WindowAxis, 3>;

// The window of a node with the attributes of Conv or of a pooling, between tensors of these sizes;
// `kernel` has the spatial axes only. Throws Failure (TESSERA_UNSUPPORTED) if there are none or
// more than three.
Window window_of(const plugin::Attributes& attributes, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& input, const std::vector<int64_t>& output);

}  // namespace tessera::native
