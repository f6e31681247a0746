// Makes expressions instruction by instruction.
#pragma once

#include <map>
#include <string_view>

#include "codegen/expression/expression.h"

namespace tessera::codegen {

// Equal instructions are added once. Nothing is simplified beyond what is exact for all values,
// NaN included. Arguments must have the types that the operation wants
// (tessera/backend_fusion_abi.h); anything else is a bug of the caller, which TESSERA_CHECK finds.
class ExpressionBuilder {
 public:
  using Id = InstructionId;

  const Instructions& instructions() const { return instructions_; }
  DataType type(Id id) const { return instructions_[static_cast<size_t>(id)].type; }

  Id operand(int32_t index, DataType type);
  // A number of any type but bool: floats are rounded to nearest, integers must be exact.
  Id number(DataType type, double value);
  Id constant_bits(DataType type, uint64_t bits);
  Id boolean(bool value) { return constant_bits(DataType::Bool, value ? 1 : 0); }

  Id add(Id left, Id right) { return binary(Operation::Add, left, right); }
  Id subtract(Id left, Id right) { return binary(Operation::Subtract, left, right); }
  Id multiply(Id left, Id right) { return binary(Operation::Multiply, left, right); }
  Id divide(Id left, Id right) { return binary(Operation::Divide, left, right); }
  Id remainder(Id left, Id right) { return binary(Operation::Remainder, left, right); }
  // first * second + third, rounded once.
  Id fused_multiply_add(Id first, Id second, Id third);
  Id negate(Id x) { return unary(Operation::Negate, x); }
  Id absolute(Id x) { return unary(Operation::Absolute, x); }
  Id square_root(Id x) { return unary(Operation::SquareRoot, x); }
  Id floor(Id x) { return unary(Operation::Floor, x); }
  Id ceiling(Id x) { return unary(Operation::Ceiling, x); }
  Id truncate(Id x) { return unary(Operation::Truncate, x); }
  Id round(Id x) { return unary(Operation::Round, x); }

  Id bit_and(Id left, Id right) { return binary(Operation::And, left, right); }
  Id bit_or(Id left, Id right) { return binary(Operation::Or, left, right); }
  Id bit_xor(Id left, Id right) { return binary(Operation::Xor, left, right); }
  Id bit_not(Id x) { return unary(Operation::Not, x); }
  Id shift_left(Id x, Id count) { return binary(Operation::ShiftLeft, x, count); }
  Id shift_right(Id x, Id count) { return binary(Operation::ShiftRight, x, count); }

  Id equal(Id left, Id right) { return binary(Operation::Equal, left, right); }
  Id less(Id left, Id right) { return binary(Operation::Less, left, right); }
  Id less_or_equal(Id left, Id right) { return binary(Operation::LessOrEqual, left, right); }
  Id select(Id condition, Id yes, Id no);

  // `x` itself if it has the type.
  Id convert(Id x, DataType to);
  Id bit_cast(Id x, DataType to);
  Id reduce(Operation reduction, Id x) { return unary(reduction, x); }

 private:
  Id unary(Operation operation, Id x);
  Id binary(Operation operation, Id left, Id right);
  Id append(const Instruction& instruction);

  Instructions instructions_;
  std::map<Instruction, Id> ids_;
};

// An expression in the form in which equal computations are equal: without instructions that no
// result needs, in an order that depends only on what is computed, with the arguments of
// commutative operations and the operands in an order that does not depend on names.
struct CanonicalExpression {
  Instructions instructions;
  std::vector<InstructionId> results;  // in the order of `result_order`
  std::vector<int32_t> operand_order;  // the new operand i is the old operand operand_order[i]
  std::vector<int32_t> result_order;   // the new result i is the old result result_order[i]
};

// `operand_traits` tells apart operands that are read in different ways (a text for each, equal for
// operands that are interchangeable); `result_traits` does so for results.
CanonicalExpression canonical(const Instructions& instructions,
                              std::span<const InstructionId> results,
                              std::span<const std::string> operand_traits,
                              std::span<const std::string> result_traits);

}  // namespace tessera::codegen
