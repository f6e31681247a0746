#include "ops/onnx_types.h"

#include <map>
#include <string>

namespace tessera::ops {

namespace {

const std::map<int64_t, OnnxType>& onnx_types() {
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
      {17, {"float8e4m3fn", DataType::Float8E4M3FN}},
      {18, {"float8e4m3fnuz", DataType::Float8E4M3FNUZ}},
      {19, {"float8e5m2", DataType::Float8E5M2}},
      {20, {"float8e5m2fnuz", DataType::Float8E5M2FNUZ}},
      {21, {"uint4", DataType::UInt4}},
      {22, {"int4", DataType::Int4}},
      {23, {"float4e2m1", DataType::Float4E2M1}},
      {24, {"float8e8m0", DataType::Float8E8M0}},
      {25, {"uint2", DataType::UInt2}},
      {26, {"int2", DataType::Int2}},
      {27, {"float6e2m3", DataType::Undefined}},
      {28, {"float6e3m2", DataType::Undefined}},
  };
  return kOnnxTypes;
}

}  // namespace

const OnnxType* find_onnx_type(int64_t number) {
  const auto found = onnx_types().find(number);
  return found == onnx_types().end() ? nullptr : &found->second;
}

int onnx_number_of(DataType type) {
  for (const auto& [number, entry] : onnx_types()) {
    if (entry.type == type && type != DataType::Undefined) return static_cast<int>(number);
  }
  return 0;
}

DataType element_type_of(const InferContext& context, std::string_view name, TypeSet allowed) {
  const int64_t number = context.node().attributes.get_int(name);
  const OnnxType* found = find_onnx_type(number);
  const std::string attribute = "attribute '" + std::string(name) + "': ";
  if (found != nullptr && found->type == DataType::Undefined) {
    context.fail_unsupported(attribute + "elements of " + found->name + " have no kernels");
  }
  if (found == nullptr || !allowed.contains(found->type)) {
    context.fail(attribute + "expected the number of " + allowed.text() + ", found " +
                 std::to_string(number) +
                 (found == nullptr ? "" : " (" + std::string(found->name) + ")"));
  }
  return found->type;
}

}  // namespace tessera::ops
