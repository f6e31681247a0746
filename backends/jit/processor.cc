#include "processor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tessera/backend.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tessera::jit {

using plugin::Failure;

namespace {

#if defined(__x86_64__)

// F16C, MOVBE and LZCNT, for which compilers have no common names.
bool has_rest_of_v3() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kF16c = 1U << 29;
  constexpr unsigned kMovbe = 1U << 22;
  if ((c & kF16c) == 0 || (c & kMovbe) == 0) return false;
  if (__get_cpuid(0x80000001U, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kLzcnt = 1U << 5;
  return (c & kLzcnt) != 0;
}

std::string level_of_processor() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("sse4.1") ||
      !__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) {
    return "";
  }
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") || !has_rest_of_v3()) {
    return "x86-64-v2";
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return "x86-64-v3";
  }
  return "x86-64-v4";
}

#else

std::string level_of_processor() { return ""; }

#endif

// Reads a size from a system file about a cache: a number, and a letter for its unit. Returns 0 if
// there is no such file.
int64_t number_in_file(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  char unit = ' ';
  if (!(file >> number)) return 0;
  file >> unit;
  return number * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

// Bytes of the last cache of the first core; 0 if the system does not tell. sysconf() may report
// the sum of all caches of the processor, of which a virtual machine has a part.
int64_t last_cache_bytes() {
  constexpr int kMaxCaches = 8;
  int64_t bytes = 0;
  int64_t highest = 0;
  for (int cache = 0; cache < kMaxCaches; ++cache) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(cache) + "/";
    const int64_t level = number_in_file(folder + "level");
    if (level <= highest) continue;
    highest = level;
    bytes = number_in_file(folder + "size");
  }
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (bytes == 0) bytes = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  return bytes;
}

}  // namespace

Target target_of_level(const std::string& level) {
  return {.level = level,
          .vector_bytes = level == "x86-64-v4"   ? 64
                          : level == "x86-64-v3" ? 32
                                                 : 16};
}

Target this_processor() {
  const std::string level = level_of_processor();
  if (level.empty()) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "compiles for x86-64-v2 or newer only, which this processor is not");
  }
  Target target = target_of_level(level);
  const int64_t bytes = last_cache_bytes();
  if (bytes > 0) target.cached_bytes = bytes;
  return target;
}

}  // namespace tessera::jit
