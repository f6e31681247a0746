// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "copy/copy_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "copy/copy_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "copy/transpose_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLine = 64;

// Rows of 64 bytes to a few kibibytes, for which a call per row would take as long as the copy. The
// next rows are prefetched, because hardware does not predict them.
void copy_rows(const RowCopy& rows) {
  constexpr int64_t kAhead = 4;
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const uint8_t*>(rows.from);
  auto* to = static_cast<uint8_t*>(rows.to);
  // Only whole aligned vectors can be streamed.
  const bool is_streamed = rows.is_streamed && rows.bytes % kLine == 0 &&
                           rows.to_stride % kLine == 0 &&
                           reinterpret_cast<uintptr_t>(to) % kLine == 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    const uint8_t* source = from + row * rows.from_stride;
    uint8_t* target = to + row * rows.to_stride;
    if (row + kAhead < rows.count) {
      for (int64_t line = 0; line < rows.bytes; line += kLine) {
        hwy::Prefetch(source + kAhead * rows.from_stride + line);
      }
    }
    int64_t index = 0;
    if (is_streamed) {
      for (; index < rows.bytes; index += lanes) {
        hn::Stream(hn::LoadU(d, source + index), d, target + index);
      }
      continue;
    }
    for (; index + lanes <= rows.bytes; index += lanes) {
      hn::StoreU(hn::LoadU(d, source + index), d, target + index);
    }
    // The last vector overlaps the one before.
    if (index < rows.bytes) {
      index = rows.bytes - lanes;
      hn::StoreU(hn::LoadU(d, source + index), d, target + index);
    }
  }
}

template <class T>
void fill(const void* element, void* to, int64_t count) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  T* target = static_cast<T*>(to);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vector = hn::Set(d, value);
  int64_t index = 0;
  if (kHasVectors) {
    for (; index + lanes <= count; index += lanes) hn::StoreU(vector, d, target + index);
  }
  for (; index < count; ++index) store_element(value, target + index);
}

// Same as fill(), but stores past the caches.
template <class T>
void stream_fill(const void* element, void* to, int64_t count) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  T* target = static_cast<T*>(to);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vector = hn::Set(d, value);
  int64_t index = 0;
  // Only whole aligned vectors can be streamed.
  while (index < count &&
         reinterpret_cast<uintptr_t>(target + index) % (static_cast<size_t>(lanes) * sizeof(T)) !=
             0) {
    store_element(value, target + index++);
  }
  for (; index + lanes <= count; index += lanes) hn::Stream(vector, d, target + index);
  for (; index < count; ++index) store_element(value, target + index);
}

// Elements in reverse order, from[0] first.
template <class T>
void reverse(const T* from, T* to, int64_t count) {
  int64_t index = 0;
  // Highway reverses no bytes.
  if constexpr (sizeof(T) > 1 && kHasVectors) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; index + lanes <= count; index += lanes) {
      hn::StoreU(hn::Reverse(d, hn::LoadU(d, from - index - lanes + 1)), d, to + index);
    }
  }
  for (; index < count; ++index) store_element(load_element(from - index), to + index);
}

template <class T>
void strided(const void* source, int64_t stride, void* target, int64_t count) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  if (stride == -1) return reverse(from, to, count);
  int64_t index = 0;
  if (stride == 2 && kHasVectors) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    // The vectors read one element past the last one that is needed.
    for (; index + lanes < count; index += lanes) {
      auto even = hn::Zero(d);
      auto odd = hn::Zero(d);
      hn::LoadInterleaved2(d, from + 2 * index, even, odd);
      hn::StoreU(even, d, to + index);
    }
  }
  for (; index < count; ++index) store_element(load_element(from + index * stride), to + index);
}

template <class T>
void gather(const void* source, const int32_t* indices, void* target, int64_t count) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  int64_t index = 0;
  // Without gather instructions the scalar loop is as fast.
  if constexpr (sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; index + lanes <= count; index += lanes) {
      hn::StoreU(hn::GatherIndex(d, from, hn::LoadU(di, indices + index)), d, to + index);
    }
  }
  for (; index < count; ++index) store_element(load_element(from + indices[index]), to + index);
}

template <class T>
void repeat_each(const void* source, int64_t factor, void* target, int64_t count) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  int64_t index = 0;
  if (factor == 2 && kHasVectors) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; index < count && lanes <= count; index += lanes) {
      // The last vectors overlap those before.
      const int64_t start = std::min(index, count - lanes);
      const auto once = hn::LoadU(d, from + start);
      hn::StoreInterleaved2(once, once, d, to + 2 * start);
    }
  }
  for (; index < count; ++index) {
    const T element = load_element(from + index);
    for (int64_t copy = 0; copy < factor; ++copy)
      store_element(element, to + index * factor + copy);
  }
}

template <class T>
constexpr CopyLoops kLoopsFor = {fill<T>,   stream_fill<T>, strided<T>,
                                 gather<T>, repeat_each<T>, transpose<T>};
constexpr CopyLoops kLoops[] = {kLoopsFor<uint8_t>, kLoopsFor<uint16_t>, kLoopsFor<uint32_t>,
                                kLoopsFor<uint64_t>};

const CopyLoops* copy_loops() { return kLoops; }
StreamLoop stream_loop() { return stream; }
RowLoop row_loop() { return copy_rows; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(copy_loops);
HWY_EXPORT(row_loop);
HWY_EXPORT(stream_loop);

const CopyLoops* find_copy_loops() { return HWY_DYNAMIC_DISPATCH(copy_loops)(); }
RowLoop find_row_loop() { return HWY_DYNAMIC_DISPATCH(row_loop)(); }
StreamLoop find_stream_loop() { return HWY_DYNAMIC_DISPATCH(stream_loop)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
