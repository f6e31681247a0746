// The faster plan to which an executor swaps. It is built in the background of the runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/threads/background_task.h"
#include "compile/build_plan.h"

namespace tessera {

class CacheRecord;

// The plan to swap to.
struct NextPlan {
  PlanResult plan;
  // The record for save_cache(); null: keep that of the executor.
  std::shared_ptr<const CacheRecord> record;
};

// Used from one thread at a time. In a forked process, a build that had begun begins again. The
// destructor cancels the build and waits for its end; so does
// the end of the process, for objects that still exist.
class PlanSwap {
 public:
  // Runs in a thread of its own. Returns nullopt if there is no better plan.
  using Build = std::function<std::optional<NextPlan>(CancellationToken& end)>;
  // Begins to build after `runs`, at least 1: a program may end after the first.
  explicit PlanSwap(Build build, int64_t runs = 1) : runs_left_(runs), build_(std::move(build)) {}

  // Called before each run. Begins to build if there were enough runs. Returns whether the build
  // has ended.
  bool is_ready_before_run();
  // Begins to build unless it has begun, and waits for the end of the build.
  void wait();

  struct Built {
    std::optional<NextPlan> next;
    std::string failure;  // why there is no plan, if building failed
  };
  // Waits as wait() does, and returns the result. May be called once.
  Built take();

 private:
  void begin();

  int64_t runs_left_;  // before it begins
  Build build_;
  std::shared_ptr<Built> built_;          // filled by the task
  bool is_refused_ = false;               // the system started no thread for it
  std::unique_ptr<BackgroundTask> task_;  // null before it begins, and if the process is ending
};

}  // namespace tessera
