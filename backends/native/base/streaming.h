// Prefetching loads and non-temporal stores for large tensors. The lower part is compiled once for
// each instruction set, so files that foreach_target.h includes several times include this one
// after highway.h.
#ifndef TESSERA_NATIVE_STREAMING_H
#define TESSERA_NATIVE_STREAMING_H

#include <cstdint>

namespace tessera::native {

// A result of this many bytes or more is stored past the caches (non-temporal stores): it would be
// evicted before anyone reads it, and an ordinary store reads each cache line from memory first.
// Measured with copies on a server with 2 MiB of cache per core: at 1 MiB such stores are slower by
// half, at 8 MiB faster by a tenth, from 32 MiB on faster by half.
inline constexpr int64_t kStreamedResultBytes = int64_t{8} << 20;

// How far ahead a loop prefetches its operands. Hardware prefetches too, but stops at page borders:
// measured from 2 MiB on, prefetching makes loops up to 1.5 times as fast.
inline constexpr int64_t kAheadBytes = 2048;

// The size of a cache line, and the alignment of streaming stores.
inline constexpr int64_t kLineBytes = 64;

}  // namespace tessera::native

#endif  // TESSERA_NATIVE_STREAMING_H

#if defined(TESSERA_NATIVE_STREAMING_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_STREAMING_TARGET
#undef TESSERA_NATIVE_STREAMING_TARGET
#else
#define TESSERA_NATIVE_STREAMING_TARGET
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

// Prefetch what a loop reads, or writes with ordinary stores, some steps later. A prefetch past the
// end of a tensor does no harm.
HWY_INLINE void prefetch_read(const void* position) {
  hwy::Prefetch(static_cast<const char*>(position) + kAheadBytes);
}
HWY_INLINE void prefetch_write(void* position) {
#if defined(__GNUC__)
  __builtin_prefetch(static_cast<char*>(position) + kAheadBytes, 1);
#else
  (void)position;
#endif
}

// Prefetches what a later pass reads.
HWY_INLINE void prefetch_later(const void* position) {
  hwy::Prefetch(static_cast<const char*>(position));
}

// Stores past the caches if kStreams, else an ordinary store. If kStreams, `to` is aligned to a
// vector. The caller calls hwy::FlushStream() once after the last such loop: it waits until all
// stores are finished, so that other threads see the data.
template <bool kStreams, class D, class V>
HWY_INLINE void store_line(V vector, D d, hwy::HWY_NAMESPACE::TFromD<D>* to) {
  if constexpr (kStreams) {
    hwy::HWY_NAMESPACE::Stream(vector, d, to);
  } else {
    hwy::HWY_NAMESPACE::StoreU(vector, d, to);
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
