#include "measure/quiet.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tessera::tuning {
namespace {

double seconds_between(const ProcessorLoad& from, const ProcessorLoad& to) {
  return std::chrono::duration<double>(to.time - from.time).count();
}

}  // namespace

QuietWaiter::System QuietWaiter::this_system(std::function<int()> helper) {
  return {.read_load = [helper = std::move(helper)] { return read_processor_load(helper()); },
          .sleep =
              [](double seconds) {
                std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
              }};
}

QuietWaiter::QuietWaiter(int threads, System system, const MeasureTuning& tuning)
    : threads_(threads), system_(std::move(system)), tuning_(tuning), first_(system_.read_load()) {}

void QuietWaiter::begin() {
  begins_.push_back(system_.read_load());
  while (begins_.size() > 1 &&
         seconds_between(begins_[1], begins_.back()) > tuning_.load_window_seconds) {
    begins_.pop_front();
  }
}

bool QuietWaiter::is_busy(const ProcessorLoad& from, const ProcessorLoad& to) const {
  const double spare = to.processors - threads_;
  return processors_of_others(from, to) > std::max(0.0, spare) + tuning_.max_disturbance_processors;
}

bool QuietWaiter::should_repeat(double max_seconds, const std::function<bool()>& keeps_waiting) {
  if (begins_.empty() || failures_ >= tuning_.max_failed_waits) return false;
  const double window = tuning_.load_window_seconds;
  ProcessorLoad now = system_.read_load();
  // A short measurement is judged together with the measurements before it.
  const bool is_long = seconds_between(begins_.back(), now) > window;
  const ProcessorLoad& from = is_long ? begins_.back() : begins_.front();
  if (seconds_between(from, now) < window / 2 || !is_busy(from, now)) return false;
  const double in_vain = seconds_between(begins_.back(), now);
  const double may_lose =
      tuning_.max_lost_share * seconds_between(first_, now) - lost_seconds_ - in_vain;
  const double max_wait = std::min({may_lose, max_seconds, tuning_.max_wait_seconds});
  if (max_wait < tuning_.min_wait_windows * window) return false;
  const ProcessorLoad start = now;
  bool is_quiet = false;
  while (!is_quiet && seconds_between(start, now) < max_wait && keeps_waiting()) {
    const ProcessorLoad before = now;
    system_.sleep(window);
    now = system_.read_load();
    is_quiet = !is_busy(before, now);
  }
  lost_seconds_ += seconds_between(start, now);
  if (!is_quiet) {
    ++failures_;
    return false;
  }
  failures_ = 0;
  lost_seconds_ += in_vain;
  begins_.clear();
  return true;
}

}  // namespace tessera::tuning
