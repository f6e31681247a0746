// Loads and stores of large tensors. The lower part is compiled once for each instruction set, so
// files that foreach_target.h includes again and again include this one after highway.h.
#ifndef TESSERA_NATIVE_STREAMING_H
#define TESSERA_NATIVE_STREAMING_H

#include <cstdint>

namespace tessera::native {

// A result of so many bytes is written past the caches: it would leave the nearer ones before
// anyone reads it, and a plain store reads each line from memory first. Measured on a server with 2
// MiB of cache a core, of copies: at 1 MiB such stores are slower by half, at 8 MiB faster by a
// tenth, from 32 MiB on by a half.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

// How far ahead of a loop its operands are asked for. Hardware does so too, but stops at pages:
// measured from 2 MiB on, asking makes loops up to half as fast again.
inline constexpr int64_t kAheadBytes = 2048;

// A line of a cache, and what streaming stores are aligned to at least.
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

// Asks for what a loop reads, or writes with plain stores, some steps from now. Past the end of a
// tensor that does nothing.
HWY_INLINE void expect_read(const void* place) {
  hwy::Prefetch(static_cast<const char*>(place) + kAheadBytes);
}
HWY_INLINE void expect_write(void* place) {
#if defined(__GNUC__)
  __builtin_prefetch(static_cast<char*>(place) + kAheadBytes, 1);
#else
  (void)place;
#endif
}

// Asks for what a later pass reads, while this one computes.
HWY_INLINE void expect_later(const void* place) { hwy::Prefetch(static_cast<const char*>(place)); }

// Stores past the caches, or plainly. `to` is aligned to a vector where kStreams. Whoever calls
// such loops calls hwy::FlushStream() after the last one, which makes what they stored visible to
// other threads: once, as it waits for all of it.
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
