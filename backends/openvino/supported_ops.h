// The nodes that OpenVINO computes as ONNX defines them.
#pragma once

#include <optional>
#include <string>

#include "tessera/backend.h"

namespace tessera::openvino {

// The reason why `node` of `graph` cannot be part of a region, as a sentence without a full stop;
// nullopt if it can. The table of ops lists those whose results were compared with the reference in
// float32: OpenVINO computes other types in different precision (float64 as float32, int64 as
// int32). `nan` is TESSERA_NAN_...: with EXACT, ops that do not keep NaN are refused too; Relu and
// Clip are then rewritten (see keep_nan() in compiler.cc).
std::optional<std::string> explain_unsupported(const plugin::Graph& graph, const plugin::Node& node,
                                               int32_t nan);

}  // namespace tessera::openvino
