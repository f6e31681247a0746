// The activation functions (ops/elementwise/activation.cc). In float64 they are computed as the
// reference does. In float32 they take a form whose steps do not lose what float64 would keep:
// arguments of exp and erfc are split into two numbers if their rounding would count, and nothing
// cancels.
#include <cmath>
#include <string>

#include "codegen/lowering/lower_op.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

double attribute(const Lowering& lowering, std::string_view name) {
  return static_cast<double>(lowering.node.attributes.get_float(name));
}

// A constant of the type of `x`.
Id like(Builder& builder, Id x, double value) { return builder.number(builder.type(x), value); }

bool is_float32(const Builder& builder, Id x) { return builder.type(x) == DataType::Float32; }

Id clamped(Builder& builder, Id x, double low, double high) {
  const Id lower = like(builder, x, low);
  const Id upper = like(builder, x, high);
  const Id above = builder.select(builder.less(x, lower), lower, x);
  return builder.select(builder.less(upper, above), upper, above);
}

Id relu(Builder& builder, Id x) {
  const Id zero = like(builder, x, 0);
  return builder.select(builder.less(x, zero), zero, x);
}

// exp(-|x|), which does not overflow.
Id exp_of_negative(Builder& builder, Id x) {
  return exp(builder, builder.negate(builder.absolute(x)));
}

// --- Without functions ---------------------------------------------------------------------------

Id lower_relu(const Lowering& lowering) { return relu(lowering.builder, lowering.number(0)); }

// The float32 next to the product whose last digit is odd, unless the product is exact: rounded to
// 16 bits, it becomes what the product itself becomes (lower_cast.cc).
Id product_rounded_to_odd(Builder& builder, Id left, Id right) {
  const Id nearest = builder.multiply(left, right);
  const Id rest = builder.fused_multiply_add(left, right, builder.negate(nearest));
  const Id zero = like(builder, rest, 0);
  const Id is_below = builder.less(zero, rest);
  const Id is_inexact = builder.bit_or(is_below, builder.less(rest, zero));
  const Id bits = builder.bit_cast(nearest, DataType::Int32);
  const Id one = builder.number(DataType::Int32, 1);
  // The bits of a negative float grow as it falls.
  const Id is_negative = builder.less(bits, builder.number(DataType::Int32, 0));
  const Id neighbour = builder.select(builder.bit_xor(is_below, is_negative),
                                      builder.add(bits, one), builder.subtract(bits, one));
  const Id is_even = builder.bit_not(builder.equal(builder.bit_and(bits, one), one));
  const Id is_moved = builder.bit_and(is_inexact, is_even);
  return builder.bit_cast(builder.select(is_moved, neighbour, bits), DataType::Float32);
}

Id lower_leaky_relu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const Id alpha = like(builder, x, attribute(lowering, "alpha"));
  // alpha has the digits of float32.
  const Id product = element_bytes(lowering.input_type(0)) == 2
                         ? product_rounded_to_odd(builder, alpha, x)
                         : builder.multiply(alpha, x);
  return builder.select(builder.less(x, like(builder, x, 0)), product, x);
}

Id lower_thresholded_relu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const Id alpha = like(builder, x, attribute(lowering, "alpha"));
  return builder.select(builder.less(alpha, x), x, like(builder, x, 0));
}

// The reference computes integers in float64, too.
Id lower_shrink(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const bool is_number = is_integer(lowering.input_type(0));
  const Id given = lowering.number(0);
  const Id x = is_number ? builder.convert(given, DataType::Float64) : given;
  const double lambda = attribute(lowering, "lambd");
  const Id bias = like(builder, x, attribute(lowering, "bias"));
  const Id inner = builder.select(builder.less(like(builder, x, lambda), x),
                                  builder.subtract(x, bias), like(builder, x, 0));
  return builder.select(builder.less(x, like(builder, x, -lambda)), builder.add(x, bias), inner);
}

Id lower_hard_sigmoid(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const Id alpha = like(builder, x, attribute(lowering, "alpha"));
  const Id beta = like(builder, x, attribute(lowering, "beta"));
  // The sum may cancel, so that in float32 the product must not be rounded.
  const Id line = is_float32(builder, x) ? builder.fused_multiply_add(alpha, x, beta)
                                         : builder.add(builder.multiply(alpha, x), beta);
  return clamped(builder, line, 0, 1);
}

