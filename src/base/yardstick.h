// How free the cores are that this process computes on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

namespace tessera {

// A short computation that keeps a core's arithmetic busy. It takes longer while somebody else's
// thread shares the core (simultaneous multithreading; on a rented machine often a stranger's) or
// the core's clock is slow, neither of which a clock or a counter of the system tells. For one
// thread at a time.
class Yardstick {
 public:
  struct Reading {
    // How many times longer than at best so far it took, on the slowest of the cores.
    double slowdown = 1;
    // What one reading in ten exceeds.
    double often = 1;
  };

  // To be called inside ThreadPool::execute(); takes about 10 us.
  Reading read(ThreadPool& pool);

 private:
  static constexpr int kPartsOfOne = 50;  // a count is of readings this close
  double often() const;

  double best_seconds_ = 0;
  std::vector<double> seconds_;  // by share of the work
  // Readings by slowdown, in steps from 1 on; the last is for all beyond.
  std::array<int64_t, 3 * kPartsOfOne> counts_ = {};
  int64_t count_ = 0;
};

}  // namespace tessera
