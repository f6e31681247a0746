#include "measure/quiet.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tessera::tuning {
namespace {

// The shortest time over which a load can be measured well.
constexpr double kWindowSeconds = 0.06;
// Others may use this part of a processor that is needed.
constexpr double kMaxDisturbance = 0.25;
constexpr double kMaxWaitSeconds = 2.5;
constexpr double kMinWaitSeconds = 2 * kWindowSeconds;
// The share of all time that may be lost.
constexpr double kMaxLostShare = 0.5;
// After this many waits without success, the machine counts as always busy.
constexpr int kMaxFailures = 2;

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

QuietWaiter::QuietWaiter(int threads, System system)
    : threads_(threads), system_(std::move(system)), first_(system_.read_load()) {}

void QuietWaiter::begin() {
  begins_.push_back(system_.read_load());
  while (begins_.size() > 1 && seconds_between(begins_[1], begins_.back()) > kWindowSeconds) {
    begins_.pop_front();
  }
}

bool QuietWaiter::is_busy(const ProcessorLoad& from, const ProcessorLoad& to) const {
  const double spare = to.processors - threads_;
  return processors_of_others(from, to) > std::max(0.0, spare) + kMaxDisturbance;
}

bool QuietWaiter::should_repeat(double max_seconds, const std::function<bool()>& keeps_waiting) {
  if (begins_.empty() || failures_ >= kMaxFailures) return false;
  ProcessorLoad now = system_.read_load();
  // A short measurement is judged together with the measurements before it.
  const bool is_long = seconds_between(begins_.back(), now) > kWindowSeconds;
  const ProcessorLoad& from = is_long ? begins_.back() : begins_.front();
  if (seconds_between(from, now) < kWindowSeconds / 2 || !is_busy(from, now)) return false;
  const double in_vain = seconds_between(begins_.back(), now);
  const double may_lose = kMaxLostShare * seconds_between(first_, now) - lost_seconds_ - in_vain;
  const double max_wait = std::min({may_lose, max_seconds, kMaxWaitSeconds});
  if (max_wait < kMinWaitSeconds) return false;
  const ProcessorLoad start = now;
  bool is_quiet = false;
  while (!is_quiet && seconds_between(start, now) < max_wait && keeps_waiting()) {
    const ProcessorLoad before = now;
    system_.sleep(kWindowSeconds);
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
