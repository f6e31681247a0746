// Cast and CastLike, and the conversion of elements for all other ops.
#include "codegen/lower_op.h"

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

Id lower_cast(const Lowering& lowering) {
  return converted(lowering.builder, lowering.input(0), lowering.output_type());
}

constexpr FusionRow kRows[] = {
    {"Cast", FusionKind::Elementwise, ops::kAllTypes, lower_cast, place_first},
    {"CastLike", FusionKind::Elementwise, ops::kAllTypes, lower_cast, place_first},
};

}  // namespace

std::span<const FusionRow> cast_rows() { return kRows; }

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
  if (is_half(to)) return builder.convert(builder.convert(x, DataType::Float32), to);
  if (is_floating(from) && is_integer(to)) return integer_from(builder, x, to);
  return builder.convert(x, to);
}

}  // namespace tessera::codegen
