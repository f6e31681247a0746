// Expressions: what a fused group computes for one point, as a list of typed instructions in an
// order in which they can run. An expression knows no names, sizes or layouts, and no compiler.
// tessera/backend_fusion_abi.h defines each operation. expression_builder.h makes expressions,
// evaluate.h computes them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/backend_fusion_abi.h"
#include "tessera/data_type.h"

namespace tessera::codegen {

enum class Operation : int32_t {
  Operand = TESSERA_EXPRESSION_OPERAND,
  Constant = TESSERA_EXPRESSION_CONSTANT,
  Add = TESSERA_EXPRESSION_ADD,
  Subtract = TESSERA_EXPRESSION_SUBTRACT,
  Multiply = TESSERA_EXPRESSION_MULTIPLY,
  Divide = TESSERA_EXPRESSION_DIVIDE,
  Remainder = TESSERA_EXPRESSION_REMAINDER,
  Negate = TESSERA_EXPRESSION_NEGATE,
  Absolute = TESSERA_EXPRESSION_ABSOLUTE,
  FusedMultiplyAdd = TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD,
  SquareRoot = TESSERA_EXPRESSION_SQUARE_ROOT,
  Floor = TESSERA_EXPRESSION_FLOOR,
  Ceiling = TESSERA_EXPRESSION_CEILING,
  Truncate = TESSERA_EXPRESSION_TRUNCATE,
  Round = TESSERA_EXPRESSION_ROUND,
  And = TESSERA_EXPRESSION_AND,
  Or = TESSERA_EXPRESSION_OR,
  Xor = TESSERA_EXPRESSION_XOR,
  Not = TESSERA_EXPRESSION_NOT,
  ShiftLeft = TESSERA_EXPRESSION_SHIFT_LEFT,
  ShiftRight = TESSERA_EXPRESSION_SHIFT_RIGHT,
  Equal = TESSERA_EXPRESSION_EQUAL,
  Less = TESSERA_EXPRESSION_LESS,
  LessOrEqual = TESSERA_EXPRESSION_LESS_OR_EQUAL,
  Select = TESSERA_EXPRESSION_SELECT,
  Convert = TESSERA_EXPRESSION_CONVERT,
  BitCast = TESSERA_EXPRESSION_BIT_CAST,
  ReduceSum = TESSERA_EXPRESSION_REDUCE_SUM,
  ReduceProduct = TESSERA_EXPRESSION_REDUCE_PRODUCT,
  ReduceMax = TESSERA_EXPRESSION_REDUCE_MAX,
  ReduceMin = TESSERA_EXPRESSION_REDUCE_MIN,
};

// The number of an instruction in its expression.
using InstructionId = int32_t;

struct Instruction {
  Operation operation = Operation::Constant;
  DataType type = DataType::Float32;                      // of the result
  std::array<InstructionId, 3> arguments = {-1, -1, -1};  // earlier instructions; -1: none
  int32_t index = 0;                                      // of Operand: which one
  uint64_t bits = 0;  // of Constant: the element, in the lowest bytes

  auto operator<=>(const Instruction&) const = default;
};

using Instructions = std::vector<Instruction>;

// The name of an operation in the text of expressions, such as "add".
std::string_view name(Operation operation);
// 0 to 3.
int argument_count(Operation operation);
bool is_reduction(Operation operation);

// Says which rule of tessera/backend_fusion_abi.h an instruction breaks (order, number or types of
// arguments, an element type that its operation does not have), or "" if all keep the rules.
// `operand_types` are the types that Operand instructions read.
std::string explain_violation(const Instructions& instructions,
                              std::span<const DataType> operand_types);

// One line for each instruction, and one for each result:
//
//   %0 = operand 0 : float32
//   %1 = constant 0x3f800000 : float32
//   %2 = add %0 %1 : float32
//   result %2
std::string text(const Instructions& instructions, std::span<const InstructionId> results);

}  // namespace tessera::codegen
