// Functions of one float32 or float64. Included once for each instruction set by foreach_target.h:
// HWY_NAMESPACE differs each time.
#include <cmath>
#include <span>
#include <string_view>

#include "elementwise/element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise/unary_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/float_functions.h"
#include "elementwise/vector_map.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// FUNCTION(Name, expression of d, x and p) defines a function for the table below. Comparisons are
// written so that NaN takes the branch that returns it.
#define FUNCTION(Name, ...)                                                                   \
  struct Name {                                                                               \
    template <class D, class V>                                                               \
    static HWY_INLINE V of([[maybe_unused]] D d, V x, [[maybe_unused]] const Parameters& p) { \
      return __VA_ARGS__;                                                                     \
    }                                                                                         \
  };

template <class D, class V>
HWY_INLINE V relu_of(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

template <class D, class V>
HWY_INLINE auto is_negative(D d, V x) {
  return hn::Lt(x, hn::Zero(d));
}

// --- Arithmetic ----------------------------------------------------------------------------------

FUNCTION(Abs, hn::Abs(x))
FUNCTION(Ceil, hn::Ceil(x))
FUNCTION(Exp, exp_of(d, x))
FUNCTION(Floor, hn::Floor(x))
FUNCTION(Log, log_of(d, x))
FUNCTION(Neg, hn::Neg(x))
FUNCTION(Reciprocal, hn::Div(hn::Set(d, 1.0F), x))
FUNCTION(Round, hn::Round(x))
FUNCTION(Sqrt, hn::Sqrt(x))
FUNCTION(Erf, erf_of(d, x))
FUNCTION(Scale, hn::Mul(x, hn::Set(d, p.alpha)))
FUNCTION(Square, hn::Mul(x, x))
FUNCTION(Cube, hn::Mul(hn::Mul(x, x), x))
FUNCTION(Clip, clamp(d, x, p.alpha, p.beta))

struct Sign {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V zero = hn::Zero(d);
    const V positive = hn::IfThenElse(hn::Gt(x, zero), hn::Set(d, 1.0F), x);
    return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, -1.0F), positive);
  }
};

struct SqrtPow {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    // As pow() does, it gives infinity for negative infinity, of which the square root is NaN, and
    // zero for negative zero, of which the square root is negative.
    const V root = hn::Sqrt(hn::Add(x, hn::Zero(d)));
    return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), hn::Inf(d), root);
  }
};

// --- Trigonometry --------------------------------------------------------------------------------

// Applies Function::of_angle(d, angle) if all angles are small enough, else the large ones one by
// one.
template <class Function>
struct OfAngle {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V result = Function::of_angle(d, angle_of(d, x));
    if (hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kMaxAngle)))) return result;
    return with_large_angles(d, x, result);
  }
  template <class D, class V>
  static HWY_NOINLINE V with_large_angles(D d, V x, V result) {
    HWY_ALIGN float angles[hn::MaxLanes(D())];
    HWY_ALIGN float results[hn::MaxLanes(D())];
    hn::Store(x, d, angles);
    hn::Store(result, d, results);
    for (size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      if (std::fabs(angles[lane]) <= kMaxAngle) continue;
      results[lane] = static_cast<float>(Function::of_number(static_cast<double>(angles[lane])));
    }
    return hn::Load(d, results);
  }
};

// Lanes whose angle is an odd number of quarters away from the reduced one.
template <class D, class I>
HWY_INLINE auto is_odd(D d, I quarters) {
  const IntegersOf<D> di;
  const auto one = hn::Set(di, int32_t{1});
  return hn::RebindMask(d, hn::Eq(hn::And(quarters, one), one));
}

// `x` with its sign flipped if bit 1 of `quarters` is set.
template <class D, class V, class I>
HWY_INLINE V with_sign_flipped(D d, V x, I quarters) {
  const IntegersOf<D> di;
  const auto bit = hn::And(quarters, hn::Set(di, int32_t{2}));
  return hn::Xor(x, hn::BitCast(d, hn::ShiftLeft<30>(bit)));
}

struct Sin {
  template <class D, class V>
  static HWY_INLINE V of_angle(D d, const Angle<D, V>& angle) {
    const V part = hn::IfThenElse(is_odd(d, angle.quarters), angle.cosine, angle.sine);
    return with_sign_flipped(d, part, angle.quarters);
  }
  static double of_number(double x) { return std::sin(x); }
};

struct Cos {
  template <class D, class V>
  static HWY_INLINE V of_angle(D d, const Angle<D, V>& angle) {
    const IntegersOf<D> di;
    const V part = hn::IfThenElse(is_odd(d, angle.quarters), angle.sine, angle.cosine);
    return with_sign_flipped(d, part, hn::Add(angle.quarters, hn::Set(di, int32_t{1})));
  }
  static double of_number(double x) { return std::cos(x); }
};

