// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "resize/resize_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resize/resize_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> blend_at(D d, const float* from, int64_t stride, const int32_t* sources,
                               const float* weights, int64_t taps) {
  auto sum = hn::Zero(d);
  for (int64_t tap = 0; tap < taps; ++tap) {
    if (weights[tap] == 0) continue;
    sum = hn::MulAdd(hn::Set(d, weights[tap]), hn::LoadU(d, from + sources[tap] * stride), sum);
  }
  return sum;
}

void blend(const float* from, int64_t stride, const int32_t* sources, const float* weights,
           int64_t taps, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t index = 0;
  if (taps == 2 && weights[0] != 0 && weights[1] != 0) {
    const float* first = from + sources[0] * stride;
    const float* second = from + sources[1] * stride;
    const auto one = hn::Set(d, weights[0]);
    const auto other = hn::Set(d, weights[1]);
    for (; index + lanes <= count; index += lanes) {
      const auto product = hn::Mul(one, hn::LoadU(d, first + index));
      hn::StoreU(hn::MulAdd(other, hn::LoadU(d, second + index), product), d, to + index);
    }
  }
  for (; index + lanes <= count; index += lanes) {
    hn::StoreU(blend_at(d, from + index, stride, sources, weights, taps), d, to + index);
  }
  const hn::CappedTag<float, 1> one;
  for (; index < count; ++index) {
    hn::StoreU(blend_at(one, from + index, stride, sources, weights, taps), one, to + index);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> gather_at(D d, const float* from, const int32_t* sources,
                                const float* weights, int64_t taps, int64_t count) {
  const hn::Rebind<int32_t, D> di;
  auto sum = hn::Zero(d);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const auto weight = hn::LoadU(d, weights + tap * count);
    const auto element = hn::GatherIndex(d, from, hn::LoadU(di, sources + tap * count));
    const auto product = hn::Mul(weight, element);
    sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(d)), product));
  }
  return sum;
}

void gather(const float* from, const int32_t* sources, const float* weights, int64_t taps,
            float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) {
    hn::StoreU(gather_at(d, from, sources + index, weights + index, taps, count), d, to + index);
  }
  const hn::CappedTag<float, 1> one;
  for (; index < count; ++index) {
    hn::StoreU(gather_at(one, from, sources + index, weights + index, taps, count), one,
               to + index);
  }
}

ResizeLoops loops() { return {blend, gather}; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(loops);

ResizeLoops find_resize_loops() { return HWY_DYNAMIC_DISPATCH(loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
