#include "base/machine/cache.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tessera {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kAssumedCacheBytes = int64_t{32} << 20;
constexpr int64_t kAssumedCoreCacheBytes = int64_t{1} << 20;

}  // namespace

int64_t last_level_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (const int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const auto bytes = static_cast<int64_t>(sysconf(name));
    if (bytes > 0) return bytes;
  }
#endif
  return kAssumedCacheBytes;
}

int64_t core_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const auto bytes = static_cast<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE));
  if (bytes > 0) return bytes;
#endif
  return kAssumedCoreCacheBytes;
}

void read_into_caches(const void* data, int64_t bytes) {
  const auto* first = static_cast<const volatile char*>(data);
  for (int64_t at = 0; at < bytes; at += kLineBytes) static_cast<void>(first[at]);
}

#if defined(__x86_64__)

namespace {

bool has_clflushopt() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kClflushopt = 1U << 23;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClflushopt) != 0;
}

// Unlike CLFLUSH, does not wait for one line before the next.
__attribute__((target("clflushopt"))) void flush_fast(const char* first, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLineBytes) {
    _mm_clflushopt(const_cast<char*>(first + at));
  }
  if (bytes > 0) _mm_clflushopt(const_cast<char*>(first + bytes - 1));
  _mm_mfence();
}

}  // namespace

void evict_from_caches(const void* data, int64_t bytes) {
  static const bool kIsFast = has_clflushopt();
  const auto* first = static_cast<const char*>(data);
  if (kIsFast) return flush_fast(first, bytes);
  for (int64_t at = 0; at < bytes; at += kLineBytes) _mm_clflush(first + at);
  if (bytes > 0) _mm_clflush(first + bytes - 1);
  _mm_mfence();
}

#else

void evict_from_caches(const void* /*data*/, int64_t /*bytes*/) {
  // Twice, because a cache with random replacement keeps some lines the first time.
  const std::vector<char> other(static_cast<size_t>(2 * last_level_cache_bytes()), 1);
  read_into_caches(other.data(), static_cast<int64_t>(other.size()));
}

#endif

}  // namespace tessera
