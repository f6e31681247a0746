// How free the cores are that this process computes on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

namespace tessera {

// A short computation that keeps a core's arithmetic busy. It takes longer while somebody else's
// thread shares the core (simultaneous multithreading; on a rented machine often a stranger's) or
// the core's clock is slow, neither of which a clock or a counter of the system tells. What comes
// and goes within milliseconds every round meets alike and shows by its own spread; what is told
// here is what stays for longer, the lower quartile of the last readings. For one thread at a time.
class Yardstick {
 public:
  struct Reading {
    // How many times slower than at best so far the slowest of the cores is.
    double slowdown = 1;
    // What one reading in ten exceeds.
    double often = 1;
  };

  // To be called inside ThreadPool::execute(); takes about 10 us, the first time 300 us.
  Reading read(ThreadPool& pool);

 private:
  static constexpr size_t kRecent = 32;    // readings
  static constexpr int kPartsOfOne = 100;  // a count is of slowdowns this close
  // What the computation takes on the slowest of the cores.
  double run(ThreadPool& pool);
  double recent_seconds() const;
  double often() const;

  std::vector<double> core_seconds_;         // by share of the work
  std::array<double, kRecent> recent_ = {};  // the last readings, the oldest overwritten
  double best_seconds_ = 0;                  // of recent_seconds()
  // Readings by slowdown, in steps from 1 on; the last is for all beyond.
  std::array<int64_t, 3 * kPartsOfOne> counts_ = {};
  size_t count_ = 0;
};

}  // namespace tessera
