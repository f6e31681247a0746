#include "microbench/fastest_run.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tessera::tuning {
namespace {

// The maximum number and total time of repetitions of a disturbed run.
constexpr int kMaxRetries = 8;
constexpr double kSecondsForRetries = 0.03;

Outcome run_without_preemption(const std::function<Outcome()>& run) {
  Outcome outcome = run();
  double spent = outcome.seconds;
  for (int again = 0; outcome.was_preempted && again < kMaxRetries; ++again) {
    if (spent > kSecondsForRetries) break;
    const Outcome next = run();
    if (!next.is_fine()) return next;
    spent += next.seconds;
    if (next.was_preempted && next.seconds > outcome.seconds) continue;
    outcome = next;
  }
  return outcome;
}

}  // namespace

Outcome fastest_of(int runs, const std::function<Outcome()>& run) {
  Outcome fastest = run_without_preemption(run);
  for (int more = 1; more < runs && fastest.is_fine(); ++more) {
    const Outcome next = run_without_preemption(run);
    if (!next.is_fine() || next.seconds < fastest.seconds) fastest = next;
  }
  return fastest;
}

void gather_threads(ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kMaxWait{200};
  const int threads = pool.threads();
  if (threads == 1) return;
  const Clock::time_point end = Clock::now() + kMaxWait;
  std::atomic<int64_t> arrived = 0;
  pool.parallel_for(threads, 1, [&](int64_t first, int64_t last) {
    arrived.fetch_add(last - first, std::memory_order_relaxed);
    while (arrived.load(std::memory_order_relaxed) < threads && Clock::now() < end) {
    }
  });
}

}  // namespace tessera::tuning