struct Tan {
  template <class D, class V>
  static HWY_INLINE V of_angle(D d, const Angle<D, V>& angle) {
    const auto odd = is_odd(d, angle.quarters);
    const V upper = hn::IfThenElse(odd, hn::Neg(angle.cosine), angle.sine);
    return hn::Div(upper, hn::IfThenElse(odd, angle.sine, angle.cosine));
  }
  static double of_number(double x) { return std::tan(x); }
};

// Highway's functions are accurate enough, but undefined outside of their domains.
template <class D, class V, class M>
HWY_INLINE V nan_where(D d, M mask, V x) {
  return hn::IfThenElse(mask, hn::NaN(d), x);
}

struct Acos {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const auto is_inside = hn::Le(hn::Abs(x), hn::Set(d, 1.0F));
    return nan_where(d, hn::Not(is_inside), hn::Acos(d, x));
  }
};

struct Asin {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const auto is_inside = hn::Le(hn::Abs(x), hn::Set(d, 1.0F));
    return nan_where(d, hn::Not(is_inside), hn::Asin(d, x));
  }
};

struct Atan {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V bounded = clamp(d, x, -1e30F, 1e30F);
    return nan_where(d, hn::IsNaN(x), hn::Atan(d, bounded));
  }
};

struct Acosh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V one = hn::Set(d, 1.0F);
    // For large x, x^2 - 1 rounds to x^2, and log(x + sqrt(x^2 - 1)) is log(2 x).
    const V large = hn::Add(log_of(d, x), hn::Set(d, 0.693147180559945F));
    const V result =
        hn::IfThenElse(hn::Gt(x, hn::Set(d, 1e6F)), large, hn::Acosh(d, clamp_max(d, x, 1e6F)));
    return nan_where(d, hn::Not(hn::Ge(x, one)), result);
  }
};

struct Asinh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V given, const Parameters&) {
    const V x = hn::Abs(given);
    const V large = hn::Add(log_of(d, x), hn::Set(d, 0.693147180559945F));
    V result =
        hn::IfThenElse(hn::Gt(x, hn::Set(d, 1e6F)), large, hn::Asinh(d, clamp_max(d, x, 1e6F)));
    const V small = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, -1.0F / 6), x);
    result = hn::IfThenElse(hn::Lt(x, hn::Set(d, 1e-3F)), small, result);
    return nan_where(d, hn::IsNaN(given), hn::CopySign(result, given));
  }
};

struct Atanh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V one = hn::Set(d, 1.0F);
    const V size = hn::Abs(x);
    // Close to 1, 1 - |x| is exact.
    const V inner = clamp(d, size, 0.0F, 0x1.fffffep-1F);
    const V logarithm = log_of(d, hn::Div(hn::Add(one, inner), hn::Sub(one, inner)));
    const V near_one = hn::CopySign(hn::Mul(hn::Set(d, 0.5F), logarithm), x);
    V result = hn::Atanh(d, clamp(d, x, -0.75F, 0.75F));
    result = hn::IfThenElse(hn::Gt(size, hn::Set(d, 0.75F)), near_one, result);
    const V small = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 1.0F / 3), x);
    result = hn::IfThenElse(hn::Lt(size, hn::Set(d, 1e-3F)), small, result);
    result = hn::IfThenElse(hn::Eq(size, one), hn::CopySign(hn::Inf(d), x), result);
    return nan_where(d, hn::Not(hn::Le(size, one)), result);
  }
};

struct Cosh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    // Computed from sqrt(exp(|x|)), which does not overflow if the result does not.
    const V half_of = hn::Set(d, 0.5F);
    const V root = exp_of(d, hn::Mul(hn::Abs(x), half_of));
    const V half = hn::Mul(root, half_of);
    return hn::MulAdd(half, root, hn::Div(half_of, hn::Mul(root, root)));
  }
};

struct Sinh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V given, const Parameters&) {
    // From exp(|x|) - 1 for small x; from sqrt(exp(|x|)) for large x, as in Cosh.
    const V x = hn::Abs(given);
    const V one = hn::Set(d, 1.0F);
    const V half = hn::Set(d, 0.5F);
    const V less_one = expm1_of(d, clamp_max(d, x, 20.0F));
    V result = hn::Mul(half, hn::Add(less_one, hn::Div(less_one, hn::Add(less_one, one))));
    const auto is_large = hn::Gt(x, hn::Set(d, 20.0F));
    if (!hn::AllFalse(d, is_large)) {
      const V root = exp_of(d, hn::Mul(x, half));
      result = hn::IfThenElse(is_large, hn::Mul(hn::Mul(root, half), root), result);
    }
    return hn::CopySign(result, given);
  }
};

