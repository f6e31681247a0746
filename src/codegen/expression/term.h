// Terms: formulas in C++ operators that append instructions to an ExpressionBuilder. The
// mathematical functions are written with them.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "codegen/expression/expression_builder.h"

namespace tessera::codegen {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLog2E = 1.4426950408889634;  // the binary logarithm of e

// One value of an expression. Both arguments of an operator have one type; a number becomes a
// constant of the type of the other argument.
struct Term {
  ExpressionBuilder* builder = nullptr;
  InstructionId id = -1;

  DataType type() const { return builder->type(id); }
  bool is_float32() const { return type() == DataType::Float32; }
  Term of(InstructionId result) const { return {builder, result}; }
  Term number(double value) const { return of(builder->number(type(), value)); }
  Term bits(uint64_t value) const { return of(builder->constant_bits(type(), value)); }
};

inline Term operator+(Term a, Term b) { return a.of(a.builder->add(a.id, b.id)); }
inline Term operator-(Term a, Term b) { return a.of(a.builder->subtract(a.id, b.id)); }
inline Term operator*(Term a, Term b) { return a.of(a.builder->multiply(a.id, b.id)); }
inline Term operator/(Term a, Term b) { return a.of(a.builder->divide(a.id, b.id)); }
inline Term operator+(Term a, double b) { return a + a.number(b); }
inline Term operator-(Term a, double b) { return a - a.number(b); }
inline Term operator-(double a, Term b) { return b.number(a) - b; }
inline Term operator*(Term a, double b) { return a * a.number(b); }
inline Term operator/(double a, Term b) { return b.number(a) / b; }
inline Term operator-(Term a) { return a.of(a.builder->negate(a.id)); }
inline Term absolute(Term a) { return a.of(a.builder->absolute(a.id)); }
inline Term floor(Term a) { return a.of(a.builder->floor(a.id)); }

inline Term fma(Term a, Term b, Term c) {
  return a.of(a.builder->fused_multiply_add(a.id, b.id, c.id));
}
inline Term fma(Term a, double b, Term c) { return fma(a, a.number(b), c); }
inline Term fma(Term a, double b, double c) { return fma(a, a.number(b), a.number(c)); }
inline Term fma(Term a, Term b, double c) { return fma(a, b, a.number(c)); }

// Of integers and bools.
inline Term operator&(Term a, Term b) { return a.of(a.builder->bit_and(a.id, b.id)); }
inline Term operator|(Term a, Term b) { return a.of(a.builder->bit_or(a.id, b.id)); }
inline Term operator^(Term a, Term b) { return a.of(a.builder->bit_xor(a.id, b.id)); }
inline Term operator~(Term a) { return a.of(a.builder->bit_not(a.id)); }
inline Term operator<<(Term a, int count) {
  return a.of(a.builder->shift_left(a.id, a.number(count).id));
}
inline Term operator>>(Term a, int count) {
  return a.of(a.builder->shift_right(a.id, a.number(count).id));
}

inline Term operator<(Term a, Term b) { return a.of(a.builder->less(a.id, b.id)); }
inline Term operator<(Term a, double b) { return a < a.number(b); }
inline Term operator<(double a, Term b) { return b.number(a) < b; }
inline Term operator==(Term a, Term b) { return a.of(a.builder->equal(a.id, b.id)); }
inline Term operator==(Term a, double b) { return a == a.number(b); }
inline Term select(Term condition, Term yes, Term no) {
  return yes.of(yes.builder->select(condition.id, yes.id, no.id));
}
inline Term select(Term condition, double yes, Term no) {
  return select(condition, no.number(yes), no);
}
inline Term select(Term condition, Term yes, double no) {
  return select(condition, yes, yes.number(no));
}

inline Term convert(Term a, DataType to) { return a.of(a.builder->convert(a.id, to)); }

// --- Bits of floats ------------------------------------------------------------------------------

// The bits of a float as an unsigned integer, and the float of such bits.
inline Term to_bits(Term x) {
  return x.of(x.builder->bit_cast(x.id, x.is_float32() ? DataType::UInt32 : DataType::UInt64));
}
inline Term from_bits(Term bits) {
  const bool is_32 = bits.type() == DataType::UInt32;
  return bits.of(bits.builder->bit_cast(bits.id, is_32 ? DataType::Float32 : DataType::Float64));
}

inline Term as_signed(Term bits) {
  return bits.of(bits.builder->bit_cast(
      bits.id, bits.type() == DataType::UInt32 ? DataType::Int32 : DataType::Int64));
}
inline Term as_unsigned(Term bits) {
  return bits.of(bits.builder->bit_cast(
      bits.id, bits.type() == DataType::Int32 ? DataType::UInt32 : DataType::UInt64));
}

inline int mantissa_bits(Term x) { return x.is_float32() ? 23 : 52; }
inline int exponent_bias(Term x) { return x.is_float32() ? 127 : 1023; }
// The bits of a number in the type of the float `x`.
inline uint64_t bits_of(Term x, double value) {
  return x.is_float32() ? std::bit_cast<uint32_t>(static_cast<float>(value))
                        : std::bit_cast<uint64_t>(value);
}
// The sign bit alone, as an integer.
inline Term sign_bit(Term x) {
  const Term bits = to_bits(x);
  return bits & bits.bits(bits_of(x, -0.0));
}
// `magnitude`, which has no sign, with the sign of `x`.
inline Term with_sign_of(Term x, Term magnitude) {
  return from_bits(to_bits(magnitude) | sign_bit(x));
}

// NaN stays NaN.
inline Term at_most(Term x, double limit) { return select(limit < x, limit, x); }
inline Term at_least(Term x, double limit) { return select(x < limit, limit, x); }

// c[first] + c[first + step] x + c[first + 2 step] x^2 + ..., by Horner's rule.
inline Term polynomial(Term x, std::span<const double> c, size_t first, size_t step) {
  size_t index = first + (c.size() - 1 - first) / step * step;
  Term sum = x.number(c[index]);
  for (; index > first; index -= step) sum = fma(sum, x, c[index - step]);
  return sum;
}

// c[0] + c[1] x + c[2] x^2 + ...
inline Term polynomial(Term x, std::span<const double> c) {
  if (c.size() <= 12) return polynomial(x, c, 0, 1);
  // Two chains of operations that do not wait for each other.
  const Term square = x * x;
  return fma(x, polynomial(square, c, 1, 2), polynomial(square, c, 0, 2));
}

}  // namespace tessera::codegen
