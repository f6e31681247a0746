#include "random_group.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "codegen/expression/evaluate.h"
#include "codegen/expression/expression_builder.h"

namespace tessera::codegen {

namespace {

using enum DataType;
using Id = InstructionId;

constexpr std::array kTypes = {Bool,   Int8,   Int16,   Int32,    Int64,   UInt8,  UInt16,
                               UInt32, UInt64, Float16, BFloat16, Float32, Float64};
constexpr std::array kFloatingTypes = {Float32, Float64};
constexpr std::array kSummedTypes = {Float32, Float64, Int32, Int64};

bool is_wide_float(DataType type) { return type == Float32 || type == Float64; }
bool is_16_bit_float(DataType type) { return type == Float16 || type == BFloat16; }

uint64_t smallest_normal(DataType type) {
  return type == Float32 ? 0x00800000 : 0x0010000000000000;
}
uint64_t sign_bit(DataType type) { return type == Float32 ? 0x80000000 : 0x8000000000000000; }

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // In [0, count).
  size_t below(size_t count) { return static_cast<size_t>(engine_() % count); }
  bool is_one_of(size_t count) { return below(count) == 0; }
  uint64_t bits() { return engine_(); }
  template <class List>
  auto element(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

// Elements at which kernels are often wrong, and some that are anything.
uint64_t random_element(Random& random, DataType type) {
  static constexpr std::array<uint64_t, 4> kBools = {0, 1, 2, 255};
  static constexpr std::array<uint64_t, 12> kFloat16 = {
      0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 1, 0x83ff, 0x7bff, 0x0400, 0x4248};
  static constexpr std::array<uint64_t, 10> kBfloat16 = {0,      0x8000, 0x3f80, 0xbf80, 0x7f80,
                                                         0xff80, 0x7fc0, 1,      0x7f7f, 0x4049};
  static constexpr std::array<uint64_t, 16> kFloat32 = {
      0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
      0x7fc00000, 1,          0x807fffff, 0x7f7fffff, 0x00800000, 0x4f000000,
      0xdf000000, 0x477fefff, 0x33000001, 0x3f000000};
  static constexpr std::array<uint64_t, 10> kFloat64 = {0,
                                                        0x8000000000000000,
                                                        0x3ff0000000000000,
                                                        0x7ff0000000000000,
                                                        0xfff0000000000000,
                                                        0x7ff8000000000000,
                                                        1,
                                                        0x7fefffffffffffff,
                                                        0x43e0000000000000,
                                                        0x3690000000000001};
  const bool is_special = random.is_one_of(4);
  switch (type) {
    case Bool:
      return random.element(kBools);
    case Float16:
      return is_special ? random.element(kFloat16) : random.bits() & 0xffff;
    case BFloat16:
      return is_special ? random.element(kBfloat16) : random.bits() & 0xffff;
    case Float32: {
      if (is_special) return random.element(kFloat32);
      if (random.is_one_of(4)) return random.bits() & 0xffffffff;
      const auto number = static_cast<float>(static_cast<double>(random.below(2'000'001)) - 1e6);
      return std::bit_cast<uint32_t>(number / 65'537);
    }
    case Float64: {
      if (is_special) return random.element(kFloat64);
      if (random.is_one_of(4)) return random.bits();
      const double number = static_cast<double>(random.below(2'000'001)) - 1e6;
      return std::bit_cast<uint64_t>(number / 65'537);
    }
    default: {
      const int bits = 8 * static_cast<int>(element_bytes(type));
      const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      if (is_special) return (random.bits() % 3 - 1 + (random.is_one_of(2) ? ones / 2 : 0)) & ones;
      return random.bits() & ones;
    }
  }
}

// --- Instructions --------------------------------------------------------------------------------

// Appends random instructions that keep the rules. For each value, it knows the type, and whether
// the bits of a NaN are defined: arithmetic does not define them.
class RandomExpression {
 public:
  RandomExpression(Random& random, bool reduces, bool has_denormals)
      : random_(random), reduces_(reduces), has_denormals_(has_denormals) {}

  const ExpressionBuilder& builder() const { return builder_; }

  void add_operand(int32_t index, DataType type) { add(builder_.operand(index, type), true); }

  void add_instruction() {
    const Id x = pick();
    switch (random_.below(reduces_ ? 12 : 10)) {
      case 0:
        return add(builder_.constant_bits(builder_.type(x), constant_element(builder_.type(x))),
                   true);
      case 1:
      case 2:
        return add_conversion(x);
      case 3:
        return add_selection(x);
      case 4:
        return add_comparison(x);
      case 5:
        return add_bit_cast(x);
      case 10:
      case 11:
        return reductions_ < kMaxReductions ? add_reduction(x) : add_arithmetic(x);
      default:
        return add_arithmetic(x);
    }
  }

  // Values in the order in which they were added, the latest last.
  const std::vector<Id>& values() const { return values_; }

 private:
  static constexpr int kMaxReductions = 6;

  void add(Id id, bool has_defined_bits) {
    id = without_denormals(id);
    values_.push_back(id);
    defined_.resize(builder_.instructions().size(), true);
    defined_[static_cast<size_t>(id)] = has_defined_bits;
  }

  Id without_denormals(Id x) {
    const DataType type = builder_.type(x);
    if (has_denormals_ || !is_wide_float(type)) return x;
    const Id smallest = builder_.constant_bits(type, smallest_normal(type));
    return builder_.select(builder_.less(builder_.absolute(x), smallest), builder_.number(type, 0),
                           x);
  }

  uint64_t constant_element(DataType type) {
    if (type == Bool) return random_.below(2);
    const uint64_t bits = random_element(random_, type);
    const bool is_denormal =
        is_wide_float(type) && (bits & ~sign_bit(type)) < smallest_normal(type);
    return is_denormal && !has_denormals_ ? bits & sign_bit(type) : bits;
  }

  // Rather a late value, so that expressions become deep.
  Id pick() {
    const size_t count = values_.size();
    return values_[count - 1 -
                   random_.below(random_.is_one_of(3) ? count : std::min<size_t>(count, 4))];
  }
  // One of the type, if possible a late one.
  Id pick(DataType type) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Id id = pick();
      if (builder_.type(id) == type) return id;
    }
    return builder_.constant_bits(type, constant_element(type));
  }

  void add_arithmetic(Id x) {
    const DataType type = builder_.type(x);
    if (type == Bool) return add_logic(x);
    if (is_wide_float(type)) return add_float(x);
    if (is_integer(type)) return add_integer(x);
    add_conversion(x);
  }

  void add_logic(Id x) {
    switch (random_.below(4)) {
      case 0:
        return add(builder_.bit_and(x, pick(Bool)), true);
      case 1:
        return add(builder_.bit_or(x, pick(Bool)), true);
      case 2:
        return add(builder_.bit_xor(x, pick(Bool)), true);
      default:
        return add(builder_.bit_not(x), true);
    }
  }

  void add_float(Id x) {
    const DataType type = builder_.type(x);
    switch (random_.below(12)) {
      case 0:
        return add(builder_.add(x, pick(type)), false);
      case 1:
        return add(builder_.subtract(pick(type), x), false);
      case 2:
        return add(builder_.multiply(x, pick(type)), false);
      case 3:
        return add(builder_.divide(pick(type), x), false);
      case 4:
        return add(builder_.negate(x), is_defined(x));
      case 5:
        return add(builder_.absolute(x), is_defined(x));
      case 6:
        return add(builder_.fused_multiply_add(x, pick(type), pick(type)), false);
      case 7:
        return add(builder_.square_root(x), false);
      case 8:
        return add(builder_.floor(x), false);
      case 9:
        return add(builder_.ceiling(x), false);
      case 10:
        return add(builder_.truncate(x), false);
      default:
        return add(builder_.round(x), false);
    }
  }

  Id divisor(DataType type) {
    const uint64_t bits = 2 + random_.below(100);
    return builder_.constant_bits(type, bits);
  }
  Id shift_count(DataType type) {
    const auto width = static_cast<double>(8 * element_bytes(type));
    return builder_.bit_and(pick(type), builder_.number(type, width - 1));
  }

  void add_integer(Id x) {
    const DataType type = builder_.type(x);
    switch (random_.below(13)) {
      case 0:
        return add(builder_.add(x, pick(type)), true);
      case 1:
        return add(builder_.subtract(pick(type), x), true);
      case 2:
        return add(builder_.multiply(x, pick(type)), true);
      case 3:
        return add(builder_.divide(x, divisor(type)), true);
      case 4:
        return add(builder_.remainder(x, divisor(type)), true);
      case 5:
        return add(builder_.negate(x), true);
      case 6:
        return add(builder_.absolute(x), true);
      case 7:
        return add(builder_.bit_and(x, pick(type)), true);
      case 8:
        return add(builder_.bit_or(x, pick(type)), true);
      case 9:
        return add(builder_.bit_xor(x, pick(type)), true);
      case 10:
        return add(builder_.bit_not(x), true);
      case 11:
        return add(builder_.shift_left(x, shift_count(type)), true);
      default:
        return add(builder_.shift_right(x, shift_count(type)), true);
    }
  }

  void add_conversion(Id x) {
    const DataType from = builder_.type(x);
    if (is_16_bit_float(from)) return add(builder_.convert(x, Float32), false);
    static constexpr std::array kFromFloat32 = {Float16, BFloat16, Float64, Int32, Int64, UInt64};
    static constexpr std::array kFromFloat64 = {Float32, Int32, Int64, UInt64};
    static constexpr std::array kFromInteger = {Int8,   Int16,  Int32,  Int64,   UInt8,
                                                UInt16, UInt32, UInt64, Float32, Float64};
    const DataType to = from == Float32   ? random_.element(kFromFloat32)
                        : from == Float64 ? random_.element(kFromFloat64)
                                          : random_.element(kFromInteger);
    if (to != from) add(builder_.convert(x, to), !is_wide_float(to) && !is_16_bit_float(to));
  }

  void add_selection(Id x) {
    const Id other = pick(builder_.type(x));
    add(builder_.select(pick(Bool), x, other), is_defined(x) && is_defined(other));
  }

  void add_comparison(Id x) {
    const DataType type = builder_.type(x);
    if (is_16_bit_float(type)) return add_conversion(x);
    const Id other = pick(type);
    const size_t kind = type == Bool ? 0 : random_.below(3);
    add(kind == 0   ? builder_.equal(x, other)
        : kind == 1 ? builder_.less(x, other)
                    : builder_.less_or_equal(x, other),
        true);
  }

  void add_bit_cast(Id x) {
    const DataType from = builder_.type(x);
    const DataType to = random_.element(kTypes);
    const bool fits = from != Bool && to != Bool && from != to &&
                      element_bytes(from) == element_bytes(to) && is_defined(x);
    fits ? add(builder_.bit_cast(x, to), true) : add_arithmetic(x);
  }

  // Sums of integers of 3 bits and products of 1 and -1 are exact in any order.
  void add_reduction(Id x) {
    const DataType type = builder_.type(x);
    const DataType summed = random_.element(kSummedTypes);
    const bool can_compare = type == Float32 || type == Float64 || type == Int32 || type == Int64;
    const size_t kind = random_.below(4);
    ++reductions_;
    if (kind >= 2 && can_compare) {
      const Operation operation = kind == 2 ? Operation::ReduceMax : Operation::ReduceMin;
      const Id reduced = builder_.reduce(operation, x);
      // Adding zero makes the sign of a zero known.
      return add(is_wide_float(type) ? builder_.add(reduced, builder_.number(type, 0)) : reduced,
                 is_integer(type));
    }
    if (is_integer(type) && kind == 0) {
      const Id small = builder_.bit_and(x, builder_.number(type, 7));
      const Id number = builder_.convert(small, summed);
      return add(builder_.reduce(Operation::ReduceSum, number), true);
    }
    if (type == Bool) {
      const Id sign = builder_.select(x, builder_.number(summed, 1), builder_.number(summed, -1));
      return add(builder_.reduce(Operation::ReduceProduct, sign), true);
    }
    if (type == Int32 || type == Int64) {
      return add(builder_.reduce(
                     random_.is_one_of(2) ? Operation::ReduceSum : Operation::ReduceProduct, x),
                 true);
    }
    --reductions_;
    add_comparison(x);
  }

  bool is_defined(Id id) const {
    const auto index = static_cast<size_t>(id);
    return index >= defined_.size() || defined_[index];
  }

  Random& random_;
  bool reduces_;
  bool has_denormals_;
  int reductions_ = 0;
  ExpressionBuilder builder_;
  std::vector<Id> values_;
  std::vector<bool> defined_;  // by instruction
};

// --- Groups --------------------------------------------------------------------------------------

std::vector<int64_t> random_dims(Random& random, size_t rank, int64_t max_points) {
  std::vector<int64_t> dims;
  int64_t points = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t limit = std::min<int64_t>(max_points / points, random.is_one_of(3) ? 300 : 20);
    dims.push_back(1 + static_cast<int64_t>(random.below(static_cast<size_t>(limit))));
    points *= dims.back();
  }
  std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(random.below(rank)),
              dims.end());
  return dims;
}

// Strides of a tensor that has the axes of `mask`, in the order of the axes or backwards.
void set_strides(const std::vector<int64_t>& dims, uint32_t mask, bool is_backwards,
                 plugin::FusedAccess& access) {
  access.strides.assign(dims.size(), 0);
  int64_t stride = 1;
  for (size_t at = 0; at < dims.size(); ++at) {
    const size_t axis = is_backwards ? at : dims.size() - 1 - at;
    if ((mask >> axis & 1) == 0) continue;
    access.strides[axis] = stride;
    stride *= dims[axis];
  }
}

int64_t elements_of(const std::vector<int64_t>& dims, const plugin::FusedAccess& access) {
  int64_t last = access.offset;
  for (size_t axis = 0; axis < dims.size(); ++axis) last += (dims[axis] - 1) * access.strides[axis];
  return last + 1;
}

// How an operand or result is read, without sizes.
struct AccessShape {
  DataType type = Float32;
  uint32_t axes = 0;  // bit i: the tensor has axis i
  bool is_backwards = false;
  bool has_offset = false;
};

plugin::FusedAccess access_of(const AccessShape& shape, const std::vector<int64_t>& dims,
                              int32_t port, Random& sizes) {
  plugin::FusedAccess access;
  access.port = port;
  access.data_type = static_cast<int32_t>(shape.type);
  set_strides(dims, shape.axes, shape.is_backwards, access);
  if (shape.has_offset) access.offset = 1 + static_cast<int64_t>(sizes.below(9));
  const uint32_t all = (1U << dims.size()) - 1;
  access.is_whole = shape.axes == all && !shape.is_backwards && !shape.has_offset;
  return access;
}

// Moves the instructions that results need into the group; `operands` says which operands remain.
void keep_needed(const Instructions& instructions, const std::vector<Id>& results,
                 plugin::FusedGroup& group, std::vector<int32_t>& operands) {
  std::vector<bool> needed(instructions.size(), false);
  for (const Id result : results) needed[static_cast<size_t>(result)] = true;
  for (size_t id = instructions.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (int index = 0; index < argument_count(instructions[id].operation); ++index) {
      needed[static_cast<size_t>(instructions[id].arguments[static_cast<size_t>(index)])] = true;
    }
  }
  std::vector<Id> numbers(instructions.size(), -1);
  for (size_t id = 0; id < instructions.size(); ++id) {
    if (!needed[id]) continue;
    const Instruction& from = instructions[id];
    plugin::Instruction to = {static_cast<int32_t>(from.operation),
                              static_cast<int32_t>(from.type),
                              {-1, -1, -1},
                              from.index,
                              from.bits};
    for (int index = 0; index < argument_count(from.operation); ++index) {
      to.arguments[index] =
          numbers[static_cast<size_t>(from.arguments[static_cast<size_t>(index)])];
    }
    if (from.operation == Operation::Operand) {
      operands.push_back(from.index);
      to.index = static_cast<int32_t>(operands.size() - 1);
    }
    numbers[id] = static_cast<Id>(group.instructions.size());
    group.instructions.push_back(to);
  }
  for (size_t result = 0; result < results.size(); ++result) {
    group.results[result].instruction = numbers[static_cast<size_t>(results[result])];
  }
}

std::string random_bytes(DataType type, int64_t elements, Random& random) {
  const auto bytes = static_cast<size_t>(element_bytes(type));
  std::string text(static_cast<size_t>(elements) * bytes, '\0');
  for (size_t index = 0; index < static_cast<size_t>(elements); ++index) {
    const uint64_t element = random_element(random, type);
    std::memcpy(text.data() + index * bytes, &element, bytes);
  }
  return text;
}

bool is_nan(DataType type, uint64_t bits) {
  switch (type) {
    case Float16:
      return (bits & 0x7fff) > 0x7c00;
    case BFloat16:
      return (bits & 0x7fff) > 0x7f80;
    case Float32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case Float64:
      return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default:
      return false;
  }
}

}  // namespace