// --- Neural networks -----------------------------------------------------------------------------

FUNCTION(Relu, relu_of(d, x))
FUNCTION(Sigmoid, sigmoid_of(d, x))
FUNCTION(Tanh, tanh_of(d, x))
FUNCTION(Softsign, hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Abs(x))))
FUNCTION(LeakyRelu, hn::IfThenElse(is_negative(d, x), hn::Mul(x, hn::Set(d, p.alpha)), x))
// NaN becomes 0, as ONNX defines it.
FUNCTION(ThresholdedRelu, hn::IfThenElseZero(hn::Gt(x, hn::Set(d, p.alpha)), x))
FUNCTION(Elu, hn::IfThenElse(is_negative(d, x),
                             hn::Mul(hn::Set(d, p.alpha), expm1_of(d, clamp_max(d, x, 0.0F))), x))
FUNCTION(Swish, swish_of(d, x, p.alpha))
FUNCTION(HardSigmoid, clamp(d, hn::MulAdd(hn::Set(d, p.alpha), x, hn::Set(d, p.beta)), 0.0F, 1.0F))
FUNCTION(HardSwish, hn::Mul(x, hard_gate(d, x)))

struct Selu {
  // p.beta is ONNX's gamma.
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters& p) {
    const V negative = hn::Mul(hn::Set(d, p.alpha), expm1_of(d, clamp_max(d, x, 0.0F)));
    return hn::Mul(hn::Set(d, p.beta), hn::IfThenElse(is_negative(d, x), negative, x));
  }
};

struct Celu {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters& p) {
    const V alpha = hn::Set(d, p.alpha);
    const V negative = hn::Mul(alpha, expm1_of(d, hn::Div(x, alpha)));
    // NaN if alpha is 0, as in the formula.
    const V below = hn::IfThenZeroElse(hn::Ge(negative, hn::Zero(d)), negative);
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(relu_of(d, x), below));
  }
};

// Below -87 the result would be subnormal and is 0, as in Sigmoid.
struct Softplus {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V power = exp_of_negative(d, hn::Neg(hn::Abs(x)));
    return hn::Add(relu_of(d, x), log1p_of_fraction(d, power));
  }
};

struct Mish {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    // tanh(log(1 + e)) = ((1 + e)^2 - 1) / ((1 + e)^2 + 1) with e = exp(x); 1 from 20 on.
    const V two = hn::Set(d, 2.0F);
    const V e = exp_of(d, clamp_max(d, x, 20.0F));
    const V upper = hn::Mul(e, hn::Add(e, two));
    const V result = hn::Mul(x, hn::Div(upper, hn::Add(upper, two)));
    const auto is_far = hn::Lt(x, hn::Set(d, kSwishFar));
    if (hn::AllFalse(d, is_far)) return result;
    return hn::IfThenElse(is_far, times_small_power(d, x, x), result);
  }
};

struct Shrink {
  // p.alpha is ONNX's lambd, p.beta its bias.
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters& p) {
    const V bias = hn::Set(d, p.beta);
    const V above = hn::IfThenElseZero(hn::Gt(x, hn::Set(d, p.alpha)), hn::Sub(x, bias));
    return hn::IfThenElse(hn::Lt(x, hn::Set(d, -p.alpha)), hn::Add(x, bias), above);
  }
};

FUNCTION(Gelu, gelu_of(d, x))
FUNCTION(GeluTanh, gelu_tanh_of(d, x))

#undef FUNCTION

