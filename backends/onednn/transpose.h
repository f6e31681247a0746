// Transposes as strided reads.
#pragma once

#include <cstdint>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

bool is_transpose(const plugin::Node& node);

// The strides with which the input of a Transpose is read in the order of its output.
std::vector<int64_t> strides_through(const plugin::Node& transpose);

// A float32 tensor with these sizes and strides, which is dense in some order.
dnnl::memory::desc describe_strided(const std::vector<int64_t>& dims, std::vector<int64_t> strides);

}  // namespace tessera::onednn
