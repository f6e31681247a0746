#include "codegen/expression/expression_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/errors/check.h"
#include "base/tensor/float16.h"

namespace tessera::codegen {
namespace {

uint64_t low_bits(uint64_t bits, DataType type) {
  const int64_t bytes = element_bytes(type);
  return bytes == 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

bool is_commutative(Operation operation) {
  return operation == Operation::Add || operation == Operation::Multiply ||
         operation == Operation::And || operation == Operation::Or || operation == Operation::Xor ||
         operation == Operation::Equal;
}

}  // namespace

InstructionId ExpressionBuilder::append(const Instruction& instruction) {
  const auto [found, is_new] =
      ids_.try_emplace(instruction, static_cast<InstructionId>(instructions_.size()));
  if (is_new) instructions_.push_back(instruction);
  return found->second;
}

InstructionId ExpressionBuilder::operand(int32_t index, DataType type) {
  return append({.operation = Operation::Operand, .type = type, .index = index});
}

InstructionId ExpressionBuilder::constant_bits(DataType type, uint64_t bits) {
  TESSERA_CHECK(low_bits(bits, type) == bits, "a constant has no bits beyond its type");
  return append({.operation = Operation::Constant, .type = type, .bits = bits});
}

InstructionId ExpressionBuilder::number(DataType type, double value) {
  switch (type) {
    case DataType::Float64:
      return constant_bits(type, std::bit_cast<uint64_t>(value));
    case DataType::Float32:
      return constant_bits(type, std::bit_cast<uint32_t>(static_cast<float>(value)));
    case DataType::Float16:
      return constant_bits(type, Float16(value).bits);
    case DataType::BFloat16:
      return constant_bits(type, BFloat16(value).bits);
    case DataType::UInt64:
      return constant_bits(type, static_cast<uint64_t>(value));
    default:
      TESSERA_CHECK(is_integer(type), "a number is a float or an integer");
      return constant_bits(type,
                           low_bits(static_cast<uint64_t>(static_cast<int64_t>(value)), type));
  }
}

InstructionId ExpressionBuilder::unary(Operation operation, Id x) {
  return append({.operation = operation, .type = type(x), .arguments = {x, -1, -1}});
}

InstructionId ExpressionBuilder::binary(Operation operation, Id left, Id right) {
  TESSERA_CHECK(type(left) == type(right), "arguments have one type");
  const bool is_comparison = operation >= Operation::Equal && operation <= Operation::LessOrEqual;
  return append({.operation = operation,
                 .type = is_comparison ? DataType::Bool : type(left),
                 .arguments = {left, right, -1}});
}

InstructionId ExpressionBuilder::fused_multiply_add(Id first, Id second, Id third) {
  TESSERA_CHECK(type(first) == type(second) && type(first) == type(third),
                "arguments have one type");
  return append({.operation = Operation::FusedMultiplyAdd,
                 .type = type(first),
                 .arguments = {first, second, third}});
}

InstructionId ExpressionBuilder::select(Id condition, Id yes, Id no) {
  TESSERA_CHECK(type(yes) == type(no), "both choices have one type");
  if (yes == no) return yes;
  return append(
      {.operation = Operation::Select, .type = type(yes), .arguments = {condition, yes, no}});
}

InstructionId ExpressionBuilder::convert(Id x, DataType to) {
  if (type(x) == to) return x;
  return append({.operation = Operation::Convert, .type = to, .arguments = {x, -1, -1}});
}

InstructionId ExpressionBuilder::bit_cast(Id x, DataType to) {
  if (type(x) == to) return x;
  return append({.operation = Operation::BitCast, .type = to, .arguments = {x, -1, -1}});
}

// --- Canonical form ------------------------------------------------------------------------------

namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
  // The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
  // Generators, 2014).
  hash += value + 0x9e3779b97f4a7c15U;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

uint64_t mixed_text(const std::string& text) {
  uint64_t hash = text.size();
  for (const char character : text) hash = mixed(hash, static_cast<unsigned char>(character));
  return hash;
}

// Numbers that depend on what each instruction computes, not on its position or on the numbers of
// operands. Instructions with equal numbers may still differ (a collision, or interchangeable
// operands); this makes two equal expressions look different, but never two different ones equal,
// because the text of the result is what counts.
std::vector<uint64_t> structural_hashes(const Instructions& instructions,
                                        std::span<const std::string> operand_traits) {
  std::vector<uint64_t> hashes;
  hashes.reserve(instructions.size());
  for (const Instruction& instruction : instructions) {
    uint64_t hash = mixed(static_cast<uint64_t>(instruction.operation),
                          static_cast<uint64_t>(instruction.type));
    hash = mixed(hash, instruction.bits);
    if (instruction.operation == Operation::Operand) {
      hash = mixed(hash, mixed_text(operand_traits[static_cast<size_t>(instruction.index)]));
    }
    std::array<uint64_t, 3> arguments = {};
    const int count = argument_count(instruction.operation);
    for (int index = 0; index < count; ++index) {
      const auto at = static_cast<size_t>(index);
      arguments[at] = hashes[static_cast<size_t>(instruction.arguments[at])];
    }
    if (is_commutative(instruction.operation) && arguments[0] > arguments[1]) {
      std::swap(arguments[0], arguments[1]);
    }
    for (int index = 0; index < count; ++index) {
      hash = mixed(hash, arguments[static_cast<size_t>(index)]);
    }
    hashes.push_back(hash);
  }
  return hashes;
}

// Appends instructions in the order of a depth-first walk from the results.
class CanonicalOrder {
 public:
  CanonicalOrder(const Instructions& instructions, std::vector<uint64_t> hashes)
      : instructions_(instructions),
        hashes_(std::move(hashes)),
        numbers_(instructions.size(), -1) {}

