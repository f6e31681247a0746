// The loops of kernels on quantised bytes. Included once for each instruction set by
// foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/byte_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantized/byte_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/byte_table.h"
#include "base/quantizing.h"
#include "elementwise/generic_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// --- Pairs ---------------------------------------------------------------------------------------

// The number of scales that the result is, before it is rounded, of two integers from which zero
// points were subtracted. `V` is a vector or a number.
template <PairOp kOp>
struct PairFunction {
  static float of(float left, float right, const PairScales& scales) {
    if constexpr (kOp == PairOp::Add) {
      return std::fma(left, scales.left_scale, right * scales.right_scale);
    }
    if constexpr (kOp == PairOp::Mul) return left * right * scales.scale;
    const float left_real = left * scales.left_scale;
    const float right_real = right * scales.right_scale;
    if constexpr (kOp == PairOp::ExactAdd) return (left_real + right_real) / scales.scale;
    return left_real * right_real / scales.scale;
  }
};

template <PairOp kOp>
struct PairLanes {
  explicit HWY_INLINE PairLanes(const PairScales& scales)
      : left_scale(hn::Set(FloatLanes(), scales.left_scale)),
        right_scale(hn::Set(FloatLanes(), scales.right_scale)),
        scale(hn::Set(FloatLanes(), scales.scale)) {}

  HWY_INLINE hn::Vec<FloatLanes> of(hn::Vec<FloatLanes> left, hn::Vec<FloatLanes> right) const {
    if constexpr (kOp == PairOp::Add) {
      return hn::MulAdd(left, left_scale, hn::Mul(right, right_scale));
    }
    if constexpr (kOp == PairOp::Mul) return hn::Mul(hn::Mul(left, right), scale);
    const auto left_real = hn::Mul(left, left_scale);
    const auto right_real = hn::Mul(right, right_scale);
    if constexpr (kOp == PairOp::ExactAdd) return hn::Div(hn::Add(left_real, right_real), scale);
    return hn::Div(hn::Mul(left_real, right_real), scale);
  }

  hn::Vec<FloatLanes> left_scale;
  hn::Vec<FloatLanes> right_scale;
  hn::Vec<FloatLanes> scale;
};

// An operand: a row of bytes, or one byte for all results.
template <class T, bool kIsOne>
struct ByteOperand {
  HWY_INLINE ByteOperand(const void* elements, int32_t zero_point)
      : from(static_cast<const T*>(elements)), zero(zero_point) {}
  HWY_INLINE float at(int64_t index) const {
    return static_cast<float>(int32_t{from[kIsOne ? 0 : index]} - zero);
  }
  HWY_INLINE hn::Vec<FloatLanes> lanes_at(int64_t index) const {
    const FloatLanes d;
    const IntegerLanes integers;
    if constexpr (kIsOne) return hn::Set(d, at(0));
    return hn::ConvertTo(d, hn::Sub(promoted(integers, from + index), hn::Set(integers, zero)));
  }
  const T* from;
  int32_t zero;
};

// The largest number of scales that a result can be.
template <PairOp kOp>
float largest_steps(const PairScales& scales) {
  constexpr float kBytes = 255;
  if constexpr (kOp == PairOp::Add) return kBytes * (scales.left_scale + scales.right_scale);
  if constexpr (kOp == PairOp::Mul) return kBytes * kBytes * scales.scale;
  if constexpr (kOp == PairOp::ExactAdd) {
    return kBytes * (scales.left_scale + scales.right_scale) / scales.scale;
  }
  return kBytes * kBytes * scales.left_scale * scales.right_scale / scales.scale;
}

