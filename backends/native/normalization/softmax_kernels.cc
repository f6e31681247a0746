// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "normalization/softmax_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normalization/softmax_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/exponential.h"
#include "base/float_functions.h"
#include "base/partial_vector.h"
#include "base/row_totals.h"
#include "base/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Exponentials that are summed in float32 before the sum is added to a double.
constexpr int64_t kChunkSteps = 64;
constexpr int64_t kChunkRows = 256;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// The largest elements of the row, in the lanes of a vector. If `kIsPrepared`, the row is scaled
// and shifted into `to`.
template <bool kIsPrepared>
HWY_INLINE Vector largest_lanes(const float* from, float* to, int64_t length, float scale,
                                const float* addend) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Vector factor = hn::Set(d, scale);
  Vector largest = hn::Set(d, -kInfinity);
  Vector second = largest;
  const auto at = [&](int64_t index) HWY_ATTR {
    Vector x = hn::LoadU(d, from + index);
    if constexpr (kIsPrepared) {
      x = hn::Mul(x, factor);
      if (addend != nullptr) x = hn::Add(x, hn::LoadU(d, addend + index));
      hn::StoreU(x, d, to + index);
    }
    return x;
  };
  int64_t index = 0;
  for (; index + 2 * lanes <= length; index += 2 * lanes) {
    largest = hn::Max(largest, at(index));
    second = hn::Max(second, at(index + lanes));
  }
  if (index + lanes <= length) {
    largest = hn::Max(largest, at(index));
    index += lanes;
  }
  if (index < length) {
    const int64_t rest = length - index;
    Vector x = load_some(d, from + index, rest);
    if constexpr (kIsPrepared) {
      x = hn::Mul(x, factor);
      if (addend != nullptr) x = hn::Add(x, load_some(d, addend + index, rest));
      store_some(x, d, to + index, rest);
    }
    const auto used = hn::FirstN(d, static_cast<size_t>(rest));
    second = hn::Max(second, hn::IfThenElse(used, x, hn::Set(d, -kInfinity)));
  }
  return hn::Max(largest, second);
}

// The sums of exp(x - largest) over a chunk. If `kStores`, the exponentials are stored in `to`.
// Elements at `later` are prefetched, because this pass takes most of the time.
template <bool kStores>
HWY_INLINE Vector exponential_lanes(const float* from, float* to, int64_t count, float largest,
                                    const float* later) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Vector shift = hn::Set(d, largest);
  const auto at = [&](int64_t index) HWY_ATTR {
    prefetch_later(later + index);
    const Vector x = exponential(d, hn::Sub(hn::LoadU(d, from + index), shift));
    if constexpr (kStores) hn::StoreU(x, d, to + index);
    return x;
  };
  Vector sum = hn::Zero(d);
  Vector second = sum;
  int64_t index = 0;
  for (; index + 2 * lanes <= count; index += 2 * lanes) {
    sum = hn::Add(sum, at(index));
    second = hn::Add(second, at(index + lanes));
  }
  if (index + lanes <= count) {
    sum = hn::Add(sum, at(index));
    index += lanes;
  }
  if (index < count) {
    const int64_t rest = count - index;
    const Vector x = exponential(d, hn::Sub(load_some(d, from + index, rest), shift));
    if constexpr (kStores) store_some(x, d, to + index, rest);
    second = hn::Add(second, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), x));
  }
  return hn::Add(sum, second);
}

template <bool kStores>
HWY_INLINE double exponential_sum(const float* from, float* to, int64_t length, float largest,
                                  const float* later) {
  const int64_t chunk = kChunkSteps * lane_count();
  double total = 0;
  for (int64_t done = 0; done < length; done += chunk) {
    total += hn::GetLane(hn::SumOfLanes(
        Tag(), exponential_lanes<kStores>(from + done, to + done, std::min(chunk, length - done),
                                          largest, later + done)));
  }
  return total;
}

template <class Function>
HWY_INLINE void map(const float* from, float* to, int64_t length, const Function& function) {
  const Tag d;
  for_vectors(
      d, length,
      [&](int64_t index)
          HWY_ATTR { hn::StoreU(function(hn::LoadU(d, from + index)), d, to + index); },
      [&](int64_t index, int64_t rest) HWY_ATTR {
        store_some(function(load_some(d, from + index, rest)), d, to + index, rest);
      });
}

// The largest elements of a row. If the row is scaled or shifted into `target`, `source` is set to
// it.
HWY_INLINE Vector prepare_row(const float*& source, float* target, int64_t length,
                              const RowInput& input, int64_t row) {
  if (input.scale == 1 && input.addend == nullptr) {
    return largest_lanes<false>(source, target, length, 1, nullptr);
  }
  const float* addend =
      input.addend == nullptr ? nullptr : input.addend + row * input.addend_stride;
  const Vector largest = largest_lanes<true>(source, target, length, input.scale, addend);
  source = target;
  return largest;
}

// Computes the result from the exponentials and 1 / sum; for LogSoftmax, from the prepared row and
// the logarithm of the sum.
template <bool kIsLog>
HWY_INLINE void finish_row(const float* source, float* target, int64_t length, float largest,
                           float last) {
  const Tag d;
  const Vector shift = hn::Set(d, largest);
  const Vector factor = hn::Set(d, last);
  if constexpr (kIsLog) {
    map(source, target, length,
        [&](Vector x) HWY_ATTR { return hn::Sub(hn::Sub(x, shift), factor); });
  } else {
    map(source, target, length, [&](Vector x) HWY_ATTR { return hn::Mul(x, factor); });
  }
}

