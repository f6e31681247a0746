// The loops of QuantizeLinear and DequantizeLinear, and of functions of single bytes by a table.
// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
//
// The operands of the first two are the elements, the scale and the zero point. Numbers are those
// of the definition, rounded at the same places:
//   real    = (integer - zero point) * scale
//   integer = real / scale in float32, to the nearest, ties to even, plus the zero point, limited.
//             NaN becomes the smallest integer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "elementwise/element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise/quantize_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/byte_table.h"
#include "base/quantizing.h"
#include "base/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// --- DequantizeLinear ----------------------------------------------------------------------------

// A scale or zero point: one for all elements, or one for each.
template <class T, bool kIsOne>
HWY_INLINE T operand_at(const T* from, int64_t index) {
  return from[kIsOne ? 0 : index];
}

template <class T>
HWY_INLINE float real_of(T integer, float scale, T zero_point) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<float>((static_cast<double>(integer) - zero_point) * scale);
  } else {
    return static_cast<float>(int32_t{integer} - zero_point) * scale;
  }
}

template <class T, bool kHasOneScale, bool kHasOneZero>
struct Dequantizing {
  explicit Dequantizing(const LoopCall& call)
      : from(static_cast<const T*>(call.from[0])),
        scales(static_cast<const float*>(call.from[1])),
        zeros(static_cast<const T*>(call.from[2])) {}

  HWY_INLINE float at(int64_t index) const {
    return real_of<T>(from[index], operand_at<float, kHasOneScale>(scales, index),
                      operand_at<T, kHasOneZero>(zeros, index));
  }

  HWY_INLINE hn::Vec<FloatLanes> vector_at(int64_t index) const {
    const FloatLanes d;
    const hn::Rebind<int32_t, FloatLanes> integers;
    const auto steps = hn::Sub(promoted(integers, from + index), zero_vector(integers, index));
    return hn::Mul(hn::ConvertTo(d, steps), scale_vector(d, index));
  }

  template <class D>
  HWY_INLINE hn::Vec<D> scale_vector(D d, int64_t index) const {
    if constexpr (kHasOneScale) return hn::Set(d, scales[0]);
    return hn::LoadU(d, scales + index);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> zero_vector(D d, int64_t index) const {
    if constexpr (kHasOneZero) return hn::Set(d, int32_t{zeros[0]});
    return promoted(d, zeros + index);
  }

  const T* from;
  const float* scales;
  const T* zeros;
};

template <class T, bool kHasOneScale, bool kHasOneZero, bool kStreams>
void dequantize(const LoopCall& call) {
  const Dequantizing<T, kHasOneScale, kHasOneZero> source(call);
  float* const to = static_cast<float*>(call.to);
  int64_t index = 0;
  if constexpr (sizeof(T) == 4) {
    // The compiler vectorizes it in float64, which holds each int32.
    for (; index < call.count; ++index) to[index] = source.at(index);
    return;
  }
  const FloatLanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (kStreams) {
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLineBytes);
    const int64_t head = past == 0 ? 0 : (kLineBytes - past) / static_cast<int64_t>(sizeof(float));
    for (const int64_t end = std::min(head, call.count); index < end; ++index) {
      to[index] = source.at(index);
    }
  }
  constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(float));
  const int64_t line = std::max(lanes, kLine);
  for (; index + line <= call.count; index += line) {
    prefetch_read(source.from + index);
    if constexpr (!kStreams) prefetch_write(to + index);
    for (int64_t part = index; part < index + line; part += lanes) {
      if constexpr (sizeof(T) < 4) store_line<kStreams>(source.vector_at(part), d, to + part);
    }
  }
  for (; index < call.count; ++index) to[index] = source.at(index);
}

template <class T>
constexpr LoopSet dequantize_loops() {
  constexpr bool kStreams = sizeof(T) < 4;
  return {{dequantize<T, false, false, false>, dequantize<T, true, false, false>,
           dequantize<T, false, true, false>, dequantize<T, true, true, false>},
          {kStreams ? dequantize<T, false, false, true> : nullptr,
           kStreams ? dequantize<T, true, false, true> : nullptr,
           kStreams ? dequantize<T, false, true, true> : nullptr,
           kStreams ? dequantize<T, true, true, true> : nullptr}};
}

