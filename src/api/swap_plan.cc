// How an executor comes from the plan that it began with to the fastest one.
#include <chrono>
#include <memory>
#include <utility>

#include "api/executor_state.h"
#include "api/model_state.h"

namespace tessera {

void Executor::State::swap_to(PlanSwap::Build build) {
  swapped = &plan();
  swap = std::make_unique<PlanSwap>(std::move(build));
}

void Executor::wait_for_swap() {
  if (!state_->swap) return;
  state_->swap->wait();
  state_->take_swap();
}

void Executor::State::swap_before_run() {
  if (swap->is_ready_before_run()) take_swap();
}

void Executor::State::take_swap() {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  PlanSwap::Built built = swap->take();
  swap.reset();
  std::string failure = std::move(built.failure);
  // Plans of other shapes may have taken the place of the one that this is for.
  if (built.next && swapped != nullptr) {
    try {
      change_over(std::move(built.next->plan));
      if (built.next->record) cache = std::move(built.next->record);
      stages.push_back({.name = "swap",
                        .start = start - bound_at,
                        .duration = std::chrono::steady_clock::now() - start});
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  swapped = nullptr;
  if (!failure.empty()) {
    model->log.warn("the faster plan cannot be used, the one that was begun with stays: " +
                    failure);
  }
}

void Executor::State::change_over(PlanResult result) {
  PlanDescription description = describe(result, place.pool().threads(), *registry);
  std::unique_ptr<PlanRunner> runner = swapped->runner_of(std::move(result.built), options, place);
  // What is bound goes to the other one before the next run.
  if (swapped == &plan()) unbind_memory();
  swapped->runner = std::move(runner);
  swapped->description = std::move(description);
  swapped->kernels = result.kernels;
  swapped->reused_kernels = result.reused_kernels;
  swapped->loaded_kernels = result.loaded_kernels;
}

}  // namespace tessera
