// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/integer_depthwise_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/targets.h"

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

// The epilogue of the channels from one on.
HWY_INLINE IntegerEpilogue epilogue_from(IntegerEpilogue epilogue, int64_t channel) {
  epilogue.terms += channel;
  if (epilogue.factors != nullptr) epilogue.factors += channel;
  if (epilogue.offsets != nullptr) epilogue.offsets += channel;
  if (epilogue.exact.scales != nullptr) epilogue.exact.scales += channel;
  return epilogue;
}

// --- Words ---------------------------------------------------------------------------------------

namespace words {

constexpr int kRowGroup = 2;
constexpr int kParts = 1;

HWY_INLINE void sort(Sums (&)[kParts]) {}

#if HWY_TARGET == HWY_SCALAR

struct Column {
  int32_t first;
  int32_t second;
};

template <class T>
HWY_INLINE Column load_column(const uint8_t* const* pixel, int64_t reach, int64_t channel,
                              int64_t count) {
  return {hn::GetLane(load_channels<T>(pixel[0] + channel, count)),
          hn::GetLane(load_channels<T>(pixel[reach] + channel, count))};
}

HWY_INLINE Sums multiply_add(Sums sums, const Column& column, int, const int8_t* weights) {
  int16_t pair[2];
  std::memcpy(pair, weights, sizeof(pair));
  return hn::Add(sums, hn::Set(SumTag(), column.first * pair[0] + column.second * pair[1]));
}

#else

// Pairs of int16.
using Column = Sums;

template <class T>
HWY_INLINE Column load_column(const uint8_t* const* pixel, int64_t reach, int64_t channel,
                              int64_t count) {
  Sums low = load_channels<T>(pixel[0] + channel, count);
  if constexpr (static_cast<T>(-1) < T{0}) low = hn::And(low, hn::Set(SumTag(), 0xFFFF));
  return hn::Or(low, hn::ShiftLeft<16>(load_channels<T>(pixel[reach] + channel, count)));
}

HWY_INLINE Sums multiply_add(Sums sums, const Column& column, int, const int8_t* weights) {
  const hn::ScalableTag<int16_t> d;
  // On x86, the sums of neighbours (pmaddwd): nothing is added to the other vector.
  Sums others = hn::Zero(SumTag());
  return hn::ReorderWidenMulAccumulate(SumTag(), hn::BitCast(d, column),
                                       hn::LoadU(d, reinterpret_cast<const int16_t*>(weights)),
                                       sums, others);
}

#endif

#include "quantized/integer_depthwise_loops.h"

}  // namespace words

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// --- Bytes ---------------------------------------------------------------------------------------

#if HWY_TARGET == HWY_AVX3

HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512vnni")
namespace tessera::native::HWY_NAMESPACE {
namespace {
namespace dot_bytes {

constexpr int kRowGroup = 4;
constexpr int kParts = 4;

// For each channel the bytes of four rows, in the order of IntegerDepthwiseLoops::channel_at().
struct Column {
  Sums parts[kParts];
};

template <class T>
HWY_INLINE Column load_column(const uint8_t* const* pixel, int64_t reach, int64_t channel,
                              int64_t count) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint16_t, decltype(d)> pairs;
  const auto exist = hn::FirstN(d, static_cast<size_t>(count));
  const auto row = [&](int64_t index) HWY_ATTR {
    const auto bytes = hn::MaskedLoad(exist, d, pixel[index * reach] + channel);
    if constexpr (static_cast<T>(-1) > T{0}) return bytes;
    return hn::Xor(bytes, hn::Set(d, uint8_t{0x80}));
  };
  const auto first = row(0);
  const auto second = row(1);
  const auto third = row(2);
  const auto fourth = row(3);
  const auto low = hn::BitCast(pairs, hn::InterleaveLower(d, first, second));
  const auto high = hn::BitCast(pairs, hn::InterleaveUpper(d, first, second));
  const auto other_low = hn::BitCast(pairs, hn::InterleaveLower(d, third, fourth));
  const auto other_high = hn::BitCast(pairs, hn::InterleaveUpper(d, third, fourth));
  const SumTag sums;
  return {{hn::BitCast(sums, hn::InterleaveLower(pairs, low, other_low)),
           hn::BitCast(sums, hn::InterleaveUpper(pairs, low, other_low)),
           hn::BitCast(sums, hn::InterleaveLower(pairs, high, other_high)),
           hn::BitCast(sums, hn::InterleaveUpper(pairs, high, other_high))}};
}

HWY_INLINE Sums multiply_add(Sums sums, const Column& column, int part, const int8_t* weights) {
  const Sums factors = hn::LoadU(SumTag(), reinterpret_cast<const int32_t*>(weights));
  return Sums{_mm512_dpbusd_epi32(sums.raw, column.parts[part].raw, factors.raw)};
}

// Transposes blocks of 128 bits.
HWY_INLINE void sort(Sums (&sums)[kParts]) {
  constexpr int kLow = 0x44;
  constexpr int kHigh = 0xEE;
  constexpr int kEven = 0x88;
  constexpr int kOdd = 0xDD;
  const auto low = _mm512_shuffle_i32x4(sums[0].raw, sums[1].raw, kLow);
  const auto high = _mm512_shuffle_i32x4(sums[0].raw, sums[1].raw, kHigh);
  const auto other_low = _mm512_shuffle_i32x4(sums[2].raw, sums[3].raw, kLow);
  const auto other_high = _mm512_shuffle_i32x4(sums[2].raw, sums[3].raw, kHigh);
  sums[0] = Sums{_mm512_shuffle_i32x4(low, other_low, kEven)};
  sums[1] = Sums{_mm512_shuffle_i32x4(low, other_low, kOdd)};
  sums[2] = Sums{_mm512_shuffle_i32x4(high, other_high, kEven)};
  sums[3] = Sums{_mm512_shuffle_i32x4(high, other_high, kOdd)};
}

#include "quantized/integer_depthwise_loops.h"

}  // namespace dot_bytes
}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

IntegerDepthwiseLoops depthwise_loops([[maybe_unused]] bool fits_bytes) {
#if HWY_TARGET == HWY_AVX3
  const bool has_dot_products = may_use_dot_products() && __builtin_cpu_supports("avx512vnni") != 0;
  if (fits_bytes && has_dot_products) return dot_bytes::loops_of_form();
#endif
  return words::loops_of_form();
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(depthwise_loops);

IntegerDepthwiseLoops find_integer_depthwise_loops(bool fits_bytes) {
  return HWY_DYNAMIC_DISPATCH(depthwise_loops)(fits_bytes);
}

}  // namespace tessera::native

#endif  // HWY_ONCE
