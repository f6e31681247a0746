#include "ops/onnx_types.h"

#include <map>

namespace tessera::ops {

const OnnxType* find_onnx_type(int64_t number) {
  static const std::map<int64_t, OnnxType> kOnnxTypes = {
      {1, {"float32", DataType::Float32}},
      {2, {"uint8", DataType::UInt8}},
      {3, {"int8", DataType::Int8}},
      {4, {"uint16", DataType::UInt16}},
      {5, {"int16", DataType::Int16}},
      {6, {"int32", DataType::Int32}},
      {7, {"int64", DataType::Int64}},
      {8, {"string", DataType::String}},
      {9, {"bool", DataType::Bool}},
      {10, {"float16", DataType::Float16}},
      {11, {"float64", DataType::Float64}},
      {12, {"uint32", DataType::UInt32}},
      {13, {"uint64", DataType::UInt64}},
      {14, {"complex64", DataType::Undefined}},
      {15, {"complex128", DataType::Undefined}},
      {16, {"bfloat16", DataType::BFloat16}},
      {17, {"float8e4m3fn", DataType::Undefined}},
      {18, {"float8e4m3fnuz", DataType::Undefined}},
      {19, {"float8e5m2", DataType::Undefined}},
      {20, {"float8e5m2fnuz", DataType::Undefined}},
      {21, {"uint4", DataType::Undefined}},
      {22, {"int4", DataType::Undefined}},
      {23, {"float4e2m1", DataType::Undefined}},
      {24, {"float8e8m0", DataType::Undefined}},
      {25, {"uint2", DataType::Undefined}},
      {26, {"int2", DataType::Undefined}},
      {27, {"float6e2m3", DataType::Undefined}},
      {28, {"float6e3m2", DataType::Undefined}},
  };
  const auto found = kOnnxTypes.find(number);
  return found == kOnnxTypes.end() ? nullptr : &found->second;
}

}  // namespace tessera::ops
