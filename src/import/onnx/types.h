// Converts ONNX's type descriptions to Tessera's.
#pragma once

#include <optional>
#include <string>

#include "graph/dim_names.h"
#include "graph/type.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// More than any kernel or library supports; hostile files declare millions of dimensions.
inline constexpr int kMaxDims = 64;
// More than models nest sequences, optionals and maps.
inline constexpr int kMaxNestedTypes = 16;

// nullopt if Tessera has no kernels or storage for the type (4-bit, 8-bit floats, complex), or ONNX
// does not define it.
std::optional<DataType> data_type_of(int onnx_type);

// "float8e4m3fn"; "data type 99" for a number that this build's ONNX does not know.
std::string onnx_type_name(int onnx_type);

// The type that the file declares at `where` ("input 'x'"). A dimension without a value becomes a
// symbol that equals no other: the next one of its dim_param in `names` if that is a name, else
// "<value>[<axis>]", where `value` is the value's name in symbols. Throws Unsupported for
// unsupported element types, sparse and opaque types, and more than kMaxDims dimensions.
Type type_of(const onnx::TypeProto& proto, const std::string& where, const std::string& value,
             DimNames& names);

}  // namespace tessera::onnx_import
