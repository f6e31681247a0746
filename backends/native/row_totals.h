// Totals of some rows at once: what stands in the lanes of one vector for each row comes together
// in one vector for all of them, in far fewer steps than one row after the other takes, and the
// arithmetic that follows is done for all rows in one go. For the files that foreach_target.h
// includes again and again, so this one has no ordinary include guard.
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

// One lane a row. More rows than eight no longer fit into the nearest cache where they are long.
using RowTag = hn::CappedTag<float, 8>;
using RowVector = hn::Vec<RowTag>;
// Rows at once; 1 where the number of lanes is not known before the program runs, or is 1.
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

// Upper and lower halves joined until one row's vector is as wide as RowTag.
template <class D, class Join>
HWY_INLINE RowVector folded(D /*d*/, hn::Vec<D> vector, const Join& join) {
  if constexpr (hn::MaxLanes(D()) <= hn::MaxLanes(RowTag())) {
    return vector;
  } else {
    const hn::Half<D> half;
    return folded(half, join(hn::LowerHalf(half, vector), hn::UpperHalf(half, vector)), join);
  }
}

// Lane i is what all lanes of row i join to; row i's vector stands at `rows` + i * kRowsAtOnce.
template <int64_t kCount = kRowsAtOnce, class Join>
HWY_INLINE RowVector row_totals(const float* HWY_RESTRICT rows, const Join& join) {
  if constexpr (kCount == 1) {
    return hn::Load(RowTag(), rows);
  } else {
    const RowTag d;
    // Neighbouring lanes are joined at each level, so that each row has half as many after it.
    const RowVector low = row_totals<kCount / 2>(rows, join);
    const RowVector high = row_totals<kCount / 2>(rows + kCount / 2 * kRowsAtOnce, join);
    return join(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

#endif

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