RandomGroup random_group(uint32_t seed, uint32_t size_seed, const RandomGroupLimits& limits) {
  Random random(seed);
  Random sizes(size_seed ^ 0x9e3779b9U);
  RandomGroup result;
  plugin::FusedGroup& group = result.group;
  group.nodes = {0};
  const size_t rank = 1 + random.below(4);
  const uint32_t all = (1U << rank) - 1;
  if (random.is_one_of(2)) group.reduced_axes = 1 + random.below(all);
  group.dims = random_dims(sizes, rank, limits.max_points);

  RandomExpression expression(random, group.reduced_axes != 0, limits.has_denormals);
  std::vector<AccessShape> operands(1 + random.below(6));
  for (size_t index = 0; index < operands.size(); ++index) {
    AccessShape& shape = operands[index];
    shape.type = random.element(kTypes);
    if (random.is_one_of(3)) shape.type = random.element(kFloatingTypes);
    shape.axes = random.is_one_of(2) ? all : static_cast<uint32_t>(random.below(all + 1));
    shape.is_backwards = random.is_one_of(5);
    shape.has_offset = random.is_one_of(4);
    expression.add_operand(static_cast<int32_t>(index), shape.type);
  }
  const size_t count = 1 + random.below(static_cast<size_t>(limits.max_instructions));
  for (size_t index = 0; index < count; ++index) expression.add_instruction();

  std::vector<Id> results = {expression.values().back()};
  while (random.is_one_of(2) && results.size() < 4) {
    results.push_back(random.element(expression.values()));
  }
  group.results.resize(results.size());
  std::vector<int32_t> needed;
  keep_needed(expression.builder().instructions(), results, group, needed);
  for (const int32_t old : needed) {
    const AccessShape& shape = operands[static_cast<size_t>(old)];
    const auto port = static_cast<int32_t>(group.operands.size());
    group.operands.push_back(access_of(shape, group.dims, port, sizes));
    group.inputs.push_back(port);
    result.inputs.push_back(
        random_bytes(shape.type, elements_of(group.dims, group.operands.back()), sizes));
  }
  const std::vector<bool> varies = plugin::varies_along_reduced_axes(group);
  for (size_t index = 0; index < results.size(); ++index) {
    AccessShape shape = {.type = expression.builder().type(results[index]), .axes = all};
    const auto instruction = group.results[index].instruction;
    if (!varies[static_cast<size_t>(instruction)] && !random.is_one_of(4)) {
      shape.axes &= ~static_cast<uint32_t>(group.reduced_axes);
    }
    shape.is_backwards = random.is_one_of(6);
    shape.has_offset = random.is_one_of(4);
    group.results[index] = access_of(shape, group.dims, static_cast<int32_t>(index), sizes);
    group.results[index].instruction = instruction;
    group.outputs.push_back(static_cast<int32_t>(group.inputs.size() + index));
    result.output_elements.push_back(elements_of(group.dims, group.results[index]) + 3);
  }
  group.flops = group.points() * static_cast<int64_t>(group.instructions.size());
  return result;
}

