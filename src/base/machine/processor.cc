#include "base/machine/processor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// The fastest of several trials counts, because disturbances only slow down.
constexpr int kTrials = 12;
constexpr int64_t kChainIterations = 400'000;
constexpr double kFasterClock = 1.1;  // than that of the trials
constexpr int64_t kCachedBytes = int64_t{256} << 10;

struct InstructionSet {
  const char* name;
  double flops_per_second;
  double bytes_per_second;
};

// Per cycle two full-width multiply-adds and two full-width loads, at 5.5 GHz.
constexpr InstructionSet kAvx512 = {"avx512", 5.5e9 * 2 * 2 * 16, 5.5e9 * 2 * 64};
constexpr InstructionSet kAvx2 = {"avx2", 5.5e9 * 2 * 2 * 8, 5.5e9 * 2 * 32};
constexpr InstructionSet kBaseline = {"baseline", 5.5e9 * 2 * 2 * 4, 5.5e9 * 2 * 16};

const InstructionSet& instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2;
#endif
  return kBaseline;
}

// Keeps the compiler from removing the computation of `value`.
template <class Value>
void keep(const Value& value) {
  asm volatile("" : : "m"(value) : "memory");
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

#if defined(__x86_64__)

// Independent sums: enough to hide a latency of five cycles on two units. They stay in registers
// only if their loops are unrolled, which at -O2 has to be asked for. They differ, because equal
// ones would be computed once.
constexpr int kChains = 12;

__attribute__((target("avx512f"))) double flops_avx512() {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int sum = 0; sum < kChains; ++sum) sums[sum] = _mm512_set1_ps(static_cast<float>(sum));
  const __m512 factor = _mm512_set1_ps(0.999F);
  for (int64_t round = 0; round < kChainIterations; ++round) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  keep(sums);
  return static_cast<double>(kChainIterations) * kChains * 16 * 2;
}

__attribute__((target("avx2,fma"))) double flops_avx2() {
  __m256 sums[kChains];
#pragma GCC unroll 12
  for (int sum = 0; sum < kChains; ++sum) sums[sum] = _mm256_set1_ps(static_cast<float>(sum));
  const __m256 factor = _mm256_set1_ps(0.999F);
  for (int64_t round = 0; round < kChainIterations; ++round) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  keep(sums);
  return static_cast<double>(kChainIterations) * kChains * 8 * 2;
}

#endif

#if defined(__x86_64__)
// The processor's brand string, without spaces around it; "" if it does not tell.
std::string brand_string() {
  constexpr unsigned kFirstLeaf = 0x80000002;
  constexpr size_t kLeaves = 3;
  std::array<unsigned, 4 * kLeaves> words{};
  if (__get_cpuid_max(0x80000000, nullptr) < kFirstLeaf + kLeaves - 1) return "";
  for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
    unsigned* word = words.data() + 4 * leaf;
    __cpuid(kFirstLeaf + static_cast<unsigned>(leaf), word[0], word[1], word[2], word[3]);
  }
  std::array<char, sizeof(words) + 1> text{};  // with a terminating zero in any case
  std::memcpy(text.data(), words.data(), sizeof(words));
  const std::string brand = text.data();
  const size_t first = brand.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}
#endif

double flops_baseline() {
  float sums[16];
  std::iota(std::begin(sums), std::end(sums), 0.0F);
  for (int64_t round = 0; round < kChainIterations; ++round) {
    for (float& sum : sums) sum = sum * 0.999F + 0.999F;
  }
  keep(sums);
  return static_cast<double>(kChainIterations) * 16 * 2;
}

double run_flops() {
#if defined(__x86_64__)
  if (&instruction_set() == &kAvx512) return flops_avx512();
  if (&instruction_set() == &kAvx2) return flops_avx2();
#endif
  return flops_baseline();
}

}  // namespace

std::string processor_model() {
#if defined(__x86_64__)
  // CPUID gives the same text as /proc/cpuinfo without a file access.
  if (std::string brand = brand_string(); !brand.empty()) return brand;
#endif
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  return model;
}

std::string instruction_set_name() { return instruction_set().name; }

std::string processor_name() { return processor_model() + ", " + instruction_set_name(); }

ProcessorSpeed assumed_speed() {
  return {instruction_set().flops_per_second, instruction_set().bytes_per_second};
}

ProcessorSpeed measure_speed() {
  ProcessorSpeed speed;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Clock::time_point start = Clock::now();
    const double flops = run_flops();
    speed.flops_per_second = std::max(speed.flops_per_second, flops / seconds_since(start));
  }
  speed.flops_per_second =
      std::min(kFasterClock * speed.flops_per_second, assumed_speed().flops_per_second);
  const std::vector<uint64_t> memory(static_cast<size_t>(kCachedBytes) / sizeof(uint64_t), 1);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Clock::time_point start = Clock::now();
    constexpr int kPasses = 32;
    for (int pass = 0; pass < kPasses; ++pass) {
      keep(std::accumulate(memory.begin(), memory.end(), uint64_t{0}));
      keep(memory);
    }
    const double bytes = static_cast<double>(kCachedBytes) * kPasses;
    speed.bytes_per_second = std::max(speed.bytes_per_second, bytes / seconds_since(start));
  }
  // The compiler need not use the widest loads for this sum, so more bandwidth is attainable.
  speed.bytes_per_second *= 4;
  return speed;
}

}  // namespace tessera
