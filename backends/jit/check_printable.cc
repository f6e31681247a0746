#include "print_llvm.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir_writer.h"
#include "print_operation.h"
#include "print_reduction.h"

namespace tessera::jit {

using plugin::FusedAccess;
using plugin::FusedGroup;
using plugin::Instruction;

namespace {

// The arguments of an instruction, as if each was the number 0.
std::vector<Argument> arguments_of(const FusedGroup& group, const Instruction& instruction) {
  std::vector<Argument> arguments;
  for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
    const auto argument = static_cast<size_t>(instruction.arguments[index]);
    arguments.push_back({"0", group.instructions[argument].data_type});
  }
  return arguments;
}

}  // namespace

void check_printable(const FusedGroup& group, const KernelShape& shape, const Target& target) {
  check_size(group);
  for (const FusedAccess& access : group.operands) ir_type(access.data_type);
  for (const FusedAccess& access : group.results) ir_type(access.data_type);
  IrWriter unused;
  // Whether an operation can be printed depends on its types only.
  std::set<std::pair<int32_t, std::vector<int32_t>>> seen;
  for (size_t id = 0; id < group.instructions.size(); ++id) {
    const Instruction& instruction = group.instructions[id];
    ir_type(instruction.data_type);
    if (plugin::argument_count(instruction.operation) == 0) continue;
    check_divisor(group, instruction);
    const std::vector<Argument> arguments = arguments_of(group, instruction);
    std::vector<int32_t> types = {instruction.data_type};
    for (const Argument& argument : arguments) types.push_back(argument.data_type);
    if (!seen.emplace(instruction.operation, std::move(types)).second) continue;
    if (!plugin::is_reduction(instruction)) {
      print_operation(unused, target, instruction, arguments, 1);
    } else if (shape.has_reduced()) {
      new_accumulator(unused, group, id, 1, 1);
    }
  }
}

}  // namespace tessera::jit
