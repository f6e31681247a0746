// Totals of several rows at once: the lanes of one vector per row are combined into one vector with
// a lane per row. That takes far fewer steps than one row after the other, and the arithmetic that
// follows is done for all rows at once. foreach_target.h includes this header several times, so it
// has no ordinary include guard.
#if defined(TESSERA_NATIVE_ROW_TOTALS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_ROW_TOTALS_H
#undef TESSERA_NATIVE_ROW_TOTALS_H
#else
#define TESSERA_NATIVE_ROW_TOTALS_H
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One lane per row. More than eight long rows would not fit into the first-level cache.
using RowTag = hn::CappedTag<float, 8>;
using RowVector = hn::Vec<RowTag>;
// The number of rows handled at once; 1 if the number of lanes is 1 or not known at compile time.
inline constexpr int64_t kRowsAtOnce = HWY_HAVE_SCALABLE ? 1 : int64_t{hn::MaxLanes(RowTag())};

#if HWY_TARGET == HWY_SCALAR

template <class D, class Join>
HWY_INLINE RowVector folded(D /*d*/, hn::Vec<D> vector, const Join& /*join*/) {
  return vector;
}
template <class Join>
HWY_INLINE RowVector row_totals(const float* rows, const Join& /*join*/) {
  return hn::Load(RowTag(), rows);
}

#else

// Combines upper and lower halves until the vector of one row is as wide as RowTag.
template <class D, class Join>
HWY_INLINE RowVector folded(D /*d*/, hn::Vec<D> vector, const Join& join) {
  if constexpr (hn::MaxLanes(D()) <= hn::MaxLanes(RowTag())) {
    return vector;
  } else {
    const hn::Half<D> half;
    return folded(half, join(hn::LowerHalf(half, vector), hn::UpperHalf(half, vector)), join);
  }
}

// Lane i of the result combines all lanes of row i. The vector of row i is at `rows` + i *
// kRowsAtOnce.
template <int64_t kCount = kRowsAtOnce, class Join>
HWY_INLINE RowVector row_totals(const float* HWY_RESTRICT rows, const Join& join) {
  if constexpr (kCount == 1) {
    return hn::Load(RowTag(), rows);
  } else {
    const RowTag d;
    // Each level combines neighbouring lanes, so that a row has half as many of them after it.
    const RowVector low = row_totals<kCount / 2>(rows, join);
    const RowVector high = row_totals<kCount / 2>(rows + kCount / 2 * kRowsAtOnce, join);
    return join(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

#endif

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
