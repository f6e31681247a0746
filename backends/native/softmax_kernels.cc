// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "softmax_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "softmax_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "exponential.h"
#include "partial_vector.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Exponentials that are summed in float32 before their sum goes into a double.
constexpr int64_t kChunkSteps = 64;
constexpr int64_t kChunkRows = 256;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// The largest number of the row, which is scaled and shifted into `to` where `kIsPrepared`.
template <bool kIsPrepared>
HWY_INLINE float largest_of(const float* from, float* to, int64_t length, float scale,
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
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest, second)));
}

// The sum of exp(x - largest), which also goes to `to` where `kStores`.
template <bool kStores>
HWY_INLINE double exponential_sum(const float* from, float* to, int64_t length, float largest) {
  const Tag d;
  const int64_t lanes = lane_count();
  const Vector shift = hn::Set(d, largest);
  const auto at = [&](int64_t index) HWY_ATTR {
    const Vector x = exponential(d, hn::Sub(hn::LoadU(d, from + index), shift));
    if constexpr (kStores) hn::StoreU(x, d, to + index);
    return x;
  };
  double total = 0;
  int64_t index = 0;
  while (index < length) {
    const int64_t end = std::min(length, index + kChunkSteps * lanes);
    Vector sum = hn::Zero(d);
    Vector second = sum;
    for (; index + 2 * lanes <= end; index += 2 * lanes) {
      sum = hn::Add(sum, at(index));
      second = hn::Add(second, at(index + lanes));
    }
    if (index + lanes <= end) {
      sum = hn::Add(sum, at(index));
      index += lanes;
    }
    if (index < end) {
      const int64_t rest = end - index;
      const Vector x = exponential(d, hn::Sub(load_some(d, from + index, rest), shift));
      if constexpr (kStores) store_some(x, d, to + index, rest);
      second = hn::Add(second, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), x));
      index = end;
    }
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, second)));
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

template <bool kIsLog>
void rows(const float* from, float* to, int64_t rows, int64_t length, const RowInput& input) {
  const Tag d;
  const bool is_prepared = input.scale != 1 || input.addend != nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    const float* source = from + row * length;
    float* target = to + row * length;
    float largest = 0;
    if (is_prepared) {
      const float* addend =
          input.addend == nullptr ? nullptr : input.addend + row * input.addend_stride;
      largest = largest_of<true>(source, target, length, input.scale, addend);
      source = target;
    } else {
      largest = largest_of<false>(source, target, length, 1, nullptr);
    }
    const double sum = exponential_sum<!kIsLog>(source, target, length, largest);
    if constexpr (kIsLog) {
      const Vector shift = hn::Set(d, largest);
      const Vector log_sum = hn::Set(d, static_cast<float>(std::log(sum)));
      map(source, target, length,
          [&](Vector x) HWY_ATTR { return hn::Sub(hn::Sub(x, shift), log_sum); });
    } else {
      const Vector factor = hn::Set(d, static_cast<float>(1 / sum));
      map(target, target, length, [&](Vector x) HWY_ATTR { return hn::Mul(x, factor); });
    }
  }
}

// Up to one vector of columns.
template <bool kIsLog>
HWY_INLINE void one_vector(const float* from, float* to, int64_t length, int64_t stride,
                           int64_t width) {
  const Tag d;
  const bool is_whole = width == lane_count();
  const auto load = [&](const float* place) HWY_ATTR {
    return is_whole ? hn::LoadU(d, place) : load_some(d, place, width);
  };
  const auto store = [&](Vector x, float* place) HWY_ATTR {
    if (is_whole) {
      hn::StoreU(x, d, place);
    } else {
      store_some(x, d, place, width);
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

// All passes over one vector before the next, as far as its rows fit into the nearest cache.
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
