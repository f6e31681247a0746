// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "reduce/arg_max_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/arg_max_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The first index, or the last one, at which is_sought(element) holds. Requires that there is one.
template <class IsSought>
int64_t search(const float* from, int64_t count, bool is_last, const IsSought& is_sought) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::CappedTag<float, 1> one;
  const auto is_one = [&](int64_t position) {
    return hn::AllTrue(one, is_sought(one, hn::LoadU(one, from + position)));
  };
  if (is_last) {
    int64_t end = count;
    while (end >= lanes && hn::AllFalse(d, is_sought(d, hn::LoadU(d, from + end - lanes)))) {
      end -= lanes;
    }
    while (!is_one(end - 1)) --end;
    return end - 1;
  }
  int64_t begin = 0;
  while (begin + lanes <= count && hn::AllFalse(d, is_sought(d, hn::LoadU(d, from + begin)))) {
    begin += lanes;
  }
  while (!is_one(begin)) ++begin;
  return begin;
}

int64_t row(const ArgRule& rule, const float* from, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The smallest element is the largest of the negated ones.
  const auto sign = hn::Set(d, rule.is_max ? 1.0F : -1.0F);
  const auto start = hn::Set(d, -INFINITY);
  auto best = start;
  auto other = start;
  auto nan = hn::Zero(d);  // NaN as soon as one was found
  int64_t index = 0;
  for (; index + 2 * lanes <= count; index += 2 * lanes) {
    const auto first = hn::Mul(sign, hn::LoadU(d, from + index));
    const auto second = hn::Mul(sign, hn::LoadU(d, from + index + lanes));
    best = hn::IfThenElse(hn::Gt(first, best), first, best);
    other = hn::IfThenElse(hn::Gt(second, other), second, other);
    nan = hn::IfThenElse(hn::IsNaN(first), first, nan);
    nan = hn::IfThenElse(hn::IsNaN(second), second, nan);
  }
  best = hn::IfThenElse(hn::Gt(other, best), other, best);
  float largest = hn::GetLane(hn::MaxOfLanes(d, best));
  bool has_nan = !hn::AllFalse(d, hn::IsNaN(nan));
  for (; index < count; ++index) {
    const float element = rule.is_max ? from[index] : -from[index];
    if (element != element) has_nan = true;
    if (element > largest) largest = element;
  }
  if (has_nan) {
    return search(from, count, rule.is_last, [](auto /*d*/, auto x) { return hn::IsNaN(x); });
  }
  const float winner = rule.is_max ? largest : -largest;
  return search(from, count, rule.is_last,
                [winner](auto tag, auto x) { return hn::Eq(x, hn::Set(tag, winner)); });
}

// Processes one vector of lines.
template <class D>
HWY_INLINE void columns_at(D d, const ArgRule& rule, const float* from, int64_t count,
                           int64_t stride, int64_t* to) {
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto sign = hn::Set(d, rule.is_max ? 1.0F : -1.0F);
  auto best = hn::Mul(sign, hn::LoadU(d, from));
  auto positions = hn::Zero(di);
  for (int64_t index = 1; index < count; ++index) {
    const auto element = hn::Mul(sign, hn::LoadU(d, from + index * stride));
    const auto is_nan = hn::IsNaN(element);
    const auto is_beaten = hn::Eq(best, best);  // a NaN stays
    auto is_better = hn::Or(hn::Gt(element, best), hn::And(is_nan, is_beaten));
    if (rule.is_last) {
      is_better = hn::Or(is_better, hn::Or(hn::Eq(element, best), is_nan));
    }
    best = hn::IfThenElse(is_better, element, best);
    positions = hn::IfThenElse(hn::RebindMask(di, is_better),
                               hn::Set(di, static_cast<int32_t>(index)), positions);
  }
  HWY_ALIGN int32_t stored[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::Store(positions, di, stored);
  for (int64_t lane = 0; lane < lanes; ++lane) to[lane] = stored[lane];
}

void columns(const ArgRule& rule, const float* from, int64_t count, int64_t stride, int64_t lines,
             int64_t* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t line = 0;
  for (; line + lanes <= lines; line += lanes) {
    columns_at(d, rule, from + line, count, stride, to + line);
  }
  const hn::CappedTag<float, 1> one;
  for (; line < lines; ++line) columns_at(one, rule, from + line, count, stride, to + line);
}

ArgLoops arg_loops() { return {row, columns}; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(arg_loops);

ArgLoops find_arg_loops() { return HWY_DYNAMIC_DISPATCH(arg_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
