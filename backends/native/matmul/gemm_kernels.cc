// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "matmul/gemm_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul/gemm_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// Sums are held in 32 or 16 registers, besides the factors.
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

HWY_INLINE Vector finished(const GemmEpilogue& epilogue, Vector sum, Vector addend) {
  const Tag d;
  Vector result = hn::Mul(sum, hn::Set(d, epilogue.alpha));
  if (epilogue.addend != nullptr) result = hn::MulAdd(addend, hn::Set(d, epilogue.beta), result);
  // A NaN stays.
  if (epilogue.has_relu) result = hn::IfThenZeroElse(hn::Lt(result, hn::Zero(d)), result);
  return result;
}

// Whether the sums are the results.
HWY_INLINE bool is_plain(const GemmEpilogue& epilogue) {
  return epilogue.alpha == 1 && epilogue.addend == nullptr && !epilogue.has_relu;
}

// Applies the epilogue to `count` sums of a row, from `column` on, and stores them.
HWY_INLINE void store_sums(const GemmBlock& part, int64_t row, int64_t column, Vector sum,
                           int64_t count) {
  const Tag d;
  const GemmEpilogue& epilogue = part.epilogue;
  const bool is_whole = count >= lane_count();
  Vector addend = hn::Zero(d);
  if (epilogue.addend != nullptr) {
    const float* from =
        epilogue.addend + row * epilogue.addend_row_stride + column * epilogue.addend_column_stride;
    if (epilogue.addend_column_stride == 0) {
      addend = hn::Set(d, *from);
    } else {
      addend = is_whole ? hn::LoadU(d, from) : load_some(d, from, count);
    }
  }
  float* to = part.to + row * part.to_row_stride + column;
  const Vector result = finished(epilogue, sum, addend);
  if (is_whole) {
    hn::StoreU(result, d, to);
  } else {
    store_some(result, d, to, count);
  }
}

constexpr int64_t kLineBytes = 64;
constexpr int kSecondLevel = 2;  // of the caches: the first has no room for a second panel

// kCount rows from `row` on by the first kUsed vectors of the panel. The last vector may be partial
// unless the panel is padded. With each step, kAhead cache lines are fetched from `ahead` on.
template <int kCount, int kUsed, bool kIsPadded, int kAhead>
HWY_INLINE void multiply_rows(const GemmBlock& part, int64_t row, const char* ahead) {
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t rest = part.columns - (kUsed - 1) * lanes;
  const bool is_whole = kIsPadded || rest >= lanes;
  Vector sums[kCount][kUsed];
  for (auto& line : sums) {
    for (Vector& sum : line) sum = hn::Zero(d);
  }
  const float* left = part.left + row * part.left_row_stride;
  const float* right = part.right;
  const auto step = [&](auto load_last) HWY_ATTR {
    Vector factors[kUsed];
    for (int vector = 0; vector + 1 < kUsed; ++vector) {
      factors[vector] = hn::LoadU(d, right + vector * lanes);
    }
    factors[kUsed - 1] = load_last(right + (kUsed - 1) * lanes);
    for (int line = 0; line < kCount; ++line) {
      const Vector factor = hn::Set(d, left[line * part.left_row_stride]);
      for (int vector = 0; vector < kUsed; ++vector) {
        sums[line][vector] = hn::MulAdd(factor, factors[vector], sums[line][vector]);
      }
    }
    left += part.left_depth_stride;
    right += part.right_depth_stride;
    for (int line = 0; line < kAhead; ++line) {
      __builtin_prefetch(ahead + line * kLineBytes, 0, kSecondLevel);
    }
    ahead += kAhead * kLineBytes;
  };
  if (is_whole) {
    for (int64_t depth = 0; depth < part.depth; ++depth) {
      step([&](const float* source) HWY_ATTR { return hn::LoadU(d, source); });
    }
  } else {
    for (int64_t depth = 0; depth < part.depth; ++depth) {
      step([&](const float* source) HWY_ATTR { return load_some(d, source, rest); });
    }
  }
  if (is_whole && is_plain(part.epilogue) && part.columns == kUsed * lanes) {
    float* to = part.to + row * part.to_row_stride;
    for (int line = 0; line < kCount; ++line, to += part.to_row_stride) {
      for (int vector = 0; vector < kUsed; ++vector) {
        hn::StoreU(sums[line][vector], d, to + vector * lanes);
      }
    }
    return;
  }
  for (int line = 0; line < kCount; ++line) {
    for (int vector = 0; vector < kUsed; ++vector) {
      const int64_t column = vector * lanes;
      store_sums(part, row + line, column, sums[line][vector], part.columns - column);
    }
  }
}

