// Estimates the remaining time of the phases of a bind from their progress.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "tessera/tessera.h"

namespace tessera::tuning {

// Time between two calls belongs to the phase of the first call. A phase that is resumed with its
// previous count keeps its statistics; one that counts from 0 begins anew.
class RemainingTime {
 public:
  // The remaining seconds of `phase`, of which `done` of `total` (0: unknown) units are done at
  // `now_seconds`. nullopt if nothing is done yet, or if the current unit takes longer than
  // estimated: better no estimate than "soon" again and again.
  std::optional<double> estimate(BindPhase phase, size_t done, size_t total, double now_seconds);

 private:
  struct Work {
    double seconds = 0;
    size_t done = 0;
    size_t total = 0;
    std::optional<double> end_seconds;  // estimated when `done` last changed
  };
  std::map<BindPhase, Work> works_;
  BindPhase phase_ = BindPhase::Preparing;
  double last_seconds_ = 0;
};

}  // namespace tessera::tuning
