#include "native_limits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::bench {
namespace {

constexpr int64_t kVector = 64;

void copy(const char* from, char* to, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

// The results of reading loops are stored here, so that the compiler does not remove them.
std::atomic<uint64_t> read_sum;

#if defined(__x86_64__)

__attribute__((target("avx"))) void stream_wide(const char* from, char* to, int64_t bytes) {
  for (int64_t index = 0; index + kVector <= bytes; index += kVector) {
    for (int64_t part = 0; part < kVector; part += 32) {
      const auto* source = reinterpret_cast<const __m256i*>(from + index + part);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + index + part),
                          _mm256_loadu_si256(source));
    }
  }
  _mm_sfence();
}

void stream(const char* from, char* to, int64_t bytes) {
  if (__builtin_cpu_supports("avx")) return stream_wide(from, to, bytes);
  copy(from, to, bytes);
}

__attribute__((target("avx2"))) void read_wide(const char* from, char*, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t index = 0; index + 128 <= bytes; index += 128) {
    for (int64_t part = 0; part < 4; ++part) {
      const auto* source = reinterpret_cast<const __m256i*>(from + index + part * 32);
      sums[part] = _mm256_add_epi64(sums[part], _mm256_loadu_si256(source));
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  read_sum += static_cast<uint64_t>(_mm256_extract_epi64(sum, 0));
}

#else

void stream(const char* from, char* to, int64_t bytes) { copy(from, to, bytes); }

#endif

void read_plain(const char* from, char*, int64_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(from);
  uint64_t sum = 0;
  for (int64_t index = 0; index < bytes / 8; ++index) sum += words[index];
  read_sum += sum;
}

void read(const char* from, char* to, int64_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_wide(from, to, bytes);
#endif
  read_plain(from, to, bytes);
}

}  // namespace

LimitLoop::LimitLoop(std::string name, int64_t bytes, bool writes, Piece piece)
    : name_(std::move(name)),
      bytes_((writes ? bytes / 2 : bytes) / kVector * kVector),
      from_(DataType::UInt8, {bytes_}),
      to_(DataType::UInt8, {writes ? bytes_ : 0}),
      piece_(piece) {
  std::memset(from_.mutable_data(), 1, static_cast<size_t>(from_.bytes()));
  if (writes) std::memset(to_.mutable_data(), 1, static_cast<size_t>(to_.bytes()));
}

void LimitLoop::run(ThreadPool& pool) {
  const auto* from = static_cast<const char*>(from_.data());
  auto* to = static_cast<char*>(to_.mutable_data());
  const int64_t vectors = bytes_ / kVector;
  const int64_t grain = std::max<int64_t>(1024, (vectors + pool.threads() - 1) / pool.threads());
  pool.parallel_for(vectors, grain, [&](int64_t begin, int64_t end) {
    piece_(from + begin * kVector, to + begin * kVector, (end - begin) * kVector);
  });
}

std::vector<LimitLoop> copy_limits(int64_t bytes) {
  std::vector<LimitLoop> limits;
  limits.emplace_back("memcpy", bytes, true, copy);
  limits.emplace_back("streaming", bytes, true, stream);
  return limits;
}

std::vector<LimitLoop> read_limits(int64_t bytes) {
  std::vector<LimitLoop> limits;
  limits.emplace_back("reading", bytes, false, read);
  return limits;
}

}  // namespace tessera::bench
