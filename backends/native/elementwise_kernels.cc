// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "elementwise_kernels.h"

#include <string_view>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Function>
void for_each(const float* HWY_RESTRICT from, float* HWY_RESTRICT to, int64_t count,
              const Function& function) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) {
    hn::StoreU(function(d, hn::LoadU(d, from + index)), d, to + index);
  }
  // One masked step would read past the end on some instruction sets.
  const hn::CappedTag<float, 1> one;
  for (; index < count; ++index) {
    hn::StoreU(function(one, hn::LoadU(one, from + index)), one, to + index);
  }
}

void abs(const float* from, float* to, int64_t count) {
  for_each(from, to, count, [](auto /*d*/, auto x) { return hn::Abs(x); });
}

void exp(const float* from, float* to, int64_t count) {
  for_each(from, to, count, [](auto d, auto x) { return hn::Exp(d, x); });
}

void neg(const float* from, float* to, int64_t count) {
  for_each(from, to, count, [](auto /*d*/, auto x) { return hn::Neg(x); });
}

struct NamedLoop {
  std::string_view op;
  UnaryLoop loop;
};
constexpr NamedLoop kLoops[] = {
    {"Abs", abs},
    {"Exp", exp},
    {"Neg", neg},
};

UnaryLoop loop_of(std::string_view op) {
  for (const NamedLoop& named : kLoops) {
    if (named.op == op) return named.loop;
  }
  return nullptr;
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loop_of);

UnaryLoop find_unary_loop(std::string_view op) { return HWY_DYNAMIC_DISPATCH(loop_of)(op); }

}  // namespace tessera::native

#endif  // HWY_ONCE
