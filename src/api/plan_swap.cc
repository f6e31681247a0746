#include "api/plan_swap.h"

#include <exception>
#include <utility>

namespace tessera {

void PlanSwap::begin() {
  if (!build_) return;
  built_ = std::make_shared<Built>();
  built_->failure = "the process is about to end";
  const auto work = [built = built_, build = std::exchange(build_, {})](CancellationToken& end) {
    // No failure is fatal, because the executor has a plan that runs.
    try {
      *built = {.next = build(end)};
    } catch (const std::exception& error) {
      built->failure = error.what();
    }
  };
  task_ = BackgroundTask::start(work);
}

bool PlanSwap::is_ready_before_run() {
  if (runs_left_-- <= 0) begin();
  return task_ != nullptr && task_->is_done();
}

void PlanSwap::wait() {
  begin();
  if (task_) task_->wait();
}

PlanSwap::Built PlanSwap::take() {
  wait();
  return std::move(*built_);
}

}  // namespace tessera
