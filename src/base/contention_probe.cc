#include "base/contention_probe.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// Four lanes exist in every vector instruction set. Enough independent sums hide the latency of
// additions, so the issue rate of the core limits the loop.
using Lanes = float __attribute__((vector_size(16)));
constexpr int kSums = 12;
constexpr int kIterations = 700;
// The minimum of a few repetitions, to ignore interrupts.
constexpr int kRepetitions = 3;

float compute() {
  Lanes sums[kSums] = {};
  const Lanes half = {0.5F, 0.5F, 0.5F, 0.5F};
  const Lanes one = {1, 1, 1, 1};
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (Lanes& sum : sums) sum = sum * half + one;
  }
  Lanes total = {};
  for (const Lanes& sum : sums) total += sum;
  return total[0] + total[1] + total[2] + total[3];
}

}  // namespace

ContentionProbe::Reading ContentionProbe::read(ThreadPool& pool) {
  do {
    recent_[count_++ % kRecent] = run(pool);
  } while (count_ < kRecent);
  const double seconds = recent_seconds();
  best_seconds_ = best_seconds_ == 0 ? seconds : std::min(best_seconds_, seconds);
  const double slowdown = seconds / best_seconds_;
  const auto step = static_cast<size_t>((slowdown - 1) * kBinsPerUnit);
  ++counts_[std::min(step, counts_.size() - 1)];
  return {slowdown, often()};
}

double ContentionProbe::run(ThreadPool& pool) {
  core_seconds_.assign(static_cast<size_t>(pool.threads()), 0);
  pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t end) {
    double fastest = std::numeric_limits<double>::max();
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const Clock::time_point start = Clock::now();
      // volatile keeps the compiler from removing the computation.
      [[maybe_unused]] volatile float result = compute();
      fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
    }
    for (int64_t share = begin; share < end; ++share) {
      core_seconds_[static_cast<size_t>(share)] = fastest;
    }
  });
  return *std::max_element(core_seconds_.begin(), core_seconds_.end());
}

double ContentionProbe::recent_seconds() const {
  std::array<double, kRecent> sorted = recent_;
  const auto quartile = sorted.begin() + kRecent / 4;
  std::nth_element(sorted.begin(), quartile, sorted.end());
  return *quartile;
}

double ContentionProbe::often() const {
  auto beyond = static_cast<int64_t>((count_ - kRecent) / 10);
  size_t step = counts_.size();
  while (step > 1 && beyond >= counts_[step - 1]) beyond -= counts_[--step];
  return 1 + static_cast<double>(step) / kBinsPerUnit;
}

}  // namespace tessera
