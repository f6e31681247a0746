// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "normalization/group_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normalization/group_kernels.cc"
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

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
// Sums of doubles need no estimate of the mean, and neither overflow nor cancel.
using Doubles = hn::RepartitionToWide<Tag>;

void add_channels(const float* from, const PixelRun& run, int64_t count, double* sums,
                  double* squares) {
  const Tag d;
  const Doubles dd;
  const hn::Half<Tag> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
  auto sum_low = hn::Zero(dd);
  auto sum_high = hn::Zero(dd);
  auto square_low = hn::Zero(dd);
  auto square_high = hn::Zero(dd);
  for (int64_t pixel = 0; pixel < run.pixels; ++pixel, from += run.stride) {
    const Vector values = count == lane_count() ? hn::LoadU(d, from) : load_some(d, from, count);
    const auto low = hn::PromoteTo(dd, hn::LowerHalf(half, values));
    const auto high = hn::PromoteTo(dd, hn::UpperHalf(half, values));
    sum_low = hn::Add(sum_low, low);
    sum_high = hn::Add(sum_high, high);
    square_low = hn::MulAdd(low, low, square_low);
    square_high = hn::MulAdd(high, high, square_high);
  }
  HWY_ALIGN double totals[4][hn::MaxLanes(dd)];
  hn::Store(sum_low, dd, totals[0]);
  hn::Store(sum_high, dd, totals[1]);
  hn::Store(square_low, dd, totals[2]);
  hn::Store(square_high, dd, totals[3]);
  for (int64_t channel = 0; channel < count; ++channel) {
    const int64_t part = channel / lanes;
    sums[channel] += totals[part][channel % lanes];
    squares[channel] += totals[2 + part][channel % lanes];
  }
}
#else
void add_channels(const float* from, const PixelRun& run, int64_t count, double* sums,
                  double* squares) {
  for (int64_t pixel = 0; pixel < run.pixels; ++pixel, from += run.stride) {
    for (int64_t channel = 0; channel < count; ++channel) {
      const auto value = static_cast<double>(from[channel]);
      sums[channel] += value;
      squares[channel] += value * value;
    }
  }
}
#endif

// Some pixels at a time, which stay in the first-level cache for all channels.
void add_moments(const float* from, const PixelRun& run, double* sums, double* squares) {
  constexpr int64_t kFloats = 4096;
  const int64_t lanes = lane_count();
  const int64_t together = std::max<int64_t>(1, kFloats / run.channels);
  for (int64_t pixel = 0; pixel < run.pixels; pixel += together) {
    const PixelRun part = {std::min(together, run.pixels - pixel), run.channels, run.stride};
    for (int64_t channel = 0; channel < run.channels; channel += lanes) {
      add_channels(from + pixel * run.stride + channel, part,
                   std::min(lanes, run.channels - channel), sums + channel, squares + channel);
    }
  }
}

void normalize(const float* from, const PixelRun& run, const float* means, const float* factors,
               const float* shifts, const Activation& activation, float* to) {
  const Tag d;
  const int64_t lanes = lane_count();
  const float low = activation.lower_limit();
  const float high = activation.upper_limit();
  for (int64_t pixel = 0; pixel < run.pixels; ++pixel, from += run.stride, to += run.stride) {
    for (int64_t channel = 0; channel < run.channels; channel += lanes) {
      const int64_t count = std::min(lanes, run.channels - channel);
      const Vector centred =
          hn::Sub(load_some(d, from + channel, count), load_some(d, means + channel, count));
      const Vector result = hn::MulAdd(centred, load_some(d, factors + channel, count),
                                       load_some(d, shifts + channel, count));
      store_some(activation.is_gated() ? gated(d, activation, result) : clamp(d, result, low, high),
                 d, to + channel, count);
    }
  }
}

GroupLoops all_loops() { return {add_moments, normalize}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

namespace {
HWY_EXPORT(all_loops);
}  // namespace

GroupLoops find_group_loops() { return HWY_DYNAMIC_DISPATCH(all_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