// The tail is the last whole vector of the row again, unless the result is made in place of an
// operand: those elements would be read after they were written. Then, and in short rows, elements
// are computed one by one; both round at the same places. `kIsSmall`: results are int32 before they
// are limited.
template <PairOp kOp, class T, bool kHasOneLeft, bool kHasOneRight, bool kIsSmall>
void combine(const BytePair& pair, const PairScales& scales) {
  const ByteOperand<T, kHasOneLeft> left(pair.left, scales.left_zero);
  const ByteOperand<T, kHasOneRight> right(pair.right, scales.right_zero);
  T* const to = static_cast<T*>(pair.to);
  const FloatLanes d;
  const IntegerLanes integers;
  const PairLanes<kOp> lanes(scales);
  const auto lowest_steps = static_cast<float>(scales.lowest - scales.zero);
  const auto highest_steps = static_cast<float>(scales.highest - scales.zero);
  const auto zero = hn::Set(integers, scales.zero);
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = kQuantizedVectors<T> * width;
  const QuantizedStore<T> store;
  const auto lowest = static_cast<T>(scales.lowest);
  const auto highest = static_cast<T>(scales.highest);
  const auto vectors = [&](int64_t index) HWY_ATTR {
    const auto rounded = [&](int64_t vector) HWY_ATTR {
      const int64_t part = index + vector * width;
      const auto steps = lanes.of(left.lanes_at(part), right.lanes_at(part));
      if constexpr (kIsSmall) return hn::Add(hn::NearestInt(steps), zero);
      return hn::Add(rounded_lanes(steps, hn::Set(d, lowest_steps), hn::Set(d, highest_steps)),
                     zero);
    };
    store.put(to + index, rounded, [&](auto bytes, auto vector) HWY_ATTR {
      return hn::Min(hn::Max(vector, hn::Set(bytes, lowest)), hn::Set(bytes, highest));
    });
  };
  int64_t index = 0;
  for (; index + step <= pair.count; index += step) vectors(index);
  if (index == pair.count) return;
  if (pair.count >= step && pair.to != pair.left && pair.to != pair.right) {
    return vectors(pair.count - step);
  }
  for (; index < pair.count; ++index) {
    const float steps = PairFunction<kOp>::of(left.at(index), right.at(index), scales);
    const float limited = steps > lowest_steps ? std::min(steps, highest_steps) : lowest_steps;
    to[index] = static_cast<T>(static_cast<int32_t>(std::nearbyint(limited)) + scales.zero);
  }
}

template <PairOp kOp, class T, bool kHasOneLeft, bool kHasOneRight>
void combine_any_size(const BytePair& pair, const PairScales& scales) {
  constexpr float kSmall = 0x1p30F;
  if (largest_steps<kOp>(scales) < kSmall) {
    combine<kOp, T, kHasOneLeft, kHasOneRight, true>(pair, scales);
  } else {
    combine<kOp, T, kHasOneLeft, kHasOneRight, false>(pair, scales);
  }
}

template <PairOp kOp, class T>
void combine_any(const BytePair& pair, const PairScales& scales) {
  if (pair.has_one_left) return combine_any_size<kOp, T, true, false>(pair, scales);
  if (pair.has_one_right) return combine_any_size<kOp, T, false, true>(pair, scales);
  combine_any_size<kOp, T, false, false>(pair, scales);
}

template <class T>
PairLoop pair_loop(PairOp op) {
  switch (op) {
    case PairOp::Add:
      return combine_any<PairOp::Add, T>;
    case PairOp::Mul:
      return combine_any<PairOp::Mul, T>;
    case PairOp::ExactAdd:
      return combine_any<PairOp::ExactAdd, T>;
    default:
      return combine_any<PairOp::ExactMul, T>;
  }
}

void map_row(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t count) {
  map_bytes(table, from, to, count);
}

// --- Windows -------------------------------------------------------------------------------------

// Elements that are gathered at once.
constexpr int64_t kGathered = 256;

// to[i] = from[i * stride] for [0, count). Reads nothing behind the last of them.
template <class T>
HWY_INLINE void gather_stride(const T* from, int64_t stride, T* to, int64_t count) {
  int64_t index = 0;
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; index + lanes < count; index += lanes) {
      hn::Vec<decltype(d)> even;
      hn::Vec<decltype(d)> odd;
      hn::LoadInterleaved2(d, from + 2 * index, even, odd);
      hn::StoreU(even, d, to + index);
    }
  }
#endif
  for (; index < count; ++index) to[index] = from[index * stride];
}

// Calls part(index, elements, count) for neighbouring elements of a tap, which are contiguous.
template <class T, class Part>
HWY_INLINE void for_parts(const ByteTap& tap, const Part& part) {
  const T* const from = static_cast<const T*>(tap.from);
  if (tap.stride == 1) return part(int64_t{0}, from, tap.count);
  T gathered[kGathered];
  for (int64_t index = 0; index < tap.count; index += kGathered) {
    const int64_t count = std::min(tap.count - index, kGathered);
    gather_stride(from + index * tap.stride, tap.stride, gathered, count);
    part(index, gathered, count);
  }
}

template <class T>
void max_tap(const ByteTap& tap, void* maxima) {
  for_parts<T>(tap, [&](int64_t first, const T* from, int64_t count) HWY_ATTR {
    T* const to = static_cast<T*>(maxima) + first;
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t index = 0;
    for (; index + lanes <= count; index += lanes) {
      const auto larger = hn::Max(hn::LoadU(d, from + index), hn::LoadU(d, to + index));
      hn::StoreU(larger, d, to + index);
    }
    for (; index < count; ++index) to[index] = std::max(to[index], from[index]);
  });
}

