// Records the time of each phase of tuning.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "microbench/bench.h"

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

}  // namespace tessera::tuning