std::vector<std::string> expected_outputs(const RandomGroup& random, char fill) {
  std::vector<std::string> outputs;
  std::vector<const void*> inputs;
  std::vector<void*> addresses;
  for (const std::string& input : random.inputs) inputs.push_back(input.data());
  for (size_t port = 0; port < random.output_elements.size(); ++port) {
    const auto type = static_cast<DataType>(random.group.results[port].data_type);
    outputs.emplace_back(static_cast<size_t>(random.output_elements[port] * element_bytes(type)),
                         fill);
  }
  for (std::string& output : outputs) addresses.push_back(output.data());
  evaluate_group(random.group, inputs, addresses);
  return outputs;
}

std::string explain_difference(const RandomGroup& random, size_t port, const std::string& expected,
                               const std::string& found) {
  const auto type = static_cast<DataType>(random.group.results[port].data_type);
  const auto bytes = static_cast<size_t>(element_bytes(type));
  for (size_t at = 0; at + bytes <= expected.size(); at += bytes) {
    uint64_t wanted = 0;
    uint64_t given = 0;
    std::memcpy(&wanted, expected.data() + at, bytes);
    std::memcpy(&given, found.data() + at, bytes);
    if (wanted == given || (is_nan(type, wanted) && is_nan(type, given))) continue;
    std::ostringstream text;
    text << "output " << port << " (" << name(type) << "), element " << at / bytes << " of "
         << expected.size() / bytes << ": expected 0x" << std::hex << wanted << ", found 0x"
         << given;
    return text.str();
  }
  return "";
}

}  // namespace tessera::codegen
