// The operations of tessera/backend_fusion_abi.h in LLVM IR, of one lane or several.
#pragma once

#include <string>
#include <vector>

#include "ir_writer.h"
#include "processor.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// An argument of an operation: its value, all of the same number of lanes.
struct Argument {
  std::string value;
  int32_t data_type = TESSERA_FLOAT32;
};

// Throws Failure (TESSERA_UNSUPPORTED) if the operation does not exist for these types, or if the
// target cannot compute it exactly without a library.
std::string print_operation(IrWriter& writer, const Target& target,
                            const plugin::Instruction& instruction,
                            const std::vector<Argument>& arguments, int lanes);

// Throws Failure (TESSERA_UNSUPPORTED) if the instruction divides integers by anything but a
// constant other than 0 and -1.
void check_divisor(const plugin::FusedGroup& group, const plugin::Instruction& instruction);

// The bits of a constant as a scalar.
std::string print_constant(IrWriter& writer, int32_t data_type, uint64_t bits);

}  // namespace tessera::jit
