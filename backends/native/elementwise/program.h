// A kernel that applies several elementwise functions in one pass, block by block, so that
// intermediate results stay in the first-level cache. A single function is a program of one step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "elementwise/broadcast_axes.h"
#include "elementwise/element_loops.h"
#include "tessera/backend.h"

namespace tessera::native {

// Together with kMaxOperands, it keeps the scratch memory small enough for the stack.
inline constexpr size_t kMaxRegisters = 4;

// An operand of a program.
struct ProgramOperand {
  int port = -1;                    // index of the input port; -1: `elements`
  std::vector<std::byte> elements;  // a small constant, row-major
  int64_t element_bytes = 4;
  std::vector<int64_t> dims;  // with the rank of the result; each is 1 or that of the result
  bool is_row_major = false;  // else it has the layout of the result
};

// A value that a step reads or writes.
struct ValueRef {
  enum class Kind : uint8_t { Operand, Register, Result };
  Kind kind = Kind::Operand;
  int index = 0;
};

// One function, applied to all elements of a block.
struct ProgramStep {
  LoopSet loops;
  int from_count = 1;
  ValueRef from[3] = {};
  ValueRef to = {};
  int64_t to_bytes = 4;  // of an element
  Parameters parameters = {};
  std::string location = {};  // of the node that the step belongs to, for failures
};

// The results of a function of single bytes.
using ByteTable = std::array<uint8_t, 256>;

// Only the last step writes the result.
struct Program {
  std::vector<ProgramOperand> operands;
  std::vector<ProgramStep> steps;
  plugin::Type result;
  std::shared_ptr<const ByteTable> table = {};  // to which a step may point
};

// `layout` is the layout of the result, and of the operands that are not row-major. The kernel
// computes results of all sizes of a family (tessera_built_for), those of `text` without computing
// its loop again.
std::unique_ptr<plugin::Kernel> make_program_kernel(Program text, const std::string& layout);

}  // namespace tessera::native
