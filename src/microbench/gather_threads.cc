#include "microbench/gather_threads.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tessera::tuning {

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
