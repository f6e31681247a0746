// The vector functions of base/float_functions.h and base/exponential.h: their errors in units in
// the last place, for each instruction set of the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "float_functions_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/exponential.h"
#include "base/float_functions.h"
#include "base/threads/threads_test.h"

#ifndef TESSERA_FLOAT_FUNCTION_LOOPS
#define TESSERA_FLOAT_FUNCTION_LOOPS
namespace tessera {
// The loops of one instruction set. `count` is a multiple of its lanes.
using Loop = void (*)(const float* from, float* to, size_t count);
struct Loops {
  Loop exp = nullptr;
  Loop exp_of_negative = nullptr;
  Loop expm1 = nullptr;
  Loop sigmoid = nullptr;
  Loop tanh = nullptr;
  Loop erf = nullptr;
};
}  // namespace tessera
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

#define LOOP(function)                                                    \
  [](const float* from, float* to, size_t count) HWY_ATTR {               \
    const hn::ScalableTag<float> d;                                       \
    for (size_t index = 0; index < count; index += hn::Lanes(d)) {        \
      hn::StoreU(function(d, hn::LoadU(d, from + index)), d, to + index); \
    }                                                                     \
  }

Loops all_loops() {
  return {.exp = LOOP(exp_of),
          .exp_of_negative = LOOP(exponential),
          .expm1 = LOOP(expm1_of),
          .sigmoid = LOOP(sigmoid_of),
          .tanh = LOOP(tanh_of),
          .erf = LOOP(erf_of)};
}

#undef LOOP

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera {
namespace native {
HWY_EXPORT(all_loops);
}  // namespace native

namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();

struct Function {
  const char* name;
  Loop Loops::* loop;
  double (*exact)(double x);
  double bound;                     // in units in the last place
  float highest;                    // the largest argument that the function takes
  bool flushes_subnormals = false;  // a subnormal result may be 0
  bool loses_sign = false;          // a result of zero is positive
};

void PrintTo(const Function& function, std::ostream* out) { *out << function.name; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const Function kFunctions[] = {
    {"exp", &Loops::exp, [](double x) { return std::exp(x); }, 1, kInfinity},
    {"exp_of_negative", &Loops::exp_of_negative, [](double x) { return std::exp(x); }, 2, 0, true},
    {"expm1", &Loops::expm1, [](double x) { return std::expm1(x); }, 4, kInfinity, false, true},
    {"sigmoid", &Loops::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3, kInfinity,
     true},
    {"tanh", &Loops::tanh, [](double x) { return std::tanh(x); }, 5, kInfinity},
    {"erf", &Loops::erf, [](double x) { return std::erf(x); }, 6, kInfinity},
};

// The error of `got` in units in the last place of float32; infinite if it is not even of the right
// kind.
double ulp_error_of(const Function& function, double got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(nearest) || exact == 0) {
    const bool is_right = std::isnan(exact) ? std::isnan(got) : got == static_cast<double>(nearest);
    const bool has_sign =
        std::isnan(exact) || function.loses_sign || std::signbit(got) == std::signbit(exact);
    if (is_right && has_sign) return 0;
    // A result close to the largest number may be infinite, or the reverse.
    return std::isinf(nearest) && std::fabs(exact) < 3.4028240e38 && got > 3.4028230e38 ? 1
                                                                                        : kInfinity;
  }
  if (function.flushes_subnormals && exact < kSmallestNormal * 1.4 && got == 0) return 0;
  // 2^(e - 23) for a result of exponent e, at least 2^-149. Faster than ilogb() and ldexp().
  constexpr uint64_t kSmallestExponent = 1023 - 126;
  const uint64_t exponent = std::bit_cast<uint64_t>(std::fabs(exact)) >> 52U;
  const uint64_t unit = (std::max(exponent, kSmallestExponent) - 23) << 52U;
  return std::fabs(got - exact) / std::bit_cast<double>(unit);
}

struct Worst {
  double error = 0;
  float x = 0;
  void add(double other, float at) {
    if (!(other > error)) return;
    error = other;
    x = at;
  }
};

// Checks the floats with the bits first, first + step, first + 2 * step, ...
Worst worst_of(const Function& function, Loop loop, uint64_t first, uint64_t step) {
  Worst worst;
  std::array<float, 256> from = {};
  std::array<float, 256> to = {};
  for (uint64_t bits = first; bits < uint64_t{1} << 32;) {
    for (float& x : from) {
      x = std::bit_cast<float>(static_cast<uint32_t>(std::min<uint64_t>(bits, 0xFFFFFFFF)));
      if (x > function.highest) x = -x;
      bits += step;
    }
    loop(from.data(), to.data(), from.size());
    for (size_t index = 0; index < from.size(); ++index) {
      const double exact = function.exact(static_cast<double>(from[index]));
      worst.add(ulp_error_of(function, static_cast<double>(to[index]), exact), from[index]);
    }
  }
  return worst;
}

// Calls check(loops) for each instruction set. The fallback is tested through the plug-in only.
template <class Check>
void for_each_target(const Check& check) {
  for (int64_t target = 1; target != 0; target <<= 1) {
    if ((hwy::SupportedTargets() & HWY_TARGETS & ~HWY_STATIC_TARGET & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    check(HWY_DYNAMIC_DISPATCH(native::all_loops)());
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

class NativeFunction : public testing::TestWithParam<Function> {};

TEST_P(NativeFunction, IsWithinItsBound) {
  const Function& function = GetParam();
  for_each_target([&](const Loops& loops) {
    const Worst worst = worst_of(function, loops.*function.loop, 0, 4999);
    EXPECT_LE(worst.error, function.bound) << "of " << worst.x;
  });
}

TEST_P(NativeFunction, KeepsSpecialValues) {
  const Function& function = GetParam();
  for_each_target([&](const Loops& loops) {
    for (const float size :
         {0.0F, 1e-45F, 1.17549435e-38F, 1e-30F, 87.0F, 87.5F, 88.7228F, 88.73F, 103.9F, 104.1F,
          1e6F, 3e38F, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (const float x : {size, -size}) {
        if (x > function.highest) continue;
        std::array<float, 256> from = {};
        std::array<float, 256> to = {};
        from.fill(x);
        (loops.*function.loop)(from.data(), to.data(), from.size());
        const double exact = function.exact(static_cast<double>(x));
        EXPECT_LE(ulp_error_of(function, static_cast<double>(to[3]), exact), function.bound)
            << "of " << x << ": " << to[3];
      }
    }
  });
}

// Takes up to half an hour for each function, so it runs only if it is asked for.
TEST_P(NativeFunction, DISABLED_IsWithinItsBoundForAllFloats) {
  const Function& function = GetParam();
  for_each_target([&](const Loops& loops) {
    const uint64_t count = std::max(1U, std::thread::hardware_concurrency());
    std::mutex mutex;
    Worst worst;
    run_at_once(count, [&](uint64_t worker) {
      const Worst own = worst_of(function, loops.*function.loop, worker, count);
      const std::lock_guard lock(mutex);
      worst.add(own.error, own.x);
    });
    EXPECT_LE(worst.error, function.bound) << "of " << worst.x;
    std::printf("%s: %.3f units in the last place, at %.9g\n", function.name, worst.error,
                static_cast<double>(worst.x));
  });
}

INSTANTIATE_TEST_SUITE_P(NativeFunctions, NativeFunction, testing::ValuesIn(kFunctions),
                         [](const testing::TestParamInfo<Function>& row) {
                           return std::string(row.param.name);
                         });

}  // namespace
}  // namespace tessera

#endif  // HWY_ONCE
