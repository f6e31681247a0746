// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "matmul/gemm_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul/gemm_kernels.cc"
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

// `count` elements from `from` on: a whole vector if there are as many.
HWY_INLINE Vector load_up_to(const float* from, int64_t count) {
  return count >= lane_count() ? hn::LoadU(Tag(), from) : load_some(Tag(), from, count);
}

HWY_INLINE void store_up_to(Vector vector, float* to, int64_t count) {
  if (count >= lane_count()) {
    hn::StoreU(vector, Tag(), to);
  } else {
    store_some(vector, Tag(), to, count);
  }
}

// The epilogues of most products, for which the sums stay in registers.
enum class Common : uint8_t {
  Plain,       // the sums are the results
  Added,       // an addend for each result
  Clipped,     // bias and clipping
  SumsClipped  // bias, an addend for each result, and clipping
};

constexpr float kNoBias[hn::MaxLanes(Tag())] = {};

// The columns of the last one of kUsed vectors, of which `columns` columns exist.
template <int kUsed>
HWY_INLINE int64_t last_columns(int64_t columns) {
  return columns - (kUsed - 1) * lane_count();
}

template <Common kKind, int kCount, int kUsed>
HWY_INLINE void store_common(const GemmBlock& part, int64_t row, int64_t columns,
                             const Vector (&sums)[kCount][kUsed]) {
  const Tag d;
  const int64_t lanes = lane_count();
  const int64_t last = last_columns<kUsed>(columns);
  const GemmEpilogue& epilogue = part.epilogue;
  const Vector low = hn::Set(d, epilogue.activation.lower_limit());
  const Vector high = hn::Set(d, epilogue.activation.upper_limit());
  Vector bias[kUsed];
  for (int vector = 0; vector < kUsed; ++vector) {
    const float* from = epilogue.bias == nullptr ? kNoBias : epilogue.bias + vector * lanes;
    bias[vector] = load_up_to(from, vector + 1 < kUsed ? lanes : last);
  }
  constexpr bool kIsAdded = kKind == Common::Added || kKind == Common::SumsClipped;
  constexpr bool kIsClipped = kKind == Common::Clipped || kKind == Common::SumsClipped;
  const float* addend = kIsAdded ? epilogue.addend + row * epilogue.addend_row_stride : nullptr;
  float* to = part.to + row * part.to_row_stride;
  for (int line = 0; line < kCount; ++line) {
    for (int vector = 0; vector < kUsed; ++vector) {
      const bool is_last = vector + 1 == kUsed;
      Vector result = sums[line][vector];
      if (kIsClipped) result = hn::Add(result, bias[vector]);
      if (kIsAdded) {
        result = hn::Add(result, load_up_to(addend + vector * lanes, is_last ? last : lanes));
      }
      if (kIsClipped) {
        // A NaN stays.
        result = hn::IfThenElse(hn::Lt(result, low), low, result);
        result = hn::IfThenElse(hn::Gt(result, high), high, result);
      }
      store_up_to(result, to + vector * lanes, is_last ? last : lanes);
    }
    if (kIsAdded) addend += epilogue.addend_row_stride;
    to += part.to_row_stride;
  }
}

// Applies any epilogue to the sums of kCount rows from `row` on and kUsed vectors from `column` on,
// of which `columns` columns exist, and stores the results.
template <int kCount, int kUsed>
HWY_NOINLINE void store_any(const GemmBlock& part, int64_t row, int64_t column, int64_t columns,
                            const Vector (&sums)[kCount][kUsed]) {
  const Tag d;
  const int64_t lanes = lane_count();
  const GemmEpilogue& epilogue = part.epilogue;
  float* to = part.to + row * part.to_row_stride + column;
  for (int line = 0; line < kCount; ++line, to += part.to_row_stride) {
    const float* addend = epilogue.addend == nullptr
                              ? nullptr
                              : epilogue.addend + (row + line) * epilogue.addend_row_stride;
    for (int vector = 0; vector < kUsed; ++vector) {
      const int64_t place = column + vector * lanes;
      const int64_t count = std::min(lanes, columns - vector * lanes);
      Vector result = hn::Mul(sums[line][vector], hn::Set(d, epilogue.alpha));
      if (epilogue.bias != nullptr) {
        result = hn::Add(result, load_up_to(epilogue.bias + place, count));
      }
      if (epilogue.addend != nullptr) {
        const Vector added = epilogue.addend_column_stride == 0 ? hn::Set(d, *addend)
                                                                : load_up_to(addend + place, count);
        result = hn::MulAdd(added, hn::Set(d, epilogue.beta), result);
      }
      const Activation& activation = epilogue.activation;
      result = clamp(d, result, activation.lower_limit(), activation.upper_limit());
      store_up_to(result, to + vector * lanes, count);
    }
  }
}

// The gated activations take too many registers to be applied to the sums: results that were just
// stored are read again.
HWY_NOINLINE void activate(const GemmBlock& part, int64_t row, int64_t count) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Activation& activation = part.epilogue.activation;
  for (float* to = part.to + row * part.to_row_stride; count-- > 0; to += part.to_row_stride) {
    for (int64_t column = 0; column < part.columns; column += lanes) {
      const int64_t used = std::min(lanes, part.columns - column);
      const Vector x = load_up_to(to + column, used);
      Vector result = x;
      if (activation.kind == ActivationKind::Gelu) {
        result = gelu_of(d, x);
      } else if (activation.kind == ActivationKind::GeluTanh) {
        result = gelu_tanh_of(d, x);
      } else {
        result = gated(d, activation, x);
      }
      store_up_to(result, to + column, used);
    }
  }
}

