// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/integer_depthwise_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantized/integer_depthwise_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "quantized/integer_stores.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// The elements of a vector of channels, of which `count` exist, as int32.
template <class T>
HWY_INLINE Sums load_channels(const uint8_t* from, int64_t count) {
  const hn::Rebind<T, SumTag> d;
  if (count >= sum_lanes()) {
    return hn::PromoteTo(SumTag(), hn::LoadU(d, reinterpret_cast<const T*>(from)));
  }
  HWY_ALIGN T some[HWY_MAX(hn::MaxLanes(d), 16)] = {};
  std::memcpy(some, from, static_cast<size_t>(count));
  return hn::PromoteTo(SumTag(), hn::LoadU(d, some));
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
HWY_INLINE Sums add_pair(Sums sums, const uint8_t* first, const uint8_t* second, int64_t count,
                         const int8_t* weights) {
  int16_t pair[2];
  std::memcpy(pair, weights, sizeof(pair));
  const int32_t products = hn::GetLane(load_channels<T>(first, count)) * pair[0] +
                           hn::GetLane(load_channels<T>(second, count)) * pair[1];
  return hn::Add(sums, hn::Set(SumTag(), products));
}

#else

template <class T>
HWY_INLINE Sums add_pair(Sums sums, const uint8_t* first, const uint8_t* second, int64_t count,
                         const int8_t* weights) {
  const SumTag d;
  const hn::ScalableTag<int16_t> words;
  Sums low = load_channels<T>(first, count);
  if constexpr (static_cast<T>(-1) < T{0}) low = hn::And(low, hn::Set(d, 0xFFFF));
  const Sums pairs = hn::Or(low, hn::ShiftLeft<16>(load_channels<T>(second, count)));
  // On x86, the sums of neighbours (pmaddwd): nothing is added to the other vector.
  Sums others = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(words, pairs),
                                       hn::LoadU(words, reinterpret_cast<const int16_t*>(weights)),
                                       sums, others);
}

#endif

// Sums of some outputs are stored together. They stay in the first-level cache.
constexpr int64_t kMaxSums = 2048;

// The sums of `channels` channels, from the one on with which the weights begin.
template <class T>
HWY_INLINE void sum_channels(const IntegerDepthwise& part, const uint8_t* const* pixels,
                             int64_t channel, int64_t channels, const int8_t* weights,
                             int32_t* to) {
  const SumTag d;
  const int64_t lanes = sum_lanes();
  const int64_t pair_bytes = lanes * static_cast<int64_t>(sizeof(int32_t));
  for (int64_t end = channel + channels; channel < end; channel += lanes, to += lanes) {
    const int64_t count = std::min(lanes, end - channel);
    weights += pair_bytes;  // the sums of weights
    Sums sums = hn::Zero(d);
    for (int64_t tap = 0; tap < part.taps; tap += 2, weights += pair_bytes) {
      sums = add_pair<T>(sums, pixels[tap] + channel, pixels[tap + 1] + channel, count, weights);
    }
    hn::Store(sums, d, to);
  }
}

template <class T>
void run_depthwise(const IntegerDepthwise& part) {
  HWY_ALIGN int32_t sums[kMaxSums];
  const int64_t lanes = sum_lanes();
  // Those of one vector of channels.
  const int64_t weight_bytes = (1 + part.taps / 2) * lanes * static_cast<int64_t>(sizeof(int32_t));
  for (int64_t channel = 0; channel < part.channels; channel += kMaxSums) {
    const int64_t channels = std::min(kMaxSums, part.channels - channel);
    const int64_t width = (channels + lanes - 1) / lanes * lanes;
    const int8_t* const weights = part.weights + channel / lanes * weight_bytes;
    IntegerBlock block = {.columns = channels, .to_row_stride = part.to_stride};
    block.epilogue = part.epilogue;
    block.epilogue.terms += channel;
    if (block.epilogue.factors != nullptr) block.epilogue.factors += channel;
    if (block.epilogue.offsets != nullptr) block.epilogue.offsets += channel;
    if (block.epilogue.exact.scales != nullptr) block.epilogue.exact.scales += channel;
    const int64_t together = kMaxSums / width;
    for (int64_t output = 0; output < part.outputs; output += together) {
      const int64_t outputs = std::min(together, part.outputs - output);
      for (int64_t each = 0; each < outputs; ++each) {
        sum_channels<T>(part, part.pixels + (output + each) * part.taps, channel, channels, weights,
                        sums + each * width);
      }
      block.to =
          static_cast<uint8_t*>(part.to) + (output * part.to_stride + channel) * part.to_bytes;
      store_sums(block, 0, outputs, sums, width);
    }
  }
}

void run_any_depthwise(const IntegerDepthwise& part) {
  part.is_left_signed ? run_depthwise<int8_t>(part) : run_depthwise<uint8_t>(part);
}

IntegerDepthwiseLoops depthwise_loops() { return {sum_lanes(), run_any_depthwise}; }

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(depthwise_loops);

IntegerDepthwiseLoops find_integer_depthwise_loops() {
  return HWY_DYNAMIC_DISPATCH(depthwise_loops)();
}

}  // namespace tessera::native

#endif  // HWY_ONCE