// --- QuantizeLinear ------------------------------------------------------------------------------

template <class T, bool kHasOneScale, bool kHasOneZero>
struct Quantizing {
  explicit Quantizing(const LoopCall& call)
      : from(static_cast<const float*>(call.from[0])),
        scales(static_cast<const float*>(call.from[1])),
        zeros(static_cast<const T*>(call.from[2])) {}

  HWY_INLINE T at(int64_t index) const {
    return quantized<T>(from[index], operand_at<float, kHasOneScale>(scales, index),
                        operand_at<T, kHasOneZero>(zeros, index));
  }

  HWY_INLINE hn::Vec<IntegerLanes> vector_at(int64_t index) const {
    const FloatLanes d;
    const IntegerLanes integers;
    hn::Vec<FloatLanes> scale = hn::Set(d, scales[0]);
    if constexpr (!kHasOneScale) scale = hn::LoadU(d, scales + index);
    hn::Vec<IntegerLanes> zero = hn::Set(integers, int32_t{zeros[0]});
    if constexpr (!kHasOneZero) zero = promoted(integers, zeros + index);
    return quantized_lanes<T>(hn::LoadU(d, from + index), scale, zero);
  }

  const float* from;
  const float* scales;
  const T* zeros;
};

template <class T, bool kHasOneScale, bool kHasOneZero>
void quantize(const LoopCall& call) {
  const Quantizing<T, kHasOneScale, kHasOneZero> source(call);
  T* const to = static_cast<T*>(call.to);
  const auto lanes = static_cast<int64_t>(hn::Lanes(FloatLanes()));
  const int64_t step = kQuantizedVectors<T> * lanes;
  const QuantizedStore<T> store;
  int64_t index = 0;
  for (; index + step <= call.count; index += step) {
    for (int64_t part = 0; part < step; part += kLineBytes / 4) {
      prefetch_read(source.from + index + part);
    }
    store.put(to + index,
              [&](int64_t vector) HWY_ATTR { return source.vector_at(index + vector * lanes); });
  }
  for (; index < call.count; ++index) to[index] = source.at(index);
}

template <class T>
constexpr LoopSet quantize_loops() {
  return {{quantize<T, false, false>, quantize<T, true, false>, quantize<T, false, true>,
           quantize<T, true, true>}};
}

// --- Tables --------------------------------------------------------------------------------------

void look_up(const LoopCall& call) {
  map_bytes(call.parameters.table, static_cast<const uint8_t*>(call.from[0]),
            static_cast<uint8_t*>(call.to), call.count);
}

}  // namespace

LoopSet dequantize_loops_of(int32_t from) {
  switch (from) {
    case TESSERA_INT8:
      return dequantize_loops<int8_t>();
    case TESSERA_UINT8:
      return dequantize_loops<uint8_t>();
    case TESSERA_INT16:
      return dequantize_loops<int16_t>();
    case TESSERA_UINT16:
      return dequantize_loops<uint16_t>();
    case TESSERA_INT32:
      return dequantize_loops<int32_t>();
    default:
      return {};
  }
}

LoopSet quantize_loops_of(int32_t to) {
  switch (to) {
    case TESSERA_INT8:
      return quantize_loops<int8_t>();
    case TESSERA_UINT8:
      return quantize_loops<uint8_t>();
    case TESSERA_INT16:
      return quantize_loops<int16_t>();
    case TESSERA_UINT16:
      return quantize_loops<uint16_t>();
    default:
      return {};
  }
}

LoopSet table_loops_of() { return {{look_up}}; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(dequantize_loops_of);
HWY_EXPORT(quantize_loops_of);
HWY_EXPORT(table_loops_of);

LoopSet find_dequantize_loops(int32_t from) {
  return HWY_DYNAMIC_DISPATCH(dequantize_loops_of)(from);
}

LoopSet find_quantize_loops(int32_t to) { return HWY_DYNAMIC_DISPATCH(quantize_loops_of)(to); }

LoopSet find_table_loops() { return HWY_DYNAMIC_DISPATCH(table_loops_of)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
