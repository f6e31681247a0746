// The loops of kernels on quantised bytes. Included once for each instruction set by
// foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/byte_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

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

// The tail is the last whole vector of the row again, unless the result is made in place of an
// operand: those elements would be read after they were written. Then, and in short rows, elements
// are computed one by one; both round at the same places.
template <PairOp kOp, class T, bool kHasOneLeft, bool kHasOneRight>
void combine(const BytePair& pair, const PairScales& scales) {
  const ByteOperand<T, kHasOneLeft> left(pair.left, scales.left_zero);
  const ByteOperand<T, kHasOneRight> right(pair.right, scales.right_zero);
  T* const to = static_cast<T*>(pair.to);
  const FloatLanes d;
  const IntegerLanes integers;
  const PairLanes<kOp> lanes(scales);
  const auto lowest_steps = static_cast<float>(scales.lowest - scales.zero);
  const auto highest_steps = static_cast<float>(scales.highest - scales.zero);
  const auto lowest = hn::Set(d, lowest_steps);
  const auto highest = hn::Set(d, highest_steps);
  const auto zero = hn::Set(integers, scales.zero);
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = kQuantizedVectors<T> * width;
  const auto vectors = [&](int64_t index) HWY_ATTR {
    store_quantized(to + index, [&](int64_t vector) HWY_ATTR {
      const int64_t part = index + vector * width;
      const auto steps = lanes.of(left.lanes_at(part), right.lanes_at(part));
      return hn::Add(rounded_lanes(steps, lowest, highest), zero);
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

template <PairOp kOp, class T>
void combine_any(const BytePair& pair, const PairScales& scales) {
  if (pair.has_one_left) return combine<kOp, T, true, false>(pair, scales);
  if (pair.has_one_right) return combine<kOp, T, false, true>(pair, scales);
  combine<kOp, T, false, false>(pair, scales);
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

// Calls step(index, element) for each output of a tap. The usual strides have loops of their own,
// which the compiler vectorizes.
template <class T, class Step>
HWY_INLINE void for_tap(const ByteTap& tap, const Step& step) {
  const T* const from = static_cast<const T*>(tap.from);
  if (tap.stride == 1) {
    TESSERA_INDEPENDENT_STEPS
    for (int64_t index = 0; index < tap.count; ++index) step(index, from[index]);
  } else if (tap.stride == 2) {
    TESSERA_INDEPENDENT_STEPS
    for (int64_t index = 0; index < tap.count; ++index) step(index, from[2 * index]);
  } else {
    for (int64_t index = 0; index < tap.count; ++index) step(index, from[tap.stride * index]);
  }
}

template <class T>
void max_tap(const ByteTap& tap, void* maxima) {
  T* const to = static_cast<T*>(maxima);
  for_tap<T>(tap, [to](int64_t index, T element)
                      HWY_ATTR { to[index] = to[index] > element ? to[index] : element; });
}

template <class T>
void sum_tap(const ByteTap& tap, int32_t* sums) {
  const int32_t zero = tap.zero;
  for_tap<T>(tap, [=](int64_t index, T element) HWY_ATTR { sums[index] += element - zero; });
}

template <class T>
int64_t sum_bytes(const ByteTap& tap) {
  // So many bytes have a sum of 32 bits.
  constexpr int64_t kPart = int64_t{1} << 20;
  const T* const from = static_cast<const T*>(tap.from);
  int64_t total = 0;
  for (int64_t begin = 0; begin < tap.count; begin += kPart) {
    const int64_t end = std::min(begin + kPart, tap.count);
    int32_t sum = 0;
    for (int64_t index = begin; index < end; ++index) sum += from[index];
    total += sum;
  }
  return total - tap.count * tap.zero;
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
  int64_t index = 0;
  for (; index + step <= count; index += step) {
    store_quantized(to + index, [&](int64_t vector) HWY_ATTR {
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
void softmax_row(const void* elements, const float* powers, const Rescaling& rescaling,
                 void* result, int64_t count) {
  const T* const from = static_cast<const T*>(elements);
  T* const to = static_cast<T*>(result);
  T top = from[0];
  for (int64_t index = 0; index < count; ++index) top = top > from[index] ? top : from[index];
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
  for (int64_t distance = 0; distance < kDistances; distance += kQuantizedVectors<T> * width) {
    store_quantized(bytes + distance, [&](int64_t vector) HWY_ATTR {
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
