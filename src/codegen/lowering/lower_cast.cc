// Cast and CastLike, and the conversion of elements for all other ops.
#include "codegen/lowering/lower_op.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;

Id integer_from(ExpressionBuilder& builder, Id x, DataType to) {
  const DataType from = builder.type(x);
  if (to == DataType::Int32 || to == DataType::Int64) return builder.convert(x, to);
  // Negative numbers wrap around, as if they were int64.
  const Id wrapped = builder.convert(builder.convert(x, DataType::Int64), to);
  if (to != DataType::UInt64) return wrapped;
  const Id is_above = builder.less_or_equal(builder.number(from, 0x1p63), x);
  return builder.select(is_above, builder.convert(x, to), wrapped);
}

// `x` in float32; if it is no float32, the neighbour whose last digit is odd, which rounds to 16
// bits as `x` itself does (tessera/float16.h). Integers of float32 that `x` cannot have saturate.
Id rounded_to_odd(ExpressionBuilder& builder, Id x) {
  const DataType from = builder.type(x);
  const Id nearest = builder.convert(x, DataType::Float32);
  const bool is_small = from == DataType::Bool || (is_integer(from) && element_bytes(from) < 4);
  if (is_small || from == DataType::Float32) return nearest;
  // Conversions of float32 to integers are defined for 64 bits.
  const DataType wide =
      from == DataType::Int32 || from == DataType::UInt32 ? DataType::Int64 : from;
  const Id number = builder.convert(x, wide);
  const Id found = converted(builder, nearest, wide);
  const Id bits = builder.bit_cast(nearest, DataType::Int32);
  const Id one = builder.number(DataType::Int32, 1);
  // The bits of a negative float grow as it falls.
  const Id is_negative = builder.less(bits, builder.number(DataType::Int32, 0));
  const Id is_after = builder.bit_xor(builder.less(found, number), is_negative);
  const Id neighbour =
      builder.select(is_after, builder.add(bits, one), builder.subtract(bits, one));
  const Id is_odd = builder.equal(builder.bit_and(bits, one), one);
  const Id is_number = builder.equal(number, number);
  const Id is_kept = builder.bit_or(builder.bit_or(builder.equal(found, number), is_odd),
                                    builder.bit_not(is_number));
  return builder.bit_cast(builder.select(is_kept, bits, neighbour), DataType::Float32);
}

Id lower_cast(const Lowering& lowering) {
  return converted(lowering.builder, lowering.input(0), lowering.output_type());
}

constexpr FusionRow kCastRows[] = {
    {"Cast", FusionKind::Elementwise, ops::kAllTypes, lower_cast, place_first},
    {"CastLike", FusionKind::Elementwise, ops::kAllTypes, lower_cast, place_first},
};

}  // namespace

std::span<const FusionRow> cast_rows() { return kCastRows; }

InstructionId converted(ExpressionBuilder& builder, InstructionId x, DataType to) {
  const DataType from = builder.type(x);
  if (from == to) return x;
  if (to == DataType::Bool) {
    const Id number = builder.convert(x, computed_type(from));
    return builder.bit_not(builder.equal(number, builder.number(builder.type(number), 0)));
  }
  if (is_half(from)) {
    const Id number = builder.convert(x, DataType::Float32);
    // All finite float16 are int32, and infinities have the same lowest 16 bits in both ways.
    const bool is_narrow = is_integer(to) && element_bytes(to) < 4;
    if (from == DataType::Float16 && is_narrow) {
      return builder.convert(builder.convert(number, DataType::Int32), to);
    }
    return converted(builder, number, to);
  }
  if (is_half(to)) return builder.convert(rounded_to_odd(builder, x), to);
  if (is_floating(from) && is_integer(to)) return integer_from(builder, x, to);
  return builder.convert(x, to);
}

}  // namespace tessera::codegen
