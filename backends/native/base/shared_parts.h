// The parts of a loop, shared among threads of which some may be slower than others.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tessera::native {

// Divides parts [0, count) into equal shares of neighbouring parts, one for each slot. A slot that
// has finished its share takes parts from the shares of the others, because a core may run at half
// of the speed of another one. All slots may call for_each() at the same time. Lies on the stack of
// a run, so it allocates no memory.
class SharedParts {
 public:
  // slots > 0.
  SharedParts(int64_t count, int64_t slots) : shares_(std::min(slots, kMaxShares)) {
    for (int64_t share = 0; share < shares_; ++share) {
      share_of(share).next.store(count * share / shares_, std::memory_order_relaxed);
      share_of(share).end = count * (share + 1) / shares_;
    }
  }

  // Calls body(part) for parts that no other call has taken, until none is left.
  template <class Body>
  void for_each(int64_t slot, const Body& body) {
    for (int64_t step = 0; step < shares_; ++step) {
      Share& share = share_of((slot + step) % shares_);
      while (true) {
        // Only the number is shared. The results of a part are published at the end of the loop.
        const int64_t part = share.next.fetch_add(1, std::memory_order_relaxed);
        if (part >= share.end) break;
        body(part);
      }
    }
  }

 private:
  // If there are more slots, several slots have one share.
  static constexpr int64_t kMaxShares = 32;
  static constexpr size_t kLineBytes = 64;

  // Each on a cache line of its own, because every thread changes its own most of the time.
  struct alignas(kLineBytes) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };

  Share& share_of(int64_t share) { return storage_[static_cast<size_t>(share)]; }

  int64_t shares_;
  std::array<Share, kMaxShares> storage_;
};

}  // namespace tessera::native