template <int kCount, int kUsed>
HWY_INLINE void store_sums(const GemmBlock& part, int64_t row, Vector (&sums)[kCount][kUsed]) {
  const GemmEpilogue& epilogue = part.epilogue;
  const bool has_activation = epilogue.activation.kind != ActivationKind::None;
  const bool is_sum = epilogue.addend_column_stride == 1 && epilogue.beta == 1;
  if (epilogue.alpha != 1 || (epilogue.addend != nullptr && !is_sum)) {
    store_any(part, row, 0, part.columns, sums);
  } else if (epilogue.addend != nullptr && !has_activation && epilogue.bias == nullptr) {
    store_common<Common::Added>(part, row, part.columns, sums);
  } else if (epilogue.addend != nullptr) {
    store_common<Common::SumsClipped>(part, row, part.columns, sums);
  } else if (has_activation || epilogue.bias != nullptr) {
    store_common<Common::Clipped>(part, row, part.columns, sums);
  } else {
    store_common<Common::Plain>(part, row, part.columns, sums);
  }
  if (epilogue.activation.is_gated()) activate(part, row, kCount);
}

constexpr int64_t kLineBytes = 64;
constexpr int kSecondLevel = 2;  // of the caches: the first has no room for a second panel

// kCount rows from `row` on by the first kUsed vectors of the panel, of which the last one is
// partial unless kIsWhole. With each step, kAhead cache lines are fetched from `ahead` on.
template <int kCount, int kUsed, bool kIsWhole, int kAhead>
HWY_INLINE void multiply_rows(const GemmBlock& part, int64_t row, const char* ahead) {
  const Tag d;
  const int64_t lanes = lane_count();
  Vector sums[kCount][kUsed];
  for (auto& line : sums) {
    for (Vector& sum : line) sum = hn::Zero(d);
  }
  const float* left = part.left + row * part.left_row_stride;
  const float* right = part.right;
  for (int64_t depth = 0; depth < part.depth; ++depth) {
    Vector factors[kUsed];
    for (int vector = 0; vector + 1 < kUsed; ++vector) {
      factors[vector] = hn::LoadU(d, right + vector * lanes);
    }
    const float* last = right + (kUsed - 1) * lanes;
    factors[kUsed - 1] =
        kIsWhole ? hn::LoadU(d, last) : load_some(d, last, part.columns - (kUsed - 1) * lanes);
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
  }
  store_sums(part, row, sums);
}

template <int kUsed, bool kIsWhole, int kAhead, int kCount = kRows>
HWY_INLINE void multiply_rest(const GemmBlock& part, int64_t row, int64_t count,
                              const char* ahead) {
  if constexpr (kCount > 0) {
    if (count == kCount) return multiply_rows<kCount, kUsed, kIsWhole, kAhead>(part, row, ahead);
    multiply_rest<kUsed, kIsWhole, kAhead, kCount - 1>(part, row, count, ahead);
  }
}

// How many rows the next block of rows has, of those that are left.
HWY_INLINE int64_t next_rows(int64_t left) {
  // One or two rows alone would wait for their own sums.
  return left > kRows && left < kRows + 3 ? left / 2 : std::min<int64_t>(kRows, left);
}

template <int kUsed, bool kIsWhole>
void multiply(const GemmBlock& part) {
  for (int64_t row = 0; row < part.rows;) {
    const int64_t count = next_rows(part.rows - row);
    multiply_rest<kUsed, kIsWhole, 0>(part, row, count, nullptr);
    row += count;
  }
}

// The blocks of rows share the lines of the next panel: earlier blocks fetch more, because late
// lines are waited for, and few blocks fetch no line twice. Further blocks fetch the lines behind
// that panel.
template <int kUsed>
void multiply_ahead(const GemmBlock& part) {
  const auto* ahead = reinterpret_cast<const char*>(part.ahead);
  int64_t lines = kUsed * lane_count() * static_cast<int64_t>(sizeof(float)) / kLineBytes;
  int64_t blocks = (part.rows + kRows - 1) / kRows;
  for (int64_t row = 0; row < part.rows; --blocks) {
    const int64_t count = next_rows(part.rows - row);
    const int64_t fetched = lines > 0 ? (lines + blocks - 1) / blocks : 1;
    if (fetched == 1) {
      multiply_rest<kUsed, true, 1>(part, row, count, ahead);
    } else if (fetched == 2) {
      multiply_rest<kUsed, true, 2>(part, row, count, ahead);
    } else {
      multiply_rest<kUsed, true, kUsed>(part, row, count, ahead);
    }
    row += count;
    lines -= fetched;
    ahead += part.depth * fetched * kLineBytes;
  }
}

template <bool kIsPadded, int kUsed = kVectors>
void multiply_panel(const GemmBlock& part) {
  if constexpr (kUsed > 1) {
    if (part.columns <= (kUsed - 1) * lane_count()) {
      return multiply_panel<kIsPadded, kUsed - 1>(part);
    }
  }
  const bool is_whole = kIsPadded || part.columns == kUsed * lane_count();
  if (!is_whole) {
    multiply<kUsed, false>(part);
  } else if (part.ahead == nullptr) {
    multiply<kUsed, true>(part);
  } else {
    multiply_ahead<kUsed>(part);
  }
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
    Vector result[1][1] = {{hn::SumOfLanes(d, sum)}};
    store_any(part, row, column + each, 1, result);
  }
}

void dots(const GemmBlock& part) {
  for (int64_t row = 0; row < part.rows; ++row) {
    int64_t column = 0;
    for (; column + 4 <= part.columns; column += 4) dot_columns<4>(part, row, column);
    for (; column < part.columns; ++column) dot_columns<1>(part, row, column);
    if (part.epilogue.activation.is_gated()) activate(part, row, 1);
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