  // Without recursion: chains of thousands of instructions are legal.
  InstructionId add(InstructionId root) {
    std::vector<InstructionId> pending = {root};
    while (!pending.empty()) {
      const InstructionId id = pending.back();
      if (numbers_[static_cast<size_t>(id)] >= 0) {
        pending.pop_back();
        continue;
      }
      const Instruction instruction = ordered(instructions_[static_cast<size_t>(id)]);
      bool is_ready = true;
      for (int index = argument_count(instruction.operation); index-- > 0;) {
        const InstructionId argument = instruction.arguments[static_cast<size_t>(index)];
        if (numbers_[static_cast<size_t>(argument)] >= 0) continue;
        pending.push_back(argument);
        is_ready = false;
      }
      if (!is_ready) continue;
      append(id, instruction);
      pending.pop_back();
    }
    return numbers_[static_cast<size_t>(root)];
  }

  CanonicalExpression take() { return std::move(result_); }

 private:
  // The instruction with commutative arguments in the order of their hashes.
  Instruction ordered(Instruction instruction) const {
    if (!is_commutative(instruction.operation)) return instruction;
    const auto hash = [&](size_t at) {
      return hashes_[static_cast<size_t>(instruction.arguments[at])];
    };
    if (hash(0) > hash(1)) std::swap(instruction.arguments[0], instruction.arguments[1]);
    return instruction;
  }

  void append(InstructionId id, Instruction instruction) {
    for (int index = 0; index < argument_count(instruction.operation); ++index) {
      InstructionId& argument = instruction.arguments[static_cast<size_t>(index)];
      argument = numbers_[static_cast<size_t>(argument)];
    }
    if (instruction.operation == Operation::Operand) {
      const auto found =
          std::find(result_.operand_order.begin(), result_.operand_order.end(), instruction.index);
      const auto position = found - result_.operand_order.begin();
      if (found == result_.operand_order.end()) result_.operand_order.push_back(instruction.index);
      instruction.index = static_cast<int32_t>(position);
    }
    numbers_[static_cast<size_t>(id)] = static_cast<InstructionId>(result_.instructions.size());
    result_.instructions.push_back(instruction);
  }

  const Instructions& instructions_;
  std::vector<uint64_t> hashes_;
  std::vector<InstructionId> numbers_;  // by old number; -1: not yet added
  CanonicalExpression result_;
};

}  // namespace

CanonicalExpression canonical(const Instructions& instructions,
                              std::span<const InstructionId> results,
                              std::span<const std::string> operand_traits,
                              std::span<const std::string> result_traits) {
  std::vector<uint64_t> hashes = structural_hashes(instructions, operand_traits);
  std::vector<std::pair<uint64_t, int32_t>> order;
  for (size_t index = 0; index < results.size(); ++index) {
    const uint64_t hash =
        mixed(hashes[static_cast<size_t>(results[index])], mixed_text(result_traits[index]));
    order.emplace_back(hash, static_cast<int32_t>(index));
  }
  std::sort(order.begin(), order.end());
  CanonicalOrder walk(instructions, std::move(hashes));
  std::vector<InstructionId> numbers;
  for (const auto& [hash, index] : order) {
    numbers.push_back(walk.add(results[static_cast<size_t>(index)]));
  }
  CanonicalExpression canonical = walk.take();
  canonical.results = std::move(numbers);
  for (const auto& [hash, index] : order) canonical.result_order.push_back(index);
  return canonical;
}

}  // namespace tessera::codegen
