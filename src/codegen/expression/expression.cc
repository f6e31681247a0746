#include "codegen/expression/expression.h"

#include <cstdio>
#include <map>

namespace tessera::codegen {
namespace {

// Sets of element types.
enum TypeGroup : uint8_t {
  kNoTypes = 0,
  kBools = 1,
  kIntegers = 2,
  kFloats = 4,         // float32, float64
  kHalfFloats = 8,     // float16, bfloat16
  kWideIntegers = 16,  // int32, int64: those that can be reduced; part of kIntegers, too
};
constexpr uint8_t kAnyType = kBools | kIntegers | kFloats | kHalfFloats;

struct OperationRow {
  std::string_view name;
  int arguments = 0;
  uint8_t types = kNoTypes;  // of the first argument that is not a condition
};

// By number of the operation.
constexpr OperationRow kExpressionRows[] = {
    {"operand", 0, kAnyType},
    {"constant", 0, kAnyType},
    {"add", 2, kIntegers | kFloats},
    {"subtract", 2, kIntegers | kFloats},
    {"multiply", 2, kIntegers | kFloats},
    {"divide", 2, kIntegers | kFloats},
    {"remainder", 2, kIntegers},
    {"negate", 1, kIntegers | kFloats},
    {"absolute", 1, kIntegers | kFloats},
    {"fused_multiply_add", 3, kFloats},
    {"square_root", 1, kFloats},
    {"floor", 1, kFloats},
    {"ceiling", 1, kFloats},
    {"truncate", 1, kFloats},
    {"round", 1, kFloats},
    {"and", 2, kBools | kIntegers},
    {"or", 2, kBools | kIntegers},
    {"xor", 2, kBools | kIntegers},
    {"not", 1, kBools | kIntegers},
    {"shift_left", 2, kIntegers},
    {"shift_right", 2, kIntegers},
    {"equal", 2, kBools | kIntegers | kFloats},
    {"less", 2, kIntegers | kFloats},
    {"less_or_equal", 2, kIntegers | kFloats},
    {"select", 3, kAnyType},
    {"convert", 1, kAnyType},
    {"bit_cast", 1, kIntegers | kFloats | kHalfFloats},
    {"reduce_sum", 1, kFloats | kWideIntegers},
    {"reduce_product", 1, kFloats | kWideIntegers},
    {"reduce_max", 1, kFloats | kWideIntegers},
    {"reduce_min", 1, kFloats | kWideIntegers},
};

const OperationRow& row_of(Operation operation) {
  return kExpressionRows[static_cast<size_t>(operation)];
}

bool is_known(Operation operation) {
  return static_cast<int32_t>(operation) >= 0 &&
         static_cast<size_t>(operation) < std::size(kExpressionRows);
}

uint8_t type_group(DataType type) {
  switch (type) {
    case DataType::Bool:
      return kBools;
    case DataType::Float16:
    case DataType::BFloat16:
      return kHalfFloats;
    case DataType::Float32:
    case DataType::Float64:
      return kFloats;
    case DataType::Int32:
    case DataType::Int64:
      return kIntegers | kWideIntegers;
    case DataType::Int8:
    case DataType::Int16:
    case DataType::UInt8:
    case DataType::UInt16:
    case DataType::UInt32:
    case DataType::UInt64:
      return kIntegers;
    default:
      return kNoTypes;
  }
}

bool is_in(DataType type, uint8_t groups) { return (type_group(type) & groups) != 0; }

bool is_conversion(DataType from, DataType to) {
  if (from == to || is_in(to, kBools)) return false;
  if (is_in(from, kHalfFloats)) return to == DataType::Float32;
  if (is_in(to, kHalfFloats)) return from == DataType::Float32;
  if (is_in(from, kFloats) && is_in(to, kIntegers)) {
    return to == DataType::Int32 || to == DataType::Int64 || to == DataType::UInt64;
  }
  return is_in(from, kAnyType) && is_in(to, kAnyType);
}

// A divisor of integers: a constant that is neither 0 nor, if the type is signed, -1.
bool is_safe_divisor(const Instruction& divisor) {
  if (divisor.operation != Operation::Constant || divisor.bits == 0) return false;
  const int bits = 8 * static_cast<int>(element_bytes(divisor.type));
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const bool is_signed = divisor.type == DataType::Int8 || divisor.type == DataType::Int16 ||
                         divisor.type == DataType::Int32 || divisor.type == DataType::Int64;
  return !is_signed || divisor.bits != ones;
}

const Instruction& argument_of(const Instructions& instructions, const Instruction& instruction,
                               int index) {
  return instructions[static_cast<size_t>(instruction.arguments[static_cast<size_t>(index)])];
}

// explain_types() of an instruction whose arguments have one type.
std::string explain_computation(const Instructions& instructions, const Instruction& instruction) {
  const OperationRow& row = row_of(instruction.operation);
  const auto argument = [&](int index) -> const Instruction& {
    return argument_of(instructions, instruction, index);
  };
  if (!is_in(argument(0).type, row.types)) return "does not compute this type";
  for (int index = 1; index < row.arguments; ++index) {
    if (argument(index).type != argument(0).type) return "has arguments of different types";
  }
  const bool is_comparison =
      instruction.operation >= Operation::Equal && instruction.operation <= Operation::LessOrEqual;
  if (instruction.type != (is_comparison ? DataType::Bool : argument(0).type))
    return "has a wrong type";
  const bool is_division =
      instruction.operation == Operation::Divide || instruction.operation == Operation::Remainder;
  if (is_division && is_in(instruction.type, kIntegers) && !is_safe_divisor(argument(1))) {
    return "divides integers by a value that may be 0 or -1";
  }
  return "";
}

// The reason why the types of one instruction, whose arguments exist, are illegal; "" if legal.
std::string explain_types(const Instructions& instructions, const Instruction& instruction,
                          std::span<const DataType> operand_types) {
  const OperationRow& row = row_of(instruction.operation);
  const auto argument = [&](int index) -> const Instruction& {
    return argument_of(instructions, instruction, index);
  };
  const auto has_result = [&](DataType type) { return instruction.type == type; };
  switch (instruction.operation) {
    case Operation::Operand: {
      const auto index = static_cast<size_t>(instruction.index);
      if (instruction.index < 0 || index >= operand_types.size()) return "reads no operand";
      return has_result(operand_types[index]) ? "" : "has another type than its operand";
    }
    case Operation::Constant: {
      if (!is_in(instruction.type, kAnyType)) return "has a type without elements";
      const int64_t bytes = element_bytes(instruction.type);
      const bool fits = bytes == 8 || instruction.bits >> (8 * bytes) == 0;
      return fits ? "" : "has bits beyond its type";
    }
    case Operation::Select:
      if (argument(0).type != DataType::Bool) return "has a condition that is no bool";
      return has_result(argument(1).type) && has_result(argument(2).type)
                 ? ""
                 : "chooses between different types";
    case Operation::Convert:
      return is_conversion(argument(0).type, instruction.type) ? "" : "is no conversion";
    case Operation::BitCast:
      return is_in(argument(0).type, row.types) && is_in(instruction.type, row.types) &&
                     element_bytes(argument(0).type) == element_bytes(instruction.type)
                 ? ""
                 : "changes the size";
    default:
      break;
  }
  return explain_computation(instructions, instruction);
}

std::string explain_instruction(const Instructions& instructions, size_t number,
                                std::span<const DataType> operand_types) {
  const Instruction& instruction = instructions[number];
  if (!is_known(instruction.operation)) return "has an unknown operation";
  const int count = row_of(instruction.operation).arguments;
  for (int index = 0; index < 3; ++index) {
    const InstructionId argument = instruction.arguments[static_cast<size_t>(index)];
    if (index >= count) {
      if (argument != -1) return "has too many arguments";
    } else if (argument < 0 || static_cast<size_t>(argument) >= number) {
      return "has an argument that is not an earlier instruction";
    }
  }
  return explain_types(instructions, instruction, operand_types);
}

}  // namespace

std::string_view name(Operation operation) { return row_of(operation).name; }

int argument_count(Operation operation) { return row_of(operation).arguments; }

bool is_reduction(Operation operation) {
  return operation >= Operation::ReduceSum && operation <= Operation::ReduceMin;
}

std::string explain_violation(const Instructions& instructions,
                              std::span<const DataType> operand_types) {
  for (size_t number = 0; number < instructions.size(); ++number) {
    const std::string reason = explain_instruction(instructions, number, operand_types);
    if (!reason.empty()) return "instruction %" + std::to_string(number) + " " + reason;
  }
  return "";
}

std::string text(const Instructions& instructions, std::span<const InstructionId> results) {
  std::string lines;
  for (size_t number = 0; number < instructions.size(); ++number) {
    const Instruction& instruction = instructions[number];
    lines += "%" + std::to_string(number) + " = " + std::string(name(instruction.operation));
    if (instruction.operation == Operation::Operand) {
      lines += " " + std::to_string(instruction.index);
    } else if (instruction.operation == Operation::Constant) {
      char digits[20];
      std::snprintf(digits, sizeof digits, " 0x%llx",
                    static_cast<unsigned long long>(instruction.bits));
      lines += digits;
    }
    for (int index = 0; index < argument_count(instruction.operation); ++index) {
      lines += " %" + std::to_string(instruction.arguments[static_cast<size_t>(index)]);
    }
    lines += " : " + std::string(tessera::name(instruction.type)) + "\n";
  }
  for (const InstructionId result : results) {
    lines += "result %" + std::to_string(result) + "\n";
  }
  return lines;
}

}  // namespace tessera::codegen
