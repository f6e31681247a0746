// How long the phases of a bind still take, judged by what of them was done.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "tessera/tessera.h"

namespace tessera::tuning {

// Time between two calls belongs to the phase of the first. A phase that comes again and counts on
// from where it was keeps what is known of it; one that counts from 0 again begins anew.
class RemainingTime {
 public:
  // Seconds that `phase` still takes, `done` of `total` (0: not known) being done at `now_seconds`.
  // nullopt where nothing was done yet, and where what is being done takes longer than was
  // estimated: whoever waits should not be told "soon" again and again.
  std::optional<double> estimate(BindPhase phase, size_t done, size_t total, double now_seconds);

 private:
  struct Work {
    double seconds = 0;
    size_t done = 0;
    size_t total = 0;
    std::optional<double> end_seconds;  // as it was estimated when `done` last changed
  };
  std::map<BindPhase, Work> works_;
  BindPhase phase_ = BindPhase::Preparing;
  double last_seconds_ = 0;
};

}  // namespace tessera::tuning