struct NamedLoops {
  std::string_view op;
  LoopSet loops;
};
const NamedLoops kFunctions[] = {
    {"Abs", unary_loops<Abs>()},
    {"Acos", unary_loops<Acos>()},
    {"Acosh", unary_loops<Acosh>()},
    {"Asin", unary_loops<Asin>()},
    {"Asinh", unary_loops<Asinh>()},
    {"Atan", unary_loops<Atan>()},
    {"Atanh", unary_loops<Atanh>()},
    {"Ceil", unary_loops<Ceil>()},
    {"Celu", unary_loops<Celu>()},
    {"Clip", unary_loops<Clip>()},
    {"Cos", unary_loops<OfAngle<Cos>>()},
    {"Cosh", unary_loops<Cosh>()},
    {"Cube", unary_loops<Cube>()},
    {"Elu", unary_loops<Elu>()},
    {"Erf", unary_loops<Erf>()},
    {"Exp", unary_loops<Exp>()},
    {"Floor", unary_loops<Floor>()},
    {"Gelu", unary_loops<Gelu>()},
    {"GeluTanh", unary_loops<GeluTanh>()},
    {"HardSigmoid", unary_loops<HardSigmoid>()},
    {"HardSwish", unary_loops<HardSwish>()},
    {"LeakyRelu", unary_loops<LeakyRelu>()},
    {"Log", unary_loops<Log>()},
    {"Mish", unary_loops<Mish>()},
    {"Neg", unary_loops<Neg>()},
    {"Reciprocal", unary_loops<Reciprocal>()},
    {"Relu", unary_loops<Relu>()},
    {"SqrtPow", unary_loops<SqrtPow>()},
    {"Round", unary_loops<Round>()},
    {"Scale", unary_loops<Scale>()},
    {"Selu", unary_loops<Selu>()},
    {"Shrink", unary_loops<Shrink>()},
    {"Sigmoid", unary_loops<Sigmoid>()},
    {"Sign", unary_loops<Sign>()},
    {"Sin", unary_loops<OfAngle<Sin>>()},
    {"Sinh", unary_loops<Sinh>()},
    {"Softplus", unary_loops<Softplus>()},
    {"Softsign", unary_loops<Softsign>()},
    {"Sqrt", unary_loops<Sqrt>()},
    {"Square", unary_loops<Square>()},
    {"Swish", unary_loops<Swish>()},
    {"Tan", unary_loops<OfAngle<Tan>>()},
    {"Tanh", unary_loops<Tanh>()},
    {"ThresholdedRelu", unary_loops<ThresholdedRelu>()},
};

// --- Float64 -------------------------------------------------------------------------------------

#if HWY_HAVE_FLOAT64

// Highway's functions, and what they leave undefined.

// `x` between `low` and `high`; anything if it is NaN.
template <class D, class V>
HWY_INLINE V limited(D d, V x, double low, double high) {
  return hn::Max(hn::Min(x, hn::Set(d, high)), hn::Set(d, low));
}

// Beyond, the result is 0 or infinite.
constexpr double kLargestPower = 750;

struct WideExp {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    return nan_where(d, hn::IsNaN(x), hn::Exp(d, limited(d, x, -kLargestPower, kLargestPower)));
  }
};

struct WideLog {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    const V infinity = hn::Inf(d);
    V result = hn::IfThenElse(hn::Eq(x, infinity), infinity, hn::Log(d, x));
    result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
    return nan_where(d, hn::Not(hn::Ge(x, hn::Zero(d))), result);
  }
};

struct WideSigmoid {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    // From exp(-|x|), which cannot overflow.
    const V one = hn::Set(d, 1.0);
    const V power = hn::Exp(d, limited(d, hn::Neg(hn::Abs(x)), -kLargestPower, 0));
    const V upper = hn::IfThenElse(is_negative(d, x), power, one);
    return nan_where(d, hn::IsNaN(x), hn::Div(upper, hn::Add(one, power)));
  }
};

struct WideTanh {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, const Parameters&) {
    // From 20 on, float64 cannot tell the result from 1.
    return nan_where(d, hn::IsNaN(x), hn::Tanh(d, limited(d, x, -20, 20)));
  }
};

const NamedLoops kWideFunctions[] = {
    {"Ceil", unary_loops<Ceil, double>()},
    {"Exp", unary_loops<WideExp, double>()},
    {"Floor", unary_loops<Floor, double>()},
    {"LeakyRelu", unary_loops<LeakyRelu, double>()},
    {"Log", unary_loops<WideLog, double>()},
    {"Reciprocal", unary_loops<Reciprocal, double>()},
    {"Relu", unary_loops<Relu, double>()},
    {"Round", unary_loops<Round, double>()},
    {"Sigmoid", unary_loops<WideSigmoid, double>()},
    {"Softsign", unary_loops<Softsign, double>()},
    {"Sqrt", unary_loops<Sqrt, double>()},
    {"Tanh", unary_loops<WideTanh, double>()},
    {"ThresholdedRelu", unary_loops<ThresholdedRelu, double>()},
};

#endif

LoopSet find_in(std::span<const NamedLoops> functions, std::string_view op) {
  for (const NamedLoops& named : functions) {
    if (named.op == op) return named.loops;
  }
  return {};
}

}  // namespace

LoopSet unary_loops_of(std::string_view op, int32_t type) {
  if (type == TESSERA_FLOAT32) return find_in(kFunctions, op);
#if HWY_HAVE_FLOAT64
  if (type == TESSERA_FLOAT64) return find_in(kWideFunctions, op);
#endif
  return {};
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(unary_loops_of);

LoopSet find_unary_loops(std::string_view op, int32_t type) {
  return HWY_DYNAMIC_DISPATCH(unary_loops_of)(op, type);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
