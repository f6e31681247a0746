// Which values of a graph in a file are needed.
#pragma once

#include <string_view>
#include <unordered_set>

#include "onnx.pb.h"

namespace tessera::onnx_import {

// The outputs of `graph`, and the values that its nodes read or make; also for the graphs in it,
// because these may read its values. `graph` must outlive the names.
std::unordered_set<std::string_view> used_names(const onnx::GraphProto& graph);

}  // namespace tessera::onnx_import
