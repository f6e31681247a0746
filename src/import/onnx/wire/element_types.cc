#include "import/onnx/wire/element_types.h"

#include <algorithm>

#include "onnx.pb.h"
#include "ops/onnx_types.h"

namespace tessera::onnx_import {
std::optional<DataType> data_type_of(int onnx_type) {
  const ops::OnnxType* const found = ops::find_onnx_type(onnx_type);
  if (found == nullptr || found->type == DataType::Undefined) return std::nullopt;
  return found->type;
}

std::string onnx_type_name(int onnx_type) {
  const ops::OnnxType* const found = ops::find_onnx_type(onnx_type);
  return found == nullptr ? "data type " + std::to_string(onnx_type) : found->name;
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
