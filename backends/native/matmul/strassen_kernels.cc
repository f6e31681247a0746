// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "matmul/strassen_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul/strassen_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/float_functions.h"
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE Vector load_or_zero(const float* from, int64_t position, int64_t count) {
  return from == nullptr ? hn::Zero(Tag()) : load_some(Tag(), from + position, count);
}

void add_quarters(const StrassenRow& row, int64_t count) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t position = 0; position < count; position += lanes) {
    const int64_t some = count - position < lanes ? count - position : lanes;
    const Vector upper_left = load_or_zero(row.upper_left, position, some);
    const Vector lower_left = load_or_zero(row.lower_left, position, some);
    const Vector lower = hn::Add(lower_left, load_or_zero(row.lower_right, position, some));
    const Vector rest = hn::Sub(lower, upper_left);
    store_some(lower, d, row.sums[0] + position, some);
    store_some(rest, d, row.sums[1] + position, some);
    store_some(hn::Sub(upper_left, lower_left), d, row.sums[2] + position, some);
    const Vector upper_right = load_or_zero(row.upper_right, position, some);
    store_some(hn::Sub(upper_right, rest), d, row.sums[3] + position, some);
  }
}

void add(const StrassenSum& sum, int64_t count) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float low = sum.activation.lower_limit();
  const float high = sum.activation.upper_limit();
  for (int64_t position = 0; position < count; position += lanes) {
    const int64_t some = count - position < lanes ? count - position : lanes;
    Vector result =
        hn::Add(load_some(d, sum.first + position, some), load_or_zero(sum.second, position, some));
    if (sum.bias != nullptr) result = hn::Add(result, load_some(d, sum.bias + position, some));
    if (sum.addend != nullptr) result = hn::Add(result, load_some(d, sum.addend + position, some));
    store_some(clamp(d, result, low, high), d, sum.to + position, some);
  }
}

StrassenLoops all_loops() { return {add_quarters, add}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {
HWY_EXPORT(all_loops);
}  // namespace

StrassenLoops find_strassen_loops() { return HWY_DYNAMIC_DISPATCH(all_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
