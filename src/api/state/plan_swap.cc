#include "api/state/plan_swap.h"

#include <exception>
#include <utility>

#include "tessera/error.h"

namespace tessera {

void PlanSwap::begin() {
  // A forked process does not have the thread of its parent, so it builds again.
  if (built_ && !(task_ && task_->is_lost())) return;
  built_ = std::make_shared<Built>();
  built_->failure = "the process is about to end";
  const auto work = [built = built_, build = build_](CancellationToken& end) {
    // No failure is fatal, because the executor has a plan that runs.
    try {
      *built = {.next = build(end)};
    } catch (const std::exception& error) {
      built->failure = error.what();
    }
  };
  try {
    task_ = BackgroundTask::start(work);
  } catch (const Error& error) {
    built_->failure = error.what();
    is_refused_ = true;
  }
}

bool PlanSwap::is_ready_before_run() {
  if (runs_left_-- <= 0) begin();
  return is_refused_ || (task_ != nullptr && task_->is_done());
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
