// Transposes as orders in which memory is read.
#pragma once

#include <cstdint>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

bool is_transpose(const plugin::Node& node);

// Output axis i of a Transpose is input axis axis_order[i].
std::vector<int64_t> axis_order(const plugin::Node& transpose);

// The strides with which the input of a Transpose is read in the order of its output.
std::vector<int64_t> strides_through(const plugin::Node& transpose);

// float32 with these sizes and strides, which lies dense in some order.
dnnl::memory::desc describe_strided(const std::vector<int64_t>& dims, std::vector<int64_t> strides);

}  // namespace tessera::onednn
