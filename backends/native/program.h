// A kernel that computes a few functions of elements one after the other, in one pass: what they
// give each other stays in the nearest cache. A single function is the shortest program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "element_loops.h"
#include "strides.h"
#include "tessera/backend.h"

namespace tessera::native {

// The most a program may have, so that its scratch memory is small and on the stack.
inline constexpr size_t kMostOperands = 8;
inline constexpr size_t kMostRegisters = 4;

// An operand of a program.
struct ProgramOperand {
  int port = -1;                    // index of the input port; -1: `elements`
  std::vector<std::byte> elements;  // a small constant, row-major
  int64_t element_bytes = 4;
  std::vector<int64_t> dims;  // as many as the result has
  bool is_row_major = false;  // else it lies as the result does
};

// Where a step reads or writes.
struct Place {
  enum class Kind : uint8_t { Operand, Register, Result };
  Kind kind = Kind::Operand;
  int index = 0;
};

// One function, applied to all elements of a block.
struct ProgramStep {
  LoopSet loops;
  int from_count = 1;
  Place from[3] = {};
  Place to = {};
  int64_t to_bytes = 4;  // of an element
  Parameters parameters = {};
};

// The last step writes the result, and no other does.
struct ProgramText {
  std::vector<ProgramOperand> operands;
  std::vector<ProgramStep> steps;
  plugin::Type result;
};

// `layout` is that of the result, and of the operands that are not row-major.
std::unique_ptr<plugin::Kernel> build_program(ProgramText text, const std::string& layout);

}  // namespace tessera::native
