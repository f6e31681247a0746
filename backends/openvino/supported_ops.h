// Which nodes OpenVINO computes as ONNX says.
#pragma once

#include <optional>
#include <string>

#include "tessera/backend.h"

namespace tessera::openvino {

// Why `node` cannot be part of a region, as a sentence without a full stop; nullopt where it can.
// The table behind it is of ops whose results were held against the reference, in float32: OpenVINO
// computes with other types than asked for elsewhere (float64 as float32, int64 as int32). `nan` is
// TESSERA_NAN_: with EXACT, also what does not keep NaN is refused; Relu and
// Clip are written in other ways then (see keep_nan() in compiler.cc).
std::optional<std::string> explain_unsupported(const plugin::Node& node, int32_t nan);

}  // namespace tessera::openvino
