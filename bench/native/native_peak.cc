// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "native_peak.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "native_peak.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Many independent multiply-adds in a loop. Two units with a latency of four or five cycles need
// ten; every machine has registers for sixteen.
constexpr int64_t kChains = 12;

// `result` only keeps the compiler from removing the work. Returns the number of operations.
int64_t work(int64_t steps, float& result) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.5F);
  const auto start = [&](int chain) HWY_ATTR { return hn::Set(d, static_cast<float>(chain)); };
  auto a = start(0), b = start(1), c = start(2), e = start(3), f = start(4), g = start(5);
  auto h = start(6), i = start(7), j = start(8), k = start(9), l = start(10), m = start(11);
  for (int64_t step = 0; step < steps; ++step) {
    a = hn::MulAdd(a, factor, factor);
    b = hn::MulAdd(b, factor, factor);
    c = hn::MulAdd(c, factor, factor);
    e = hn::MulAdd(e, factor, factor);
    f = hn::MulAdd(f, factor, factor);
    g = hn::MulAdd(g, factor, factor);
    h = hn::MulAdd(h, factor, factor);
    i = hn::MulAdd(i, factor, factor);
    j = hn::MulAdd(j, factor, factor);
    k = hn::MulAdd(k, factor, factor);
    l = hn::MulAdd(l, factor, factor);
    m = hn::MulAdd(m, factor, factor);
  }
  a = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  a = hn::Add(a, hn::Add(hn::Add(j, k), hn::Add(l, m)));
  result = hn::GetLane(hn::SumOfLanes(d, a));
  return steps * kChains * 2 * static_cast<int64_t>(hn::Lanes(d));
}

}  // namespace
}  // namespace tessera::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::bench {
namespace {

HWY_EXPORT(work);

}  // namespace

double measure_flops_per_second(ThreadPool& pool) {
  constexpr int64_t kSteps = 200000;
  constexpr int kRounds = 31;
  std::atomic<float> results = 0;
  std::atomic<int64_t> flops = 0;
  std::array<double, kRounds> seconds = {};
  pool.execute([&] {
    for (double& round : seconds) {
      flops = 0;
      const auto start = std::chrono::steady_clock::now();
      pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t thread = begin; thread < end; ++thread) {
          float result = 0;
          flops += HWY_DYNAMIC_DISPATCH(work)(kSteps, result);
          results = result;
        }
      });
      round = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  });
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  return static_cast<double>(flops) / seconds[kRounds / 2];
}

}  // namespace tessera::bench

#endif  // HWY_ONCE
