// Where the time of a tuning goes.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tune/bench.h"

namespace tessera::tuning {

// Seconds by phase. For one thread.
class Phases {
 public:
  // While it lives, time counts for its phase, and not for the one around it.
  class Running {
   public:
    Running(Phases& phases, std::string_view name) : phases_(phases), outer_(phases.go_on(name)) {}
    ~Running() { phases_.go_back(std::move(outer_)); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Phases& phases_;
    std::string outer_;
  };

  std::map<std::string, double> seconds() const;

 private:
  // Gives the name of the phase that ends here.
  std::string go_on(std::string_view name);
  // Ends the phase that the last go_on() began. Allocates nothing: destructors call it.
  void go_back(std::string&& outer) noexcept;

  using Clock = std::chrono::steady_clock;
  std::string name_ = "other";
  Clock::time_point start_ = Clock::now();
  std::map<std::string, double> seconds_;
};

// `bench`, with its time told to `phases`: "load", "build", "check", "time". Both must outlive it.
std::unique_ptr<Bench> make_timed(Bench& bench, Phases& phases);

}  // namespace tessera::tuning
