// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "product_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "product_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// Sums that are held in registers: 32 of them, or 16, of which some hold the factors.
#if HWY_CAP_GE512
constexpr int kRows = 6;
constexpr int kVectors = 4;
#elif HWY_NATIVE_FMA
constexpr int kRows = 6;
constexpr int kVectors = 2;
#else
constexpr int kRows = 4;
constexpr int kVectors = 2;
#endif

HWY_INLINE Vector finished(const ProductEnd& end, Vector sum, Vector addend) {
  const Tag d;
  Vector result = hn::Mul(sum, hn::Set(d, end.alpha));
  if (end.addend != nullptr) result = hn::MulAdd(addend, hn::Set(d, end.beta), result);
  // A NaN stays.
  if (end.has_relu) result = hn::IfThenZeroElse(hn::Lt(result, hn::Zero(d)), result);
  return result;
}

// `count` neighbours of a row of results, from `column` on.
HWY_INLINE void store_sums(const ProductPart& part, int64_t row, int64_t column, Vector sum,
                           int64_t count) {
  const Tag d;
  const ProductEnd& end = part.end;
  const bool is_whole = count >= lane_count();
  Vector addend = hn::Zero(d);
  if (end.addend != nullptr) {
    const float* from = end.addend + row * end.addend_row + column * end.addend_column;
    if (end.addend_column == 0) {
      addend = hn::Set(d, *from);
    } else {
      addend = is_whole ? hn::LoadU(d, from) : load_some(d, from, count);
    }
  }
  float* to = part.to + row * part.to_row + column;
  const Vector result = finished(end, sum, addend);
  if (is_whole) {
    hn::StoreU(result, d, to);
  } else {
    store_some(result, d, to, count);
  }
}

// kCount rows from `row` on by the first kUsed vectors of the panel; the last of them may be a part
// unless the panel is padded.
template <int kCount, int kUsed, bool kIsPadded>
HWY_INLINE void multiply_rows(const ProductPart& part, int64_t row) {
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t rest = part.columns - (kUsed - 1) * lanes;
  const bool is_whole = kIsPadded || rest >= lanes;
  Vector sums[kCount][kUsed];
  for (auto& line : sums) {
    for (Vector& sum : line) sum = hn::Zero(d);
  }
  const float* left = part.left + row * part.left_row;
  const float* right = part.right;
  const auto step = [&](auto load_last) HWY_ATTR {
    Vector factors[kUsed];
    for (int vector = 0; vector + 1 < kUsed; ++vector) {
      factors[vector] = hn::LoadU(d, right + vector * lanes);
    }
    factors[kUsed - 1] = load_last(right + (kUsed - 1) * lanes);
    for (int line = 0; line < kCount; ++line) {
      const Vector factor = hn::Set(d, left[line * part.left_row]);
      for (int vector = 0; vector < kUsed; ++vector) {
        sums[line][vector] = hn::MulAdd(factor, factors[vector], sums[line][vector]);
      }
    }
    left += part.left_depth;
    right += part.right_depth;
  };
  if (is_whole) {
    for (int64_t depth = 0; depth < part.depth; ++depth) {
      step([&](const float* place) HWY_ATTR { return hn::LoadU(d, place); });
    }
  } else {
    for (int64_t depth = 0; depth < part.depth; ++depth) {
      step([&](const float* place) HWY_ATTR { return load_some(d, place, rest); });
    }
  }
  for (int line = 0; line < kCount; ++line) {
    for (int vector = 0; vector < kUsed; ++vector) {
      const int64_t column = vector * lanes;
      store_sums(part, row + line, column, sums[line][vector], part.columns - column);
    }
  }
}

template <int kUsed, bool kIsPadded, int kCount = kRows>
HWY_INLINE void multiply_rest(const ProductPart& part, int64_t row, int64_t count) {
  if constexpr (kCount > 0) {
    if (count == kCount) return multiply_rows<kCount, kUsed, kIsPadded>(part, row);
    multiply_rest<kUsed, kIsPadded, kCount - 1>(part, row, count);
  }
}

template <int kUsed, bool kIsPadded>
void multiply(const ProductPart& part) {
  for (int64_t row = 0; row < part.rows; row += kRows) {
    multiply_rest<kUsed, kIsPadded>(part, row, std::min<int64_t>(kRows, part.rows - row));
  }
}

template <bool kIsPadded, int kUsed = kVectors>
void multiply_panel(const ProductPart& part) {
  if constexpr (kUsed > 1) {
    if (part.columns <= (kUsed - 1) * lane_count()) {
      return multiply_panel<kIsPadded, kUsed - 1>(part);
    }
  }
  multiply<kUsed, kIsPadded>(part);
}

// --- Dots ----------------------------------------------------------------------------------------

// One row by kColumns columns from `column` on.
template <int kColumns>
HWY_INLINE void dot_columns(const ProductPart& part, int64_t row, int64_t column) {
  constexpr int kSums = kColumns == 1 ? 4 : 1;
  const Tag d;
  const int64_t lanes = lane_count();
  const float* left = part.left + row * part.left_row;
  const float* right = part.right + column * part.right_column;
  Vector sums[kColumns][kSums];
  for (auto& each : sums) {
    for (Vector& sum : each) sum = hn::Zero(d);
  }
  int64_t depth = 0;
  for (; depth + kSums * lanes <= part.depth; depth += kSums * lanes) {
    for (int part_sum = 0; part_sum < kSums; ++part_sum) {
      const int64_t place = depth + part_sum * lanes;
      const Vector factor = hn::LoadU(d, left + place);
      for (int each = 0; each < kColumns; ++each) {
        sums[each][part_sum] = hn::MulAdd(
            factor, hn::LoadU(d, right + each * part.right_column + place), sums[each][part_sum]);
      }
    }
  }
  for (; depth < part.depth; depth += lanes) {
    const int64_t count = std::min(lanes, part.depth - depth);
    const Vector factor = load_some(d, left + depth, count);
    for (int each = 0; each < kColumns; ++each) {
      sums[each][0] = hn::MulAdd(
          factor, load_some(d, right + each * part.right_column + depth, count), sums[each][0]);
    }
  }
  for (int each = 0; each < kColumns; ++each) {
    Vector sum = sums[each][0];
    for (int part_sum = 1; part_sum < kSums; ++part_sum) sum = hn::Add(sum, sums[each][part_sum]);
    store_sums(part, row, column + each, hn::SumOfLanes(d, sum), 1);
  }
}

void dots(const ProductPart& part) {
  for (int64_t row = 0; row < part.rows; ++row) {
    int64_t column = 0;
    for (; column + 4 <= part.columns; column += 4) dot_columns<4>(part, row, column);
    for (; column < part.columns; ++column) dot_columns<1>(part, row, column);
  }
}

ProductLoops all_loops() {
  return {kVectors * lane_count(), multiply_panel<false>, multiply_panel<true>, dots};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(all_loops);

ProductLoops find_product_loops() { return HWY_DYNAMIC_DISPATCH(all_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
