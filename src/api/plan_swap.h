// The plan that an executor changes over to, built beside its runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/background_task.h"
#include "compile/build_plan.h"

namespace tessera {

class CacheRecord;

// What is changed over to.
struct NextPlan {
  PlanResult plan;
  // What save_cache() saves of it; null: keep the executor's.
  std::shared_ptr<const CacheRecord> record;
};

// For one thread at a time. Going, it cancels what is being built, and waits for it; so does the
// end of the process, for those that stay until then.
class PlanSwap {
 public:
  // Runs in a thread of its own. Gives nothing where there is nothing better.
  using Build = std::function<std::optional<NextPlan>(CancellationToken& end)>;
  explicit PlanSwap(Build build) : build_(std::move(build)) {}

  // Called before each run: begins to build before the second one, as a program may be over after
  // the first. Whether there is something to take.
  bool is_ready_before_run();
  // Builds where that was not begun, and waits.
  void wait();

  struct Built {
    std::optional<NextPlan> next;
    std::string failure;  // why there is none, where building failed
  };
  // Once, when it is ready.
  Built take();

 private:
  void begin();

  bool has_run_ = false;
  Build build_;
  std::shared_ptr<Built> built_;          // that the task fills
  std::unique_ptr<BackgroundTask> task_;  // null before it began, and where the process ends
};

}  // namespace tessera
