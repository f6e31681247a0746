// Which of Highway's targets this processor has. Defines the two functions of Highway's library
// that the generated dispatch tables call, and the one that its assertions call in debug builds.
// The library itself is not linked: when it is loaded it measures the tick of the processor's
// clock, which takes 5 ms of every process start (docs/decisions/0026).
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/targets.h"
#include "hwy/targets.h"

namespace {

// Whether tests keep kernels from using dot products of bytes.
bool avoids_dot_products = false;

#if HWY_ARCH_X86

// The instruction set extensions that the compiler may use for each target.
int64_t find_targets() {
  int64_t targets = HWY_STATIC_TARGET;
  const bool has_sse4 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                        __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                        __builtin_cpu_supports("aes");
  if (!has_sse4) return targets;
  targets |= HWY_SSSE3 | HWY_SSE4;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                        __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt");
  if (!has_avx2) return targets;
  targets |= HWY_AVX2;
  const bool has_avx3 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd");
  if (!has_avx3) return targets;
  targets |= HWY_AVX3;
  const bool has_avx3_dl =
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("vpclmulqdq") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
      __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx512vpopcntdq") &&
      __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("gfni");
  return has_avx3_dl ? targets | HWY_AVX3_DL : targets;
}

#else

int64_t find_targets() { return HWY_STATIC_TARGET; }

#endif

}  // namespace

namespace hwy {

void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

int64_t SupportedTargets() {
  static const int64_t kTargets = find_targets();
  return kTargets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy

namespace tessera::native {

bool may_use_dot_products() { return !avoids_dot_products; }

}  // namespace tessera::native

// For tests, which find this function by its name: limits kernels to these of the processor's
// instruction sets (Highway's bits; 0: all). HWY_AVX3_DL beside another one allows dot products of
// bytes. Must not be called while a kernel runs. Returns all instruction sets that the processor
// has.
extern "C" __attribute__((visibility("default"))) int64_t
tessera_native_choose_targets(int64_t targets);

extern "C" int64_t tessera_native_choose_targets(int64_t targets) {
  hwy::GetChosenTarget().Update(targets == 0 ? hwy::SupportedTargets() : targets);
  avoids_dot_products = targets != 0 && (targets & HWY_AVX3_DL) == 0;
  return hwy::SupportedTargets();
}
