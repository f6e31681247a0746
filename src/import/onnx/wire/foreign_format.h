// Recognises files of other formats by their first bytes, so that errors can name what a file is
// instead of what is wrong with it as ONNX.
#pragma once

#include <string>

#include "import/onnx/wire/byte_source.h"

namespace tessera::onnx_import {

// What `source` is and what to do: "a TensorFlow Lite model; convert it ...". "" if its first
// bytes are those of no known format. Some of the signatures could begin a legal protobuf message,
// so only bytes that are no ONNX model may be asked about.
std::string explain_foreign_format(const ByteSource& source);

}  // namespace tessera::onnx_import
