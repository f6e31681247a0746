// The inner loops of the binary ops (binary.cc), by element type.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace tessera::ops {

// `count` results from two operands. A step is 1, or 0 if the operand is a single broadcast
// element.
struct BroadcastSpan {
  const void* left = nullptr;
  int64_t left_step = 1;
  const void* right = nullptr;
  int64_t right_step = 1;
  void* result = nullptr;
  int64_t count = 0;
};

using BroadcastSpanLoop = void (*)(const KernelCall& call, const BroadcastSpan& stretch);

// A loop and its element types. If the tensors have other types (16-bit floats are computed in
// float), the caller converts elements before and after.
struct Computation {
  DataType operand = DataType::Undefined;  // of both operands
  DataType result = DataType::Undefined;
  BroadcastSpanLoop loop = nullptr;
};

// How the op of `node` computes on operands of these types, which its schema must admit. Integers
// wrap around. Integer division by zero throws InvalidArgument.
Computation binary_computation(const Node& node, DataType left, DataType right);

}  // namespace tessera::ops
