// Measures again what other processes have disturbed, after they have ceased.
#pragma once

#include <deque>
#include <functional>

#include "base/machine/processor_load.h"
#include "measure/measure_tuning.h"

namespace tessera::tuning {

// Other processes that compute on the same processors make kernels for all threads look slow beside
// those for one, and a race of plans a lottery. Programs often compute in bursts of a second or
// two, so it pays to wait, but not for long: a machine may be busy all day. Waiting and repeating
// take at most as much time as what counts. For one thread at a time.
class QuietWaiter {
 public:
  struct System {
    std::function<ProcessorLoad()> read_load;
    std::function<void(double seconds)> sleep;
  };
  // This machine. `helper` tells which process works for this one, or -1.
  static System this_system(std::function<int()> helper);

  // `threads`: the processors that measuring needs.
  QuietWaiter(int threads, System system, const MeasureTuning& tuning = {});

  // Something begins that others may disturb.
  void begin();

  // Whether it was disturbed and should be done again: others used processors that it needed, and
  // they have ceased meanwhile, within `max_seconds`. `keeps_waiting` is called often; if it
  // returns false, the answer is false.
  bool should_repeat(double max_seconds, const std::function<bool()>& keeps_waiting);

  // For waiting and for what was done in vain.
  double lost_seconds() const { return lost_seconds_; }

 private:
  bool is_busy(const ProcessorLoad& from, const ProcessorLoad& to) const;

  int threads_;
  System system_;
  MeasureTuning tuning_;
  std::deque<ProcessorLoad> begins_;  // the newest last, after a window of older ones
  ProcessorLoad first_;
  double lost_seconds_ = 0;
  int failures_ = 0;  // waits without success
};

}  // namespace tessera::tuning
