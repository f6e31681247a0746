// The numbers by which ONNX files name element types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tessera/data_type.h"

namespace tessera::onnx_import {

// nullopt if Tessera has no kernels or storage for the type (complex, 6-bit floats), or ONNX does
// not define it.
std::optional<DataType> data_type_of(int onnx_type);

// "float8e4m3fn"; "data type 99" for a number that this build's ONNX does not know.
std::string onnx_type_name(int onnx_type);

// The number of the type that onnx.proto calls `name` ("FLOAT"), in any case; nullopt if none.
std::optional<int> onnx_type_named(std::string_view name);

}  // namespace tessera::onnx_import
