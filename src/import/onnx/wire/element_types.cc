#include "import/onnx/wire/element_types.h"

#include <algorithm>

#include "onnx.pb.h"

namespace tessera::onnx_import {
namespace {

struct ElementName {
  int onnx_type;
  const char* name;
};

// ONNX's types without a DataType.
constexpr ElementName kUnsupportedTypes[] = {
    {onnx::TensorProto::COMPLEX64, "complex64"},
    {onnx::TensorProto::COMPLEX128, "complex128"},
    {onnx::TensorProto::FLOAT8E4M3FN, "float8e4m3fn"},
    {onnx::TensorProto::FLOAT8E4M3FNUZ, "float8e4m3fnuz"},
    {onnx::TensorProto::FLOAT8E5M2, "float8e5m2"},
    {onnx::TensorProto::FLOAT8E5M2FNUZ, "float8e5m2fnuz"},
    {onnx::TensorProto::UINT4, "uint4"},
    {onnx::TensorProto::INT4, "int4"},
    {onnx::TensorProto::FLOAT4E2M1, "float4e2m1"},
    {onnx::TensorProto::FLOAT8E8M0, "float8e8m0"},
    {onnx::TensorProto::UINT2, "uint2"},
    {onnx::TensorProto::INT2, "int2"},
    {onnx::TensorProto::FLOAT6E2M3, "float6e2m3"},
    {onnx::TensorProto::FLOAT6E3M2, "float6e3m2"},
};

}  // namespace

std::optional<DataType> data_type_of(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT:
      return DataType::Float32;
    case onnx::TensorProto::UINT8:
      return DataType::UInt8;
    case onnx::TensorProto::INT8:
      return DataType::Int8;
    case onnx::TensorProto::UINT16:
      return DataType::UInt16;
    case onnx::TensorProto::INT16:
      return DataType::Int16;
    case onnx::TensorProto::INT32:
      return DataType::Int32;
    case onnx::TensorProto::INT64:
      return DataType::Int64;
    case onnx::TensorProto::STRING:
      return DataType::String;
    case onnx::TensorProto::BOOL:
      return DataType::Bool;
    case onnx::TensorProto::FLOAT16:
      return DataType::Float16;
    case onnx::TensorProto::DOUBLE:
      return DataType::Float64;
    case onnx::TensorProto::UINT32:
      return DataType::UInt32;
    case onnx::TensorProto::UINT64:
      return DataType::UInt64;
    case onnx::TensorProto::BFLOAT16:
      return DataType::BFloat16;
    default:
      return std::nullopt;
  }
}

std::string onnx_type_name(int onnx_type) {
  if (const auto type = data_type_of(onnx_type)) return std::string(name(*type));
  for (const ElementName& candidate : kUnsupportedTypes) {
    if (candidate.onnx_type == onnx_type) return candidate.name;
  }
  return "data type " + std::to_string(onnx_type);
}

std::optional<int> onnx_type_named(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
  return onnx::TensorProto::DataType_Parse(upper, &type) ? std::optional<int>(type) : std::nullopt;
}

}  // namespace tessera::onnx_import
