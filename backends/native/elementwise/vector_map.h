// Loops over vectors of float32 or float64, for unary and binary functions. Compiled once for each
// instruction set: files that foreach_target.h includes include this header after highway.h.
#if defined(TESSERA_NATIVE_VECTOR_MAP_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_VECTOR_MAP_H
#undef TESSERA_NATIVE_VECTOR_MAP_H
#else
#define TESSERA_NATIVE_VECTOR_MAP_H
#endif

#include <algorithm>
#include <cstdint>

#include "base/partial_vector.h"
#include "base/streaming.h"
#include "elementwise/element_loops.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// One operand of a loop: an array, or a scalar for all elements.
template <class T, bool kIsScalar>
struct Source {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  explicit Source(const void* elements) : from(static_cast<const T*>(elements)) {}
  HWY_INLINE V at(D d, int64_t index) const { return hn::LoadU(d, from + index); }
  HWY_INLINE V first(D d, int64_t index, int64_t count) const {
    // The unused lanes are 1, at which every function is defined.
    return load_some_or(d, from + index, count, hn::Set(d, T{1}));
  }
  HWY_INLINE void prefetch(int64_t index) const { prefetch_read(from + index); }
  const T* from;
};
template <class T>
struct Source<T, true> {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  explicit Source(const void* elements) : vector(hn::Set(D(), *static_cast<const T*>(elements))) {}
  HWY_INLINE V at(D, int64_t) const { return vector; }
  HWY_INLINE V first(D, int64_t, int64_t) const { return vector; }
  HWY_INLINE void prefetch(int64_t) const {}
  V vector;
};

// The number of elements before the first cache line that begins in `to`.
template <class T>
HWY_INLINE int64_t elements_before_line(const T* to) {
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLineBytes);
  return past == 0 ? 0 : (kLineBytes - past) / static_cast<int64_t>(sizeof(T));
}

template <bool kStreams, class T, class Compute, class... Sources>
HWY_INLINE void map_sources(T* to, int64_t count, const Compute& compute,
                            const Sources&... sources) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto some = [&](int64_t index, int64_t wanted) HWY_ATTR {
    store_some(compute(d, sources.first(d, index, wanted)...), d, to + index, wanted);
  };
  int64_t index = 0;
  if constexpr (kStreams) {
    const int64_t head = std::min(elements_before_line(to), count);
    for (; index < head; index = std::min(head, index + lanes)) {
      some(index, std::min(lanes, head - index));
    }
  }
  const int64_t line = std::max<int64_t>(lanes, kLineBytes / static_cast<int64_t>(sizeof(T)));
  for (; index + line <= count; index += line) {
    (sources.prefetch(index), ...);
    if constexpr (!kStreams) prefetch_write(to + index);
    for (int64_t part = index; part < index + line; part += lanes) {
      store_line<kStreams>(compute(d, sources.at(d, part)...), d, to + part);
    }
  }
  for (; index + lanes <= count; index += lanes) {
    hn::StoreU(compute(d, sources.at(d, index)...), d, to + index);
  }
  if (index < count) some(index, count - index);
}

// Applies Function::of(d, x, parameters) to each vector.
template <class Function, class T, bool kStreams>
void map_unary(const LoopCall& call) {
  const Parameters parameters = call.parameters;
  map_sources<kStreams>(
      static_cast<T*>(call.to), call.count,
      [&](auto d, auto x) HWY_ATTR { return Function::of(d, x, parameters); },
      Source<T, false>(call.from[0]));
}

// Applies Function::of(d, x, y) to each pair of vectors.
template <class Function, bool kIsLeftScalar, bool kIsRightScalar, bool kStreams>
void map_binary(const LoopCall& call) {
  map_sources<kStreams>(
      static_cast<float*>(call.to), call.count,
      [](auto d, auto x, auto y) HWY_ATTR { return Function::of(d, x, y); },
      Source<float, kIsLeftScalar>(call.from[0]), Source<float, kIsRightScalar>(call.from[1]));
}

template <class Function, class T = float>
constexpr LoopSet unary_loops() {
  return {{map_unary<Function, T, false>}, {map_unary<Function, T, true>}};
}

template <class Function>
constexpr LoopSet binary_loops() {
  return {{map_binary<Function, false, false, false>, map_binary<Function, true, false, false>,
           map_binary<Function, false, true, false>},
          {map_binary<Function, false, false, true>, map_binary<Function, true, false, true>,
           map_binary<Function, false, true, true>}};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
