#include "api/plan_swap.h"

#include <chrono>
#include <exception>
#include <utility>

namespace tessera {

void PlanSwap::begin() {
  if (!build_) return;
  built_ = std::async(std::launch::async, [build = std::exchange(build_, {})]() -> Built {
    // Whatever it fails with, there is a plan that runs.
    try {
      return {.result = build()};
    } catch (const std::exception& error) {
      return {.failure = error.what()};
    }
  });
}

bool PlanSwap::is_ready_before_run() {
  if (std::exchange(has_run_, true)) begin();
  return built_.valid() && built_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void PlanSwap::wait() {
  begin();
  built_.wait();
}

PlanSwap::Built PlanSwap::take() { return built_.get(); }

}  // namespace tessera