template <int kUsed, bool kIsPadded, int kAhead, int kCount = kRows>
HWY_INLINE void multiply_rest(const GemmBlock& part, int64_t row, int64_t count,
                              const char* ahead) {
  if constexpr (kCount > 0) {
    if (count == kCount) return multiply_rows<kCount, kUsed, kIsPadded, kAhead>(part, row, ahead);
    multiply_rest<kUsed, kIsPadded, kAhead, kCount - 1>(part, row, count, ahead);
  }
}

template <int kUsed, bool kIsPadded, int kAhead>
void multiply(const GemmBlock& part) {
  const auto* ahead = reinterpret_cast<const char*>(part.ahead);
  for (int64_t row = 0; row < part.rows;) {
    const int64_t left = part.rows - row;
    int64_t count = std::min<int64_t>(kRows, left);
    // One or two rows alone would wait for their own sums.
    if (left > kRows && left < kRows + 3) count = left / 2;
    multiply_rest<kUsed, kIsPadded, kAhead>(part, row, count, ahead);
    row += count;
    ahead += part.depth * kAhead * kLineBytes;
  }
}

// As many lines are fetched ahead with each step as a whole panel of the next needs.
template <int kUsed, bool kIsPadded>
void multiply_ahead(const GemmBlock& part) {
  const int64_t lines = kUsed * lane_count() * static_cast<int64_t>(sizeof(float)) / kLineBytes;
  const int64_t blocks = (part.rows + kRows - 1) / kRows;
  if (blocks >= lines) return multiply<kUsed, kIsPadded, 1>(part);
  if (2 * blocks >= lines) return multiply<kUsed, kIsPadded, 2>(part);
  multiply<kUsed, kIsPadded, kUsed>(part);
}

template <bool kIsPadded, int kUsed = kVectors>
void multiply_panel(const GemmBlock& part) {
  if constexpr (kUsed > 1) {
    if (part.columns <= (kUsed - 1) * lane_count()) {
      return multiply_panel<kIsPadded, kUsed - 1>(part);
    }
  }
  if constexpr (kUsed > 1) {
    if (part.ahead != nullptr) return multiply_ahead<kUsed, kIsPadded>(part);
  }
  multiply<kUsed, kIsPadded, 0>(part);
}

// --- Dot products --------------------------------------------------------------------------------

// One row by kColumns columns from `column` on.
template <int kColumns>
HWY_INLINE void dot_columns(const GemmBlock& part, int64_t row, int64_t column) {
  constexpr int kSums = kColumns == 1 ? 4 : 1;
  const Tag d;
  const int64_t lanes = lane_count();
  const float* left = part.left + row * part.left_row_stride;
  const float* right = part.right + column * part.right_column_stride;
  Vector sums[kColumns][kSums];
  for (auto& each : sums) {
    for (Vector& sum : each) sum = hn::Zero(d);
  }
  int64_t depth = 0;
  for (; depth + kSums * lanes <= part.depth; depth += kSums * lanes) {
    for (int part_sum = 0; part_sum < kSums; ++part_sum) {
      const int64_t position = depth + part_sum * lanes;
      const Vector factor = hn::LoadU(d, left + position);
      for (int each = 0; each < kColumns; ++each) {
        sums[each][part_sum] =
            hn::MulAdd(factor, hn::LoadU(d, right + each * part.right_column_stride + position),
                       sums[each][part_sum]);
      }
    }
  }
  for (; depth < part.depth; depth += lanes) {
    const int64_t count = std::min(lanes, part.depth - depth);
    const Vector factor = load_some(d, left + depth, count);
    for (int each = 0; each < kColumns; ++each) {
      sums[each][0] =
          hn::MulAdd(factor, load_some(d, right + each * part.right_column_stride + depth, count),
                     sums[each][0]);
    }
  }
  for (int each = 0; each < kColumns; ++each) {
    Vector sum = sums[each][0];
    for (int part_sum = 1; part_sum < kSums; ++part_sum) sum = hn::Add(sum, sums[each][part_sum]);
    store_sums(part, row, column + each, hn::SumOfLanes(d, sum), 1);
  }
}

void dots(const GemmBlock& part) {
  for (int64_t row = 0; row < part.rows; ++row) {
    int64_t column = 0;
    for (; column + 4 <= part.columns; column += 4) dot_columns<4>(part, row, column);
    for (; column < part.columns; ++column) dot_columns<1>(part, row, column);
  }
}

GemmLoops all_loops() {
  return {kVectors * lane_count(), multiply_panel<false>, multiply_panel<true>, dots};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(all_loops);

GemmLoops find_gemm_loops() { return HWY_DYNAMIC_DISPATCH(all_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
