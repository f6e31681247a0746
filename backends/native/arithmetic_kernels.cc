// Arithmetic of two operands. Included once for each instruction set by foreach_target.h:
// HWY_NAMESPACE differs each time.
#include <cmath>
#include <string_view>

#include "element_functions.h"
#include "element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arithmetic_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "hwy/contrib/math/math-inl.h"
#include "plain_loops.h"
#include "vector_map.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

#define FUNCTION(Name, ...)                                  \
  struct Name {                                              \
    template <class D, class V>                              \
    static HWY_INLINE V of([[maybe_unused]] D d, V x, V y) { \
      return __VA_ARGS__;                                    \
    }                                                        \
  };

FUNCTION(Add, hn::Add(x, y))
FUNCTION(Sub, hn::Sub(x, y))
FUNCTION(Mul, hn::Mul(x, y))
FUNCTION(Div, hn::Div(x, y))
// NaN where either is.
FUNCTION(Min,
         hn::IfThenElse(hn::Or(hn::Lt(y, x), hn::IsNaN(y)), hn::IfThenElse(hn::IsNaN(x), x, y), x))
FUNCTION(Max,
         hn::IfThenElse(hn::Or(hn::Gt(y, x), hn::IsNaN(y)), hn::IfThenElse(hn::IsNaN(x), x, y), x))
FUNCTION(AtLeast, hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(y)), y, x))
FUNCTION(AtMost, hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(y)), y, x))
FUNCTION(PRelu, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, y)))

#undef FUNCTION

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR

// exp(y log(x)) in float64, for x > 0 and both finite.
template <class D, class V>
HWY_INLINE V power_of_half(D d, V base, V exponent) {
  const hn::Rebind<double, D> wide;
  const auto product =
      hn::Mul(hn::PromoteTo(wide, exponent), hn::Log(wide, hn::PromoteTo(wide, base)));
  // Beyond these bounds the result is 0 or infinite as a float32.
  const auto bounded = hn::Min(hn::Max(product, hn::Set(wide, -200.0)), hn::Set(wide, 200.0));
  return hn::DemoteTo(d, hn::Exp(wide, bounded));
}

struct Pow {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, V y) {
    const auto is_plain = hn::And(hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Inf(d))),
                                  hn::Lt(hn::Abs(y), hn::Inf(d)));
    if (!hn::AllTrue(d, is_plain)) return one_by_one(d, x, y);
    const hn::Half<D> half;
    const auto low = power_of_half(half, hn::LowerHalf(half, x), hn::LowerHalf(half, y));
    const auto high = power_of_half(half, hn::UpperHalf(half, x), hn::UpperHalf(half, y));
    return hn::Combine(d, high, low);
  }
  template <class D, class V>
  static HWY_NOINLINE V one_by_one(D d, V x, V y) {
    HWY_ALIGN float bases[hn::MaxLanes(D())];
    HWY_ALIGN float exponents[hn::MaxLanes(D())];
    hn::Store(x, d, bases);
    hn::Store(y, d, exponents);
    for (size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      bases[lane] = element::Pow::of(bases[lane], exponents[lane]);
    }
    return hn::Load(d, bases);
  }
};

constexpr LoopSet kPow = pair_loops<Pow>();

#else

constexpr LoopSet kPow = plain_pair<element::Pow, float>();

#endif

struct NamedLoops {
  std::string_view op;
  LoopSet floats;
  LoopSet doubles;
  LoopSet int32;
  LoopSet int64;
};
const NamedLoops kArithmetic[] = {
    {"Add", pair_loops<Add>(), plain_pair<element::Add, double>(),
     plain_pair<element::Add, int32_t>(), plain_pair<element::Add, int64_t>()},
    {"AtLeast", pair_loops<AtLeast>(), plain_pair<element::AtLeast, double>(),
     plain_pair<element::AtLeast, int32_t>(), plain_pair<element::AtLeast, int64_t>()},
    {"AtMost", pair_loops<AtMost>(), plain_pair<element::AtMost, double>(),
     plain_pair<element::AtMost, int32_t>(), plain_pair<element::AtMost, int64_t>()},
    {"Div", pair_loops<Div>(), plain_pair<element::Div, double>(), {}, {}},
    {"Max", pair_loops<Max>(), plain_pair<element::Max, double>(),
     plain_pair<element::Max, int32_t>(), plain_pair<element::Max, int64_t>()},
    {"Min", pair_loops<Min>(), plain_pair<element::Min, double>(),
     plain_pair<element::Min, int32_t>(), plain_pair<element::Min, int64_t>()},
    {"Mul", pair_loops<Mul>(), plain_pair<element::Mul, double>(),
     plain_pair<element::Mul, int32_t>(), plain_pair<element::Mul, int64_t>()},
    {"PRelu", pair_loops<PRelu>(), plain_pair<element::Sloped, double>(),
     plain_pair<element::Sloped, int32_t>(), plain_pair<element::Sloped, int64_t>()},
    {"Pow", kPow, {}, {}, {}},
    {"Sub", pair_loops<Sub>(), plain_pair<element::Sub, double>(),
     plain_pair<element::Sub, int32_t>(), plain_pair<element::Sub, int64_t>()},
};

}  // namespace

LoopSet arithmetic_loops_of(std::string_view op, int32_t type) {
  for (const NamedLoops& named : kArithmetic) {
    if (named.op != op) continue;
    if (type == TESSERA_FLOAT32) return named.floats;
    if (type == TESSERA_FLOAT64) return named.doubles;
    if (type == TESSERA_INT32) return named.int32;
    if (type == TESSERA_INT64) return named.int64;
  }
  return {};
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(arithmetic_loops_of);

LoopSet find_arithmetic_loops(std::string_view op, int32_t type) {
  return HWY_DYNAMIC_DISPATCH(arithmetic_loops_of)(op, type);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
