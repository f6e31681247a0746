#include "codegen/expression/evaluate.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/errors/check.h"
#include "base/tensor/float16.h"
#include "ops/compensated_sum.h"

namespace tessera::codegen {
namespace {

template <class T>
struct Tag {
  using type = T;
};

// Calls visit(Tag<T>) with the C++ type of `type`: bool for bools, uint16_t for 16-bit floats.
template <class Visit>
void visit_type(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::Bool:
      return visit(Tag<bool>{});
    case DataType::Int8:
      return visit(Tag<int8_t>{});
    case DataType::Int16:
      return visit(Tag<int16_t>{});
    case DataType::Int32:
      return visit(Tag<int32_t>{});
    case DataType::Int64:
      return visit(Tag<int64_t>{});
    case DataType::UInt8:
      return visit(Tag<uint8_t>{});
    case DataType::UInt16:
    case DataType::Float16:
    case DataType::BFloat16:
      return visit(Tag<uint16_t>{});
    case DataType::UInt32:
      return visit(Tag<uint32_t>{});
    case DataType::UInt64:
      return visit(Tag<uint64_t>{});
    case DataType::Float32:
      return visit(Tag<float>{});
    case DataType::Float64:
      return visit(Tag<double>{});
    default:
      TESSERA_CHECK(false, "expressions have elements of fixed size");
  }
}

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return bits != 0;
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  return static_cast<T>(bits);
}

template <class T>
uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? 1 : 0;
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  return static_cast<std::make_unsigned_t<
      std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, int>>>(value);
}

// Integers compute in uint64_t, where wrap-around is defined.
template <class T>
T arithmetic(Operation operation, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (operation) {
      case Operation::Add:
        return a + b;
      case Operation::Subtract:
        return a - b;
      case Operation::Multiply:
        return a * b;
      default:
        return a / b;
    }
  } else {
    const auto left = static_cast<uint64_t>(a);
    const auto right = static_cast<uint64_t>(b);
    switch (operation) {
      case Operation::Add:
        return static_cast<T>(left + right);
      case Operation::Subtract:
        return static_cast<T>(left - right);
      case Operation::Multiply:
        return static_cast<T>(left * right);
      case Operation::Divide:
        return static_cast<T>(a / b);
      case Operation::Remainder:
        return static_cast<T>(a % b);
      case Operation::And:
        return static_cast<T>(left & right);
      case Operation::Or:
        return static_cast<T>(left | right);
      case Operation::Xor:
        return static_cast<T>(left ^ right);
      case Operation::ShiftLeft:
        return static_cast<T>(left << right);
      default:
        return static_cast<T>(a >> b);
    }
  }
}

bool logic(Operation operation, bool a, bool b) {
  switch (operation) {
    case Operation::And:
      return a && b;
    case Operation::Or:
      return a || b;
    default:
      return a != b;
  }
}

template <class T>
bool comparison(Operation operation, T a, T b) {
  switch (operation) {
    case Operation::Equal:
      return a == b;
    case Operation::Less:
      return a < b;
    default:
      return a <= b;
  }
}

template <class T>
T one_argument(Operation operation, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (operation) {
      case Operation::Negate:
        return std::copysign(x, std::signbit(x) ? T{1} : T{-1});
      case Operation::Absolute:
        return std::copysign(x, T{1});
      case Operation::SquareRoot:
        return std::sqrt(x);
      case Operation::Floor:
        return std::floor(x);
      case Operation::Ceiling:
        return std::ceil(x);
      case Operation::Truncate:
        return std::trunc(x);
      default:
        return std::nearbyint(x);
    }
  } else {
    const auto bits = static_cast<uint64_t>(x);
    if (operation == Operation::Not) return static_cast<T>(~bits);
    const bool is_kept = operation == Operation::Absolute && x >= 0;
    return is_kept ? x : static_cast<T>(uint64_t{0} - bits);
  }
}

