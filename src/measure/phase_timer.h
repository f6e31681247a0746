// Records the time of each phase of tuning, and estimates the remaining time of the phases of a
// bind.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "microbench/bench.h"
#include "tessera/tessera.h"

namespace tessera::tuning {

// Seconds by phase. For one thread.
class PhaseTimer {
 public:
  // While it lives, time counts for its phase and not for the enclosing one.
  class Scope {
   public:
    Scope(PhaseTimer& phases, std::string_view name)
        : phases_(phases), outer_(phases.go_on(name)) {}
    ~Scope() { phases_.go_back(std::move(outer_)); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimer& phases_;
    std::string outer_;
  };

  std::map<std::string, double> seconds() const;

 private:
  // Returns the name of the phase that ends here.
  std::string go_on(std::string_view name);
  // Ends the phase that the last go_on() began. Must not allocate, because destructors call it.
  void go_back(std::string&& outer) noexcept;

  using Clock = std::chrono::steady_clock;
  std::string name_ = "other";
  Clock::time_point start_ = Clock::now();
  std::map<std::string, double> seconds_;
};

// Wraps `bench` so that its time is recorded in `phases`: "load", "build", "check", "time". Both
// must outlive the wrapper.
std::unique_ptr<Bench> make_timed_bench(Bench& bench, PhaseTimer& phases);

// Estimates the remaining time of the phases of a bind from their progress. Time between two calls
// belongs to the phase of the first call. A phase that is resumed with its previous count keeps its
// statistics; one that counts from 0 begins anew.
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
