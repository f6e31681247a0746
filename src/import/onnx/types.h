// ONNX's type descriptions as Tessera's.
#pragma once

#include <optional>
#include <string>

#include "graph/type.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// More dimensions than any kernel or library has use for; hostile files have millions.
inline constexpr int kMostDims = 64;

// nullopt for a type that Tessera has no kernels or storage for (4-bit, 8-bit floats, complex), or
// that ONNX does not have.
std::optional<DataType> data_type_of(int onnx_type);

// "float8e4m3fn"; "data type 99" for a number that this build's ONNX does not know.
std::string onnx_type_name(int onnx_type);

// The type that the file declares at `where` ("input 'x'"). A dimension without a value becomes the
// symbol "<value>[<axis>]", `value` being how symbols should call it; a dim_param becomes a symbol
// of its own name after `symbol_prefix`. Throws Unsupported for element types without support,
// sparse and opaque types, and more than kMostDims dimensions.
Type type_of(const onnx::TypeProto& proto, const std::string& where, const std::string& value,
             const std::string& symbol_prefix);

}  // namespace tessera::onnx_import
