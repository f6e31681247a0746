// The numbers of element types in attributes: those of ONNX's TensorProto.DataType.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/op.h"

namespace tessera::ops {

struct OnnxType {
  const char* name;
  DataType type;  // Undefined: ONNX has it, but there are no kernels for it
};

// nullptr if ONNX has no type of this number.
const OnnxType* find_onnx_type(int64_t number);

// The inverse: 0, which is ONNX's UNDEFINED, for types that ONNX does not have.
int onnx_number_of(DataType type);

// The element type whose number is attribute `name` of the node, which must have it. Throws
// InvalidModel if it is none of `allowed`, Unsupported if there are no kernels for it.
DataType element_type_of(const InferContext& context, std::string_view name, TypeSet allowed);

}  // namespace tessera::ops
