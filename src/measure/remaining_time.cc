#include "measure/remaining_time.h"

namespace tessera::tuning {

std::optional<double> RemainingTime::estimate(BindPhase phase, size_t done, size_t total,
                                              double now_seconds) {
  works_[phase_].seconds += now_seconds - last_seconds_;
  last_seconds_ = now_seconds;
  phase_ = phase;
  Work& work = works_[phase];
  if (done < work.done) work = {};
  const bool has_progressed = done != work.done || total != work.total || !work.end_seconds;
  work.done = done;
  work.total = total;
  if (done == 0 || done >= total) return std::nullopt;
  if (has_progressed) {
    const double each = work.seconds / static_cast<double>(done);
    work.end_seconds = now_seconds + each * static_cast<double>(total - done);
  }
  if (*work.end_seconds <= now_seconds) return std::nullopt;
  return *work.end_seconds - now_seconds;
}

}  // namespace tessera::tuning
