// Steps that follow one another, each shared among threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace tessera::native {

// Divides each step into equal shares. A thread takes a share of its own, and those of others that
// have not begun with them: no thread waits for one that does not run, so the threads need not all
// start, and one alone takes all shares. Waiting for the others costs a fraction of a microsecond.
// Lies on the stack of a run, so it allocates no memory.
class SharedSteps {
 public:
  static constexpr int64_t kMaxShares = 32;

  // 0 < shares <= kMaxShares.
  explicit SharedSteps(int64_t shares) : shares_(shares) {}

  // Calls body(step, share) for each share of steps [0, steps) that no other thread has taken. All
  // calls for a step end before the first one for the next step begins. Each thread calls it once.
  template <class Body>
  void run(int64_t own, int64_t steps, const Body& body) {
    for (int64_t step = 0; step < steps; ++step) {
      for (int64_t offset = 0; offset < shares_; ++offset) {
        const int64_t index = (own + offset) % shares_;
        Share& share = share_of(index);
        int64_t expected = step;
        // Only the number is shared. `done` publishes the results of a call.
        if (!share.begun.compare_exchange_strong(expected, step + 1, std::memory_order_relaxed)) {
          continue;
        }
        body(step, index);
        share.done.store(step + 1, std::memory_order_release);
      }
      for (int64_t index = 0; index < shares_; ++index) wait(share_of(index), step + 1);
    }
  }

 private:
  static constexpr size_t kLineBytes = 64;
  // After so many spins, the system may have stopped the thread that this one waits for.
  static constexpr int kSpins = 1 << 12;

  // The number of steps for which the share was begun and done.
  struct alignas(kLineBytes) Share {
    std::atomic<int64_t> begun = 0;
    alignas(kLineBytes) std::atomic<int64_t> done = 0;
  };

  static void wait(const Share& share, int64_t steps) {
    for (int spins = 0; share.done.load(std::memory_order_acquire) < steps; ++spins) {
      if (spins >= kSpins) std::this_thread::yield();
    }
  }

  Share& share_of(int64_t share) { return storage_[static_cast<size_t>(share)]; }

  int64_t shares_;
  std::array<Share, static_cast<size_t>(kMaxShares)> storage_;
};

}  // namespace tessera::native