template <class T>
void sum_tap(const ByteTap& tap, int32_t* sums) {
  for_parts<T>(tap, [&](int64_t first, const T* from, int64_t count) HWY_ATTR {
    int32_t* const to = sums + first;
    const IntegerLanes d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto zero = hn::Set(d, tap.zero);
    int64_t index = 0;
    for (; index + lanes <= count; index += lanes) {
      const auto term = hn::Sub(promoted(d, from + index), zero);
      hn::StoreU(hn::Add(hn::LoadU(d, to + index), term), d, to + index);
    }
    for (; index < count; ++index) to[index] += from[index] - tap.zero;
  });
}

template <class T>
int64_t sum_bytes(const ByteTap& tap) {
  const auto* const from = static_cast<const uint8_t*>(tap.from);
  int64_t total = -tap.count * tap.zero;
  int64_t index = 0;
#if HWY_TARGET != HWY_SCALAR
  // Unsigned bytes are added in groups of eight; signed ones are 128 larger then.
  constexpr bool kIsSigned = std::is_same_v<T, int8_t>;
  const hn::ScalableTag<uint8_t> bytes;
  const hn::Repartition<uint64_t, decltype(bytes)> words;
  const auto flipped = hn::Set(bytes, kIsSigned ? uint8_t{128} : uint8_t{0});
  const auto lanes = static_cast<int64_t>(hn::Lanes(bytes));
  auto sums = hn::Zero(words);
  for (; index + lanes <= tap.count; index += lanes) {
    const auto unsigned_bytes = hn::Xor(hn::LoadU(bytes, from + index), flipped);
    sums = hn::Add(sums, hn::SumsOf8(unsigned_bytes));
  }
  total += static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(words, sums)));
  if constexpr (kIsSigned) total -= 128 * index;
#endif
  for (; index < tap.count; ++index) total += static_cast<T>(from[index]);
  return total;
}

template <class T>
void rescale(const int32_t* from, const Rescaling& rescaling, void* result, int64_t count) {
  T* const to = static_cast<T*>(result);
  const FloatLanes d;
  const IntegerLanes integers;
  const auto lowest_steps = static_cast<float>(rescaling.lowest - rescaling.zero);
  const auto highest_steps = static_cast<float>(rescaling.highest - rescaling.zero);
  const auto factor = hn::Set(d, rescaling.factor);
  const auto lowest = hn::Set(d, lowest_steps);
  const auto highest = hn::Set(d, highest_steps);
  const auto zero = hn::Set(integers, rescaling.zero);
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = kQuantizedVectors<T> * width;
  const QuantizedStore<T> store;
  int64_t index = 0;
  for (; index + step <= count; index += step) {
    store.put(to + index, [&](int64_t vector) HWY_ATTR {
      const auto number = hn::LoadU(integers, from + index + vector * width);
      const auto steps = hn::Mul(hn::ConvertTo(d, number), factor);
      return hn::Add(rounded_lanes(steps, lowest, highest), zero);
    });
  }
  for (; index < count; ++index) {
    const float steps = static_cast<float>(from[index]) * rescaling.factor;
    const float limited = steps > lowest_steps ? std::min(steps, highest_steps) : lowest_steps;
    to[index] = static_cast<T>(static_cast<int32_t>(std::nearbyint(limited)) + rescaling.zero);
  }
}

// --- Ranges --------------------------------------------------------------------------------------

NumberRange range_of_numbers(const float* from, int64_t count) {
  const FloatLanes d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  // Several accumulators, because each comparison waits for the last one of its accumulator.
  auto lowest = hn::Zero(d);
  auto highest = hn::Zero(d);
  auto lowest_odd = hn::Zero(d);
  auto highest_odd = hn::Zero(d);
  int64_t index = 0;
  for (; index + 2 * width <= count; index += 2 * width) {
    prefetch_read(from + index);
    const auto even = hn::LoadU(d, from + index);
    const auto odd = hn::LoadU(d, from + index + width);
    // Comparisons with NaN are false.
    lowest = hn::IfThenElse(hn::Lt(even, lowest), even, lowest);
    highest = hn::IfThenElse(hn::Gt(even, highest), even, highest);
    lowest_odd = hn::IfThenElse(hn::Lt(odd, lowest_odd), odd, lowest_odd);
    highest_odd = hn::IfThenElse(hn::Gt(odd, highest_odd), odd, highest_odd);
  }
  NumberRange range;
  range.lowest = hn::GetLane(hn::MinOfLanes(d, hn::Min(lowest, lowest_odd)));
  range.highest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(highest, highest_odd)));
  for (; index < count; ++index) {
    if (from[index] < range.lowest) range.lowest = from[index];
    if (from[index] > range.highest) range.highest = from[index];
  }
  return range;
}

