// The inner loops of the binary ops (binary.cc): what each computes on which element types.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace tessera::ops {

// `count` results from two operands. A step is 1, or 0 where one element serves all.
struct Stretch {
  const void* left = nullptr;
  int64_t left_step = 1;
  const void* right = nullptr;
  int64_t right_step = 1;
  void* result = nullptr;
  int64_t count = 0;
};

using StretchLoop = void (*)(const KernelCall& call, const Stretch& stretch);

// A loop and the types it works on. Where they are not those of the tensors (the 16-bit floats
// compute in float), elements are to be converted before and after.
struct Computation {
  DataType operand = DataType::Undefined;  // of both operands
  DataType result = DataType::Undefined;
  StretchLoop loop = nullptr;
};

// How the op of `node` computes on operands of these types, which its schema admits.
// Integers wrap around. Integer division by zero fails with InvalidArgument.
Computation binary_computation(const Node& node, DataType left, DataType right);

}  // namespace tessera::ops