Id lower_hard_swish(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  if (!is_float32(builder, x)) {
    const Id line = builder.add(builder.divide(x, like(builder, x, 6)), like(builder, x, 0.5));
    return builder.multiply(x, clamped(builder, line, 0, 1));
  }
  // x + 3 is exact where x / 6 + 0.5 would cancel.
  const Id sum = builder.add(x, like(builder, x, 3));
  const Id gate = clamped(builder, builder.divide(sum, like(builder, x, 6)), 0, 1);
  return builder.multiply(x, gate);
}

Id lower_softsign(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  return builder.divide(x, builder.add(like(builder, x, 1), builder.absolute(x)));
}

// --- By exp --------------------------------------------------------------------------------------

// 1 / (1 + e) for e = exp(-x), or e / (1 + e) for e = exp(x): the one whose e is at most 1.
Id sigmoid_of(Builder& builder, Id x, Id exp_of_minus_magnitude) {
  const Id one = like(builder, x, 1);
  const Id above =
      builder.select(builder.less(x, like(builder, x, 0)), exp_of_minus_magnitude, one);
  return builder.divide(above, builder.add(one, exp_of_minus_magnitude));
}

Id sigmoid_of_float64(Builder& builder, Id x) {
  const Id one = like(builder, x, 1);
  return builder.divide(one, builder.add(one, exp(builder, builder.negate(x))));
}

Id lower_sigmoid(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  if (!is_float32(builder, x)) return sigmoid_of_float64(builder, x);
  return sigmoid_of(builder, x, exp_of_negative(builder, x));
}

bool is_power_of_two(double number) {
  int exponent = 0;
  return std::fabs(std::frexp(number, &exponent)) == 0.5;
}

Id lower_swish(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const double alpha = attribute(lowering, "alpha");
  const Id factor = like(builder, x, alpha);
  const Id scaled = alpha == 1 ? x : builder.multiply(factor, x);
  if (!is_float32(builder, x)) return builder.multiply(x, sigmoid_of_float64(builder, scaled));
  Id power = exp_of_negative(builder, scaled);
  if (!is_power_of_two(alpha)) {
    // exp multiplies a relative error of its argument by the argument. Where exp is 0, the rest may
    // be infinite.
    const Id rest = builder.fused_multiply_add(factor, x, builder.negate(scaled));
    const Id is_negative = builder.less(scaled, like(builder, x, 0));
    const Id signed_rest = builder.select(is_negative, builder.negate(rest), rest);
    const Id is_small = builder.less(builder.absolute(scaled), like(builder, x, 128));
    const Id change = builder.select(is_small, signed_rest, like(builder, x, 0));
    power = builder.fused_multiply_add(builder.negate(power), change, power);
  }
  return builder.multiply(x, sigmoid_of(builder, scaled, power));
}

Id softplus(Builder& builder, Id x) {
  return builder.add(relu(builder, x), log1p(builder, exp_of_negative(builder, x)));
}

Id lower_softplus(const Lowering& lowering) {
  return softplus(lowering.builder, lowering.number(0));
}

// tanh(log(1 + y)) = (y * y + 2 * y) / (y * y + 2 * y + 2) for y = exp(x); numerator and
// denominator are divided by y * y if x is positive, so that nothing overflows.
Id lower_mish(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const Id power = exp_of_negative(builder, x);
  const Id one = like(builder, x, 1);
  const Id two = like(builder, x, 2);
  const Id is_negative = builder.less(x, like(builder, x, 0));
  const Id square = builder.multiply(power, power);
  const Id above = builder.fused_multiply_add(two, power, builder.select(is_negative, square, one));
  const Id rest = builder.select(is_negative, two, builder.add(square, square));
  return builder.multiply(x, builder.divide(above, builder.add(above, rest)));
}

// --- By expm1 ------------------------------------------------------------------------------------

Id lower_elu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const Id below =
      builder.multiply(like(builder, x, attribute(lowering, "alpha")), expm1(builder, x));
  return builder.select(builder.less(x, like(builder, x, 0)), below, x);
}