template <class To>
To saturated(double value) {
  if (std::isnan(value)) return 0;
  // The largest 64-bit integers are no doubles; a value that rounds to them is out of range.
  if (value >= static_cast<double>(std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  if (value <= static_cast<double>(std::numeric_limits<To>::lowest())) {
    return std::numeric_limits<To>::lowest();
  }
  return static_cast<To>(value);
}

uint64_t converted(DataType from, DataType to, uint64_t bits) {
  if (from == DataType::Float16 || from == DataType::BFloat16) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(bits);
    return to_bits(from == DataType::Float16 ? static_cast<float>(half)
                                             : static_cast<float>(brain));
  }
  if (to == DataType::Float16) return Float16(from_bits<float>(bits)).bits;
  if (to == DataType::BFloat16) return BFloat16(from_bits<float>(bits)).bits;
  uint64_t result = 0;
  visit_type(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    visit_type(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      const From value = from_bits<From>(bits);
      if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                    !std::is_same_v<To, bool>) {
        result = to_bits(saturated<To>(value));
      } else {
        result = to_bits(static_cast<To>(value));
      }
    });
  });
  return result;
}

// Returns the reduction of `elements`.
template <class T>
T reduced(Operation operation, std::span<const uint64_t> elements) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  if constexpr (std::is_floating_point_v<T>) {
    if (operation == Operation::ReduceSum) {
      ops::CompensatedSum sum;
      for (const uint64_t bits : elements) sum.add(from_bits<T>(bits));
      return static_cast<T>(sum.value());
    }
  }
  if (operation == Operation::ReduceSum || operation == Operation::ReduceProduct) {
    Sum total = operation == Operation::ReduceSum ? 0 : 1;
    for (const uint64_t bits : elements) {
      const Sum element = static_cast<Sum>(from_bits<T>(bits));
      total = operation == Operation::ReduceSum ? total + element : total * element;
    }
    return static_cast<T>(total);
  }
  T best = from_bits<T>(elements.front());
  for (const uint64_t bits : elements) {
    const T element = from_bits<T>(bits);
    if (best != best) break;
    const bool is_better = operation == Operation::ReduceMax ? element > best : element < best;
    if (is_better || element != element) best = element;
  }
  return best;
}

class Evaluation {
 public:
  Evaluation(const Instructions& instructions, std::span<const Column> operands, int64_t points,
             int64_t row_points)
      : instructions_(instructions),
        operands_(operands),
        points_(static_cast<size_t>(points)),
        row_points_(static_cast<size_t>(row_points)) {
    for (const Instruction& instruction : instructions) columns_.push_back(compute(instruction));
  }

  const Column& column(InstructionId id) const { return columns_[static_cast<size_t>(id)]; }

 private:
  const Column& argument(const Instruction& instruction, size_t index) const {
    return column(instruction.arguments[index]);
  }

  DataType type_of(InstructionId id) const { return instructions_[static_cast<size_t>(id)].type; }

  Column compute(const Instruction& instruction) const {
    Column column(points_);
    switch (instruction.operation) {
      case Operation::Operand:
        return operands_[static_cast<size_t>(instruction.index)];
      case Operation::Constant:
        column.assign(points_, instruction.bits);
        return column;
      case Operation::BitCast:
        return argument(instruction, 0);
      case Operation::Convert:
        for (size_t point = 0; point < points_; ++point) {
          column[point] = converted(type_of(instruction.arguments[0]), instruction.type,
                                    argument(instruction, 0)[point]);
        }
        return column;
      case Operation::Select:
        for (size_t point = 0; point < points_; ++point) {
          column[point] =
              argument(instruction, argument(instruction, 0)[point] != 0 ? 1 : 2)[point];
        }
        return column;
      default:
        break;
    }
    visit_type(type_of(instruction.arguments[0]),
               [&](auto tag) { compute_typed<typename decltype(tag)::type>(instruction, column); });
    return column;
  }

  template <class T>
  void compute_typed(const Instruction& instruction, Column& column) const {
    const Operation operation = instruction.operation;
    const int count = argument_count(operation);
    const Column& first = argument(instruction, 0);
    if (is_reduction(operation)) return reduce<T>(operation, first, column);
    for (size_t point = 0; point < points_; ++point) {
      const T a = from_bits<T>(first[point]);
      if (count == 1) {
        column[point] = to_bits<T>(one_argument(operation, a));
        continue;
      }
      const T b = from_bits<T>(argument(instruction, 1)[point]);
      if (operation >= Operation::Equal && operation <= Operation::LessOrEqual) {
        column[point] = comparison(operation, a, b) ? 1 : 0;
      } else if constexpr (std::is_same_v<T, bool>) {
        column[point] = logic(operation, a, b) ? 1 : 0;
      } else if (operation == Operation::FusedMultiplyAdd) {
        if constexpr (std::is_floating_point_v<T>) {
          column[point] = to_bits<T>(std::fma(a, b, from_bits<T>(argument(instruction, 2)[point])));
        }
      } else {
        column[point] = to_bits<T>(arithmetic(operation, a, b));
      }
    }
  }

