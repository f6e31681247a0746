// The plan that an executor changes over to, built beside its runs.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>

#include "compile/build_plan.h"

namespace tessera {

// For one thread at a time. Going, it waits for what is being built.
class PlanSwap {
 public:
  // Runs in a thread of its own. Gives nothing where the plan cannot be had (any more).
  using Build = std::function<std::optional<PlanResult>()>;
  explicit PlanSwap(Build build) : build_(std::move(build)) {}

  // Called before each run: begins to build before the second one, as a program may be over after
  // the first. Whether there is something to take.
  bool is_ready_before_run();
  // Builds where that was not begun, and waits.
  void wait();

  struct Built {
    std::optional<PlanResult> result;
    std::string failure;  // why there is none, where building failed
  };
  // Once, when it is ready.
  Built take();

 private:
  void begin();

  bool has_run_ = false;
  Build build_;
  std::future<Built> built_;
};

}  // namespace tessera
