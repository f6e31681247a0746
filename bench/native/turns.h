// Times pieces of work in turns, so that changes of the machine's speed affect all of them alike.
#pragma once

#include <functional>
#include <vector>

#include "base/threads/parallel.h"

namespace tessera::bench {

// A contender: its work, how often it runs in a turn, and the times of its turns.
struct Contender {
  std::function<void()> run;
  int threads = 1;
  int repeats = 1;
  std::vector<double> seconds = {};  // of one run, for each turn

  // A turn is long enough for the clock's resolution. Its first run, which is not counted, loads
  // the tensors into the caches again.
  void take_turn();
  void set_repeats();
  // The time below which this part of the turns is: 0.5 for the median.
  double quantile(double part) const;
};

// Called inside the thread pool, as the engine runs steps. With one thread, the times are processor
// time of the thread, which other processes affect less than wall time.
void take_turns(std::vector<Contender>& contenders, ThreadPool& pool, int rounds);

// The median seconds of each contender after take_turns().
std::vector<double> medians_in_turns(std::vector<Contender>& contenders, ThreadPool& pool,
                                     int rounds);

}  // namespace tessera::bench