bool is_normal_float32(double number) {
  return std::fabs(number) > 0x1p-100 && std::fabs(number) < 0x1p100;
}

// As the reference computes it, for any alpha.
Id celu_of_float64(Builder& builder, Id x, double alpha) {
  const Id zero = like(builder, x, 0);
  const Id factor = like(builder, x, alpha);
  const Id negative = builder.multiply(factor, expm1(builder, builder.divide(x, factor)));
  const Id below = builder.select(builder.less_or_equal(zero, negative), zero, negative);
  const Id above = builder.select(builder.less(zero, x), x, zero);
  return builder.select(builder.equal(x, x), builder.add(above, below), x);
}

Id lower_celu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const double alpha = attribute(lowering, "alpha");
  if (!is_normal_float32(alpha) || alpha < 0) {
    return celu_of_float64(builder, builder.convert(x, DataType::Float64), alpha);
  }
  const Id factor = like(builder, x, alpha);
  const Id zero = like(builder, x, 0);
  const Id quotient = alpha == 1 ? x : builder.divide(x, factor);
  const Id below = builder.multiply(factor, expm1(builder, quotient));
  // The sum makes a positive zero of a negative one.
  return builder.select(builder.less(x, zero), below, builder.add(x, zero));
}

Id lower_selu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const double alpha = attribute(lowering, "alpha");
  const double gamma = attribute(lowering, "gamma");
  const double product = alpha * gamma;
  const bool is_split =
      lowering.input_type(0) != DataType::Float64 && alpha > 0 && is_normal_float32(product);
  const Id given = lowering.number(0);
  const Id x = is_split ? given : builder.convert(given, DataType::Float64);
  const Id zero = like(builder, x, 0);
  if (!is_split) {
    const Id below = builder.multiply(like(builder, x, alpha), expm1(builder, x));
    return builder.multiply(like(builder, x, gamma),
                            builder.select(builder.less_or_equal(x, zero), below, x));
  }
  // The product of the attributes as the sum of two numbers.
  const double upper = static_cast<double>(static_cast<float>(product));
  const Id power = expm1(builder, x);
  const Id below = builder.fused_multiply_add(
      power, like(builder, x, upper), builder.multiply(power, like(builder, x, product - upper)));
  return builder.select(builder.less(x, zero), below, builder.multiply(like(builder, x, gamma), x));
}

// --- Tanh and Gelu -------------------------------------------------------------------------------

Id lower_tanh(const Lowering& lowering) { return tanh(lowering.builder, lowering.number(0)); }

// 0.5 * x * erfc(z) for z = -x / sqrt(2). 1 + erf(-z) would cancel.
Id gelu(Builder& builder, Id x) {
  const Id half = builder.multiply(like(builder, x, 0.5), x);
  if (!is_float32(builder, x)) {
    const Id z = builder.multiply(builder.negate(x), like(builder, x, M_SQRT1_2));
    return builder.multiply(half, erfc(builder, z));
  }
  // z as a sum of two numbers. The derivative of log(erfc) is about -(2 z + 0.15) for positive z.
  // Below -16, the result is 0 whatever the argument is, and the rest stays finite.
  const double upper = static_cast<double>(static_cast<float>(-M_SQRT1_2));
  const Id lowest = like(builder, x, -16);
  const Id argument = builder.select(builder.less(x, lowest), lowest, x);
  const Id z = builder.multiply(argument, like(builder, x, upper));
  const Id error = builder.fused_multiply_add(argument, like(builder, x, upper), builder.negate(z));
  const Id rest = builder.fused_multiply_add(argument, like(builder, x, -M_SQRT1_2 - upper), error);
  const Id slope = builder.fused_multiply_add(like(builder, x, 2), z, like(builder, x, 0.15));
  const Id zero = like(builder, x, 0);
  const Id change = builder.select(builder.less(zero, z), builder.multiply(rest, slope), zero);
  const Id tail = erfc(builder, z);
  return builder.multiply(half, builder.fused_multiply_add(builder.negate(tail), change, tail));
}

constexpr double kTanhScale = M_2_SQRTPI * M_SQRT1_2;
constexpr double kTanhCubic = 0.044715;

