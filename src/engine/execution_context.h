// What plans run on that take turns: threads, one arena for all of them, temporary memory, and the
// run that is going on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/arena_memory.h"
#include "base/denormals.h"
#include "base/parallel.h"
#include "base/scratch_memory.h"
#include "engine/built_plan.h"

namespace tessera {

// For one thread at a time, but for cancel(). The plans that run here lie in the same arena, which
// is as large as the largest needs, and find whatever the others left there.
class ExecutionContext {
 public:
  // `threads` and `denormals` as ThreadPool has them.
  ExecutionContext(int threads, Denormals denormals)
      : pool_(threads, denormals), denormals_(denormals) {}
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;

  ThreadPool& pool() { return pool_; }
  const ThreadPool& pool() const { return pool_; }
  // For steps on one thread; null where the pool has no more.
  ThreadPool* one_thread();

  // What reference kernels work in beside the arena, kept from run to run.
  ScratchMemory& scratch() { return scratch_; }

  // Makes the arena large enough for `built`. Throws OutOfMemory with the bytes asked for and the
  // plan's largest buffers where the machine has not that much; then all is as it was.
  void reserve_arena(const BuiltPlan& built);
  char* arena() const { return arena_.data(); }
  int64_t arena_bytes() const { return arena_.bytes(); }

  // Ends the run that is going on, if one is, before its next step. From any thread, also in a
  // signal's handler.
  void cancel() {
    int running = kRunning;
    state_.compare_exchange_strong(running, kCancelled);
  }
  // The same for every run that takes longer; 0: none.
  void set_time_limit(std::chrono::nanoseconds limit) { time_limit_ = limit; }
  std::chrono::nanoseconds time_limit() const { return time_limit_; }
  bool has_time_limit() const { return time_limit_.count() > 0; }

  // While the outermost one lives, a run is going on: what it does before its first step, too.
  class ActiveRun {
   public:
    explicit ActiveRun(ExecutionContext& place);
    ~ActiveRun();
    ActiveRun(const ActiveRun&) = delete;
    ActiveRun& operator=(const ActiveRun&) = delete;

   private:
    ExecutionContext& place_;
    bool is_outermost_ = false;
  };

  // Of the run that is going on.
  bool goes_on() const { return state_.load(std::memory_order_relaxed) == kRunning; }
  bool is_cancelled() const { return state_.load() == kCancelled; }
  bool is_late(std::chrono::steady_clock::time_point now) const { return now >= deadline_; }
  // Another number for each.
  uint64_t seed() const { return runs_ - 1; }

 private:
  enum State : int { kIdle, kRunning, kCancelled };

  ThreadPool pool_;
  std::optional<ThreadPool> one_;
  Denormals denormals_;
  ArenaMemory arena_;
  ScratchMemory scratch_;
  uint64_t runs_ = 0;
  std::chrono::nanoseconds time_limit_{0};
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<int> state_ = kIdle;
};

}  // namespace tessera
