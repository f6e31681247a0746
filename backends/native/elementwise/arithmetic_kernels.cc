// Arithmetic of two operands. Included once for each instruction set by foreach_target.h:
// HWY_NAMESPACE differs each time.
#include <cmath>
#include <string_view>

#include "elementwise/element_functions.h"
#include "elementwise/element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise/arithmetic_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "elementwise/generic_loops.h"
#include "elementwise/vector_map.h"
#include "hwy/contrib/math/math-inl.h"

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
// NaN if either is NaN.
FUNCTION(Min,
         hn::IfThenElse(hn::Or(hn::Lt(y, x), hn::IsNaN(y)), hn::IfThenElse(hn::IsNaN(x), x, y), x))
FUNCTION(Max,
         hn::IfThenElse(hn::Or(hn::Gt(y, x), hn::IsNaN(y)), hn::IfThenElse(hn::IsNaN(x), x, y), x))
FUNCTION(ClipMin, hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(y)), y, x))
FUNCTION(ClipMax, hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(y)), y, x))
FUNCTION(PRelu, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, y)))

#undef FUNCTION

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR

// exp(y log(x)) in float64, for x > 0 and both finite.
template <class D, class V>
HWY_INLINE V power_of_half(D d, V base, V exponent) {
  const hn::Rebind<double, D> wide;
  const auto product =
      hn::Mul(hn::PromoteTo(wide, exponent), hn::Log(wide, hn::PromoteTo(wide, base)));
  // Beyond these bounds the result rounds to 0 or infinity in float32.
  const auto bounded = hn::Min(hn::Max(product, hn::Set(wide, -200.0)), hn::Set(wide, 200.0));
  return hn::DemoteTo(d, hn::Exp(wide, bounded));
}

struct Pow {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, V y) {
    const auto is_regular = hn::And(hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Inf(d))),
                                    hn::Lt(hn::Abs(y), hn::Inf(d)));
    if (!hn::AllTrue(d, is_regular)) return one_by_one(d, x, y);
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

constexpr LoopSet kPow = binary_loops<Pow>();

#else

constexpr LoopSet kPow = generic_binary_loops<element::Pow, float>();

#endif

struct NamedLoops {
  std::string_view op;
  LoopSet floats;
  LoopSet doubles;
  LoopSet int32;
  LoopSet int64;
};
const NamedLoops kArithmetic[] = {
    {"Add", binary_loops<Add>(), generic_binary_loops<element::Add, double>(),
     generic_binary_loops<element::Add, int32_t>(), generic_binary_loops<element::Add, int64_t>()},
    {"ClipMin", binary_loops<ClipMin>(), generic_binary_loops<element::ClipMin, double>(),
     generic_binary_loops<element::ClipMin, int32_t>(),
     generic_binary_loops<element::ClipMin, int64_t>()},
    {"ClipMax", binary_loops<ClipMax>(), generic_binary_loops<element::ClipMax, double>(),
     generic_binary_loops<element::ClipMax, int32_t>(),
     generic_binary_loops<element::ClipMax, int64_t>()},
    {"Div", binary_loops<Div>(), generic_binary_loops<element::Div, double>(), {}, {}},
    {"Max", binary_loops<Max>(), generic_binary_loops<element::Max, double>(),
     generic_binary_loops<element::Max, int32_t>(), generic_binary_loops<element::Max, int64_t>()},
    {"Min", binary_loops<Min>(), generic_binary_loops<element::Min, double>(),
     generic_binary_loops<element::Min, int32_t>(), generic_binary_loops<element::Min, int64_t>()},
    {"Mul", binary_loops<Mul>(), generic_binary_loops<element::Mul, double>(),
     generic_binary_loops<element::Mul, int32_t>(), generic_binary_loops<element::Mul, int64_t>()},
    {"PRelu", binary_loops<PRelu>(), generic_binary_loops<element::PRelu, double>(),
     generic_binary_loops<element::PRelu, int32_t>(),
     generic_binary_loops<element::PRelu, int64_t>()},
    {"Pow", kPow, {}, {}, {}},
    {"Sub", binary_loops<Sub>(), generic_binary_loops<element::Sub, double>(),
     generic_binary_loops<element::Sub, int32_t>(), generic_binary_loops<element::Sub, int64_t>()},
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