// --- Softmax -------------------------------------------------------------------------------------

template <class T>
HWY_INLINE void max_of_row(const T* from, int64_t count, T& top) {
  constexpr int64_t kLanes = 64;
  T tops[kLanes];
  int64_t index = 0;
  if (count >= kLanes) {
    std::copy_n(from, kLanes, tops);
    for (index = kLanes; index + kLanes <= count; index += kLanes) {
      max_tap<T>({from + index, 1, kLanes, 0}, tops);
    }
    top = *std::max_element(tops, tops + kLanes);
  }
  for (; index < count; ++index) top = std::max(top, from[index]);
}

template <class T>
void softmax_row(const void* elements, const float* powers, const Rescaling& rescaling,
                 void* result, int64_t count) {
  const T* const from = static_cast<const T*>(elements);
  T* const to = static_cast<T*>(result);
  T top = from[0];
  max_of_row(from, count, top);
  double sum = 0;
  for (int64_t index = 0; index < count; ++index) sum += powers[top - from[index]];
  const auto factor = static_cast<float>(rescaling.factor / sum);
  const FloatLanes d;
  const IntegerLanes integers;
  const auto lowest_steps = static_cast<float>(rescaling.lowest - rescaling.zero);
  const auto highest_steps = static_cast<float>(rescaling.highest - rescaling.zero);
  // Bytes for all distances at once, if the row is longer than they are many.
  constexpr int64_t kDistances = 256;
  T bytes[kDistances];
  const auto byte_at = [&](int64_t distance) HWY_ATTR {
    const float steps = powers[distance] * factor;
    const float limited = steps > lowest_steps ? std::min(steps, highest_steps) : lowest_steps;
    return static_cast<T>(static_cast<int32_t>(std::nearbyint(limited)) + rescaling.zero);
  };
  if (count < kDistances) {
    for (int64_t index = 0; index < count; ++index) to[index] = byte_at(top - from[index]);
    return;
  }
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(integers, rescaling.zero);
  const QuantizedStore<T> store;
  for (int64_t distance = 0; distance < kDistances; distance += kQuantizedVectors<T> * width) {
    store.put(bytes + distance, [&](int64_t vector) HWY_ATTR {
      const auto power = hn::LoadU(d, powers + distance + vector * width);
      const auto steps = hn::Mul(power, hn::Set(d, factor));
      const auto rounded =
          rounded_lanes(steps, hn::Set(d, lowest_steps), hn::Set(d, highest_steps));
      return hn::Add(rounded, zero);
    });
  }
  for (int64_t index = 0; index < count; ++index) to[index] = bytes[top - from[index]];
}

template <class T>
ByteLoops byte_loops() {
  return {max_tap<T>, sum_tap<T>, sum_bytes<T>, rescale<T>, softmax_row<T>};
}

}  // namespace

ByteLoops byte_loops_of(int32_t data_type) {
  return data_type == TESSERA_INT8 ? byte_loops<int8_t>() : byte_loops<uint8_t>();
}

PairLoop pair_loop_of(PairOp op, int32_t data_type) {
  return data_type == TESSERA_INT8 ? pair_loop<int8_t>(op) : pair_loop<uint8_t>(op);
}

ByteMap byte_map_of() { return map_row; }

RangeLoop range_loop_of() { return range_of_numbers; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(pair_loop_of);
HWY_EXPORT(byte_map_of);
HWY_EXPORT(range_loop_of);
HWY_EXPORT(byte_loops_of);

PairLoop find_pair_loop(PairOp op, int32_t data_type) {
  return HWY_DYNAMIC_DISPATCH(pair_loop_of)(op, data_type);
}

ByteLoops find_byte_loops(int32_t data_type) {
  return HWY_DYNAMIC_DISPATCH(byte_loops_of)(data_type);
}

RangeLoop find_range_loop() { return HWY_DYNAMIC_DISPATCH(range_loop_of)(); }

ByteMap find_byte_map() { return HWY_DYNAMIC_DISPATCH(byte_map_of)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
