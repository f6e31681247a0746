#include "measure/phase_timer.h"

#include <utility>

namespace tessera::tuning {
namespace {

class TimedBench final : public Bench {
 public:
  TimedBench(Bench& bench, PhaseTimer& phases) : bench_(bench), phases_(phases) {}

  void load(const GroupCase& group) override {
    const PhaseTimer::Scope running(phases_, "load");
    bench_.load(group);
  }
  Outcome build(const CandidateId& id) override {
    const PhaseTimer::Scope running(phases_, "build");
    return bench_.build(id);
  }
  Checked check(const CandidateId& id) override {
    const PhaseTimer::Scope running(phases_, "check");
    return bench_.check(id);
  }
  Outcome run(const CandidateId& id, Weights weights, int runs) override {
    const PhaseTimer::Scope running(phases_, "time");
    return bench_.run(id, weights, runs);
  }
  void drop(const CandidateId& id) override {
    const PhaseTimer::Scope running(phases_, "load");
    bench_.drop(id);
  }
  Outcome convert(const ConversionKey& key, int runs) override {
    const PhaseTimer::Scope running(phases_, "time");
    return bench_.convert(key, runs);
  }

 private:
  Bench& bench_;
  PhaseTimer& phases_;
};

}  // namespace

std::string PhaseTimer::go_on(std::string_view name) {
  std::string next(name);
  double& seconds = seconds_[name_];
  seconds_.try_emplace(next);  // allocated here, because go_back() must not
  const Clock::time_point now = Clock::now();
  seconds += std::chrono::duration<double>(now - start_).count();
  start_ = now;
  return std::exchange(name_, std::move(next));
}

void PhaseTimer::go_back(std::string&& outer) noexcept {
  const Clock::time_point now = Clock::now();
  seconds_.find(name_)->second += std::chrono::duration<double>(now - start_).count();
  start_ = now;
  name_ = std::move(outer);
}

std::map<std::string, double> PhaseTimer::seconds() const {
  std::map<std::string, double> seconds = seconds_;
  seconds[name_] += std::chrono::duration<double>(Clock::now() - start_).count();
  return seconds;
}

std::unique_ptr<Bench> make_timed_bench(Bench& bench, PhaseTimer& phases) {
  return std::make_unique<TimedBench>(bench, phases);
}

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