Id gelu_by_tanh_of_float64(Builder& builder, Id x) {
  const Id cube =
      builder.multiply(builder.multiply(builder.multiply(like(builder, x, kTanhCubic), x), x), x);
  const Id z = builder.multiply(like(builder, x, kTanhScale), builder.add(x, cube));
  const Id power = exp(builder, builder.multiply(like(builder, x, -2), z));
  return builder.divide(x, builder.add(like(builder, x, 1), power));
}

// 0.5 * (1 + tanh(z)) = 1 / (1 + exp(-2 z)), which does not cancel. exp multiplies a relative error
// of its argument by the argument, so 2 z is computed in float64.
Id gelu_by_tanh(Builder& builder, Id x) {
  // Beyond these arguments, the result is 0 or x.
  const Id argument = builder.convert(clamped(builder, x, -10, 10), DataType::Float64);
  const Id square = builder.multiply(argument, argument);
  const Id factor =
      builder.fused_multiply_add(like(builder, argument, -2 * kTanhScale * kTanhCubic), square,
                                 like(builder, argument, -2 * kTanhScale));
  const Id z = builder.multiply(argument, factor);
  const Id upper = builder.convert(z, DataType::Float32);
  const Id rest = builder.convert(builder.subtract(z, builder.convert(upper, DataType::Float64)),
                                  DataType::Float32);
  const Id power = exp(builder, upper);
  const Id corrected = builder.fused_multiply_add(power, rest, power);
  const Id quotient = builder.divide(x, builder.add(like(builder, x, 1), corrected));
  const Id zero = builder.multiply(x, like(builder, x, 0));
  return builder.select(builder.less(x, like(builder, x, -10)), zero, quotient);
}

Id lower_gelu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  if (lowering.node.attributes.get_string("approximate") != "tanh") return gelu(builder, x);
  return is_float32(builder, x) ? gelu_by_tanh(builder, x) : gelu_by_tanh_of_float64(builder, x);
}

// --- The table -----------------------------------------------------------------------------------

constexpr ops::TypeSet kShrinkTypes =
    ops::kIntegerTypes | ops::TypeSet{DataType::Float16, DataType::Float32, DataType::Float64};

// Where exp is denormal, its error is multiplied by x, which is below 110 for Mish, and below 400
// for Swish if |alpha| is at least 0.3; for smaller ones, the error of denormal results grows with
// x.
constexpr double kLeastProduct = 0x1p-117;
constexpr double kLeastFloat64Product = 0x1p-1010;

constexpr FusionRow activation_op(std::string_view name, Id (*lower)(const Lowering&),
                                  ErrorBound float32 = {}, ErrorBound float64 = {}) {
  return {name, FusionKind::Elementwise, ops::kFloatTypes, lower, place_first, float32, float64};
}

constexpr FusionRow kActivationRows[] = {
    activation_op("Celu", lower_celu, {3}, {3}),
    activation_op("Elu", lower_elu, {3}, {3}),
    activation_op("Gelu", lower_gelu, {3, 0x1p-124}, {10, 0x1p-1020}),
    activation_op("HardSigmoid", lower_hard_sigmoid, {1}),
    activation_op("HardSwish", lower_hard_swish, {3}),
    activation_op("LeakyRelu", lower_leaky_relu),
    activation_op("Mish", lower_mish, {4, kLeastProduct}, {6, kLeastFloat64Product}),
    {"Relu", FusionKind::Elementwise, ops::kFloatTypes | ops::kSignedIntegerTypes, lower_relu,
     place_first},
    activation_op("Selu", lower_selu, {3}, {4}),
    {"Shrink", FusionKind::Elementwise, kShrinkTypes, lower_shrink, place_first},
    activation_op("Sigmoid", lower_sigmoid, {3}, {3}),
    activation_op("Softplus", lower_softplus, {3}, {3}),
    activation_op("Softsign", lower_softsign, {2}),
    activation_op("Swish", lower_swish, {4, kLeastProduct}, {4, kLeastFloat64Product}),
    activation_op("Tanh", lower_tanh, {2}, {3}),
    activation_op("ThresholdedRelu", lower_thresholded_relu),
};

}  // namespace

std::span<const FusionRow> activation_rows() { return kActivationRows; }

}  // namespace tessera::codegen