  template <class T>
  void reduce(Operation operation, const Column& elements, Column& column) const {
    for (size_t row = 0; row < points_; row += row_points_) {
      const uint64_t bits =
          to_bits<T>(reduced<T>(operation, std::span(elements).subspan(row, row_points_)));
      std::fill_n(column.begin() + static_cast<std::ptrdiff_t>(row), row_points_, bits);
    }
  }

  const Instructions& instructions_;
  std::span<const Column> operands_;
  size_t points_;
  size_t row_points_;
  std::vector<Column> columns_;  // by instruction
};

// --- Groups --------------------------------------------------------------------------------------

uint64_t load(const void* elements, DataType type, int64_t index) {
  const auto bytes = static_cast<size_t>(element_bytes(type));
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(elements) + static_cast<size_t>(index) * bytes,
              bytes);
  return type == DataType::Bool && bits != 0 ? 1 : bits;
}

void store(void* elements, DataType type, int64_t index, uint64_t bits) {
  const auto bytes = static_cast<size_t>(element_bytes(type));
  std::memcpy(static_cast<std::byte*>(elements) + static_cast<size_t>(index) * bytes, &bits, bytes);
}

// Both enumerations have the same order.
DataType type_of_abi(int32_t type) { return static_cast<DataType>(type); }

Instructions instructions_of(const plugin::FusedGroup& group) {
  Instructions instructions;
  for (const plugin::Instruction& given : group.instructions) {
    instructions.push_back({static_cast<Operation>(given.operation),
                            type_of_abi(given.data_type),
                            {given.arguments[0], given.arguments[1], given.arguments[2]},
                            given.index,
                            given.bits});
  }
  return instructions;
}

// The element that each point of a row accesses, for all rows: first the axes that are kept, then
// those that are reduced.
class Points {
 public:
  explicit Points(const plugin::FusedGroup& group) {
    for (const bool is_reduced : {false, true}) {
      for (size_t axis = 0; axis < group.dims.size(); ++axis) {
        if (group.is_reduced(axis) != is_reduced) continue;
        axes_.push_back(axis);
        sizes_.push_back(group.dims[axis]);
        (is_reduced ? row_points_ : rows_) *= group.dims[axis];
      }
    }
  }

  int64_t row_points() const { return row_points_; }
  int64_t count() const { return rows_ * row_points_; }
  int64_t element(const plugin::FusedAccess& access, int64_t point) const {
    int64_t index = access.offset;
    for (size_t at = axes_.size(); at-- > 0; point /= sizes_[at]) {
      index += point % sizes_[at] * access.strides[axes_[at]];
    }
    return index;
  }

 private:
  std::vector<size_t> axes_;
  std::vector<int64_t> sizes_;
  int64_t rows_ = 1;
  int64_t row_points_ = 1;
};

}  // namespace

std::vector<Column> evaluate(const Instructions& instructions,
                             std::span<const InstructionId> results,
                             std::span<const Column> operands, int64_t row_points) {
  const int64_t points = operands.empty() ? row_points : static_cast<int64_t>(operands[0].size());
  const Evaluation evaluation(instructions, operands, points, row_points);
  std::vector<Column> columns;
  for (const InstructionId result : results) columns.push_back(evaluation.column(result));
  return columns;
}

void evaluate_group(const plugin::FusedGroup& group, std::span<const void* const> inputs,
                    std::span<void* const> outputs) {
  const Points points(group);
  std::vector<Column> operands;
  for (const plugin::FusedAccess& access : group.operands) {
    Column column;
    for (int64_t point = 0; point < points.count(); ++point) {
      column.push_back(load(inputs[static_cast<size_t>(access.port)], type_of_abi(access.data_type),
                            points.element(access, point)));
    }
    operands.push_back(std::move(column));
  }
  if (operands.empty()) operands.emplace_back(static_cast<size_t>(points.count()));
  const Instructions instructions = instructions_of(group);
  const Evaluation evaluation(instructions, operands, points.count(), points.row_points());
  for (const plugin::FusedAccess& access : group.results) {
    const Column& column = evaluation.column(access.instruction);
    for (int64_t point = 0; point < points.count(); ++point) {
      store(outputs[static_cast<size_t>(access.port)], type_of_abi(access.data_type),
            points.element(access, point), column[static_cast<size_t>(point)]);
    }
  }
}

}  // namespace tessera::codegen