template <bool kIsLog>
HWY_INLINE void one_row(const float* from, float* to, int64_t row, int64_t length,
                        const RowInput& input) {
  const float* source = from + row * length;
  float* target = to + row * length;
  const Vector lanes = prepare_row(source, target, length, input, row);
  const float largest = hn::GetLane(hn::MaxOfLanes(Tag(), lanes));
  const double sum =
      exponential_sum<!kIsLog>(source, target, length, largest, from + (row + 1) * length);
  finish_row<kIsLog>(kIsLog ? source : target, target, length, largest,
                     static_cast<float>(kIsLog ? std::log(sum) : 1 / sum));
}

// The longest rows that are processed several at once: with their intermediate results, they stay
// in the first-level cache of a core.
constexpr int64_t kMaxShortRow = 512;

// Normalizes kRowsAtOnce rows. Intermediate results are stored in aligned vectors: rows of the
// output may be misaligned, and loads that overlap several recent stores are slow.
template <bool kIsLog>
HWY_INLINE void some_rows(const float* from, float* to, int64_t first, int64_t length,
                          const RowInput& input) {
  constexpr int64_t kRows = kRowsAtOnce;
  const Tag d;
  const RowTag few;
  const auto larger = [](auto left, auto right) HWY_ATTR { return hn::Max(left, right); };
  const auto add = [](auto left, auto right) HWY_ATTR { return hn::Add(left, right); };
  HWY_ALIGN float lanes[kRows * kRows];
  HWY_ALIGN float largest[kRows];
  HWY_ALIGN float lasts[kRows];
  HWY_ALIGN float kept[kRows * kMaxShortRow];
  const int64_t stride = (length + lane_count() - 1) / lane_count() * lane_count();
  const float* sources[kRows];
  for (int64_t row = 0; row < kRows; ++row) {
    sources[row] = from + (first + row) * length;
    const Vector all = prepare_row(sources[row], kept + row * stride, length, input, first + row);
    hn::Store(folded(d, all, larger), few, lanes + row * kRows);
  }
  hn::Store(row_totals(lanes, larger), few, largest);
  for (int64_t row = 0; row < kRows; ++row) {
    const Vector sums =
        exponential_lanes<!kIsLog>(sources[row], kept + row * stride, length, largest[row],
                                   from + (first + row + kRows) * length);
    hn::Store(folded(d, sums, add), few, lanes + row * kRows);
  }
  const RowVector sums = row_totals(lanes, add);
  hn::Store(kIsLog ? log_of(few, sums) : hn::Div(hn::Set(few, 1.0F), sums), few, lasts);
  for (int64_t row = 0; row < kRows; ++row) {
    finish_row<kIsLog>(kIsLog ? sources[row] : kept + row * stride, to + (first + row) * length,
                       length, largest[row], lasts[row]);
  }
}

template <bool kIsLog>
void rows(const float* from, float* to, int64_t rows, int64_t length, const RowInput& input) {
  int64_t row = 0;
  if (kRowsAtOnce > 1 && length <= std::min(kMaxShortRow, kChunkSteps * lane_count())) {
    for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
      some_rows<kIsLog>(from, to, row, length, input);
    }
  }
  for (; row < rows; ++row) one_row<kIsLog>(from, to, row, length, input);
}

// Normalizes up to one vector of columns.
template <bool kIsLog>
HWY_INLINE void one_vector(const float* from, float* to, int64_t length, int64_t stride,
                           int64_t width) {
  const Tag d;
  const bool is_whole = width == lane_count();
  const auto load = [&](const float* source) HWY_ATTR {
    return is_whole ? hn::LoadU(d, source) : load_some(d, source, width);
  };
  const auto store = [&](Vector x, float* target) HWY_ATTR {
    if (is_whole) {
      hn::StoreU(x, d, target);
    } else {
      store_some(x, d, target, width);
    }
  };
  Vector largest = hn::Set(d, -kInfinity);
  for (int64_t row = 0; row < length; ++row) {
    largest = hn::Max(largest, load(from + row * stride));
  }
  HWY_ALIGN float sums[hn::MaxLanes(d)];
  double totals[hn::MaxLanes(d)] = {};
  for (int64_t row = 0; row < length;) {
    const int64_t end = std::min(length, row + kChunkRows);
    Vector sum = hn::Zero(d);
    for (; row < end; ++row) {
      const Vector x = exponential(d, hn::Sub(load(from + row * stride), largest));
      if constexpr (!kIsLog) store(x, to + row * stride);
      sum = hn::Add(sum, x);
    }
    hn::Store(sum, d, sums);
    for (int64_t column = 0; column < width; ++column) totals[column] += sums[column];
  }
  for (int64_t column = 0; column < width; ++column) {
    sums[column] = static_cast<float>(kIsLog ? std::log(totals[column]) : 1 / totals[column]);
  }
  const Vector last = hn::Load(d, sums);
  for (int64_t row = 0; row < length; ++row) {
    if constexpr (kIsLog) {
      store(hn::Sub(hn::Sub(load(from + row * stride), largest), last), to + row * stride);
    } else {
      store(hn::Mul(load(to + row * stride), last), to + row * stride);
    }
  }
}

// All passes over one vector of columns before the next one, as long as its rows fit into the
// first-level cache.
template <bool kIsLog>
void columns(const float* from, float* to, int64_t length, int64_t stride, int64_t width) {
  const int64_t lanes = lane_count();
  for (int64_t column = 0; column < width; column += lanes) {
    one_vector<kIsLog>(from + column, to + column, length, stride, std::min(lanes, width - column));
  }
}

SoftmaxLoops loops_of(bool is_log) {
  if (is_log) return {rows<true>, columns<true>};
  return {rows<false>, columns<false>};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loops_of);

SoftmaxLoops find_softmax_loops(bool is_log) { return HWY_DYNAMIC_DISPATCH(loops_of)(is_log); }

}  // namespace tessera::native

#endif  // HWY_ONCE
