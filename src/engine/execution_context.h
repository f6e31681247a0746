// The resources that plans share when they run in turns: threads, one arena, scratch memory, and
// the state of the active run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device.h"
#include "base/memory/reused_memory.h"
#include "base/threads/denormals.h"
#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "engine/built_plan.h"

namespace tessera {

// A device as the plans of one execution context use it: one queue, and one arena. Not thread-safe.
class DeviceContext {
 public:
  // Throws DeviceFailed or OutOfMemory, naming the device.
  explicit DeviceContext(const Device& device);
  // Waits until the queue is empty.
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Device& device() const { return device_; }
  void* queue() const { return queue_->get(); }

  // Makes the arena large enough. Its contents are undefined afterwards. Throws OutOfMemory.
  void reserve_arena(int64_t bytes);
  // The handle of the arena; null if it was never reserved.
  void* arena() const { return arena_ ? arena_->handle() : nullptr; }
  int64_t arena_bytes() const { return arena_ ? arena_->bytes() : 0; }

  void synchronise() const { device_.synchronise_queue(queue()); }

  // Must be called after a failure, or if a run ended early: waits for the work that was enqueued.
  // If the device fails to finish it, replaces the queue. Afterwards explain_unusable() says
  // whether the device can still be used.
  void abandon_work() noexcept;
  // "", or why no later run can use the device.
  std::string explain_unusable() const;

 private:
  Device device_;
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceMemory> arena_;
  std::string lost_;  // the reason, after it was found unusable
};

// Not thread-safe, except cancel(). The plans that run here share the arena, which is as large as
// the largest of them needs. At the start of a run, it contains what the previous run left.
class ExecutionContext {
 public:
  // The parameters of ThreadPool.
  ExecutionContext(int threads, Denormals denormals)
      : pool_(threads, denormals), denormals_(denormals) {}
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;

  // The pool of the outer context, if there is one.
  ThreadPool& pool() { return outer() == nullptr ? pool_ : outer()->pool(); }
  const ThreadPool& pool() const { return outer() == nullptr ? pool_ : outer()->pool(); }
  // A pool for steps on one thread; nullptr if pool() has only one thread.
  ThreadPool* one_thread();

  // Memory that reference kernels use in addition to the arena, kept from run to run.
  ScratchMemory& scratch() { return scratch_; }
  const ScratchMemory& scratch() const { return scratch_; }

  // Makes the arenas large enough for `built`. Throws OutOfMemory, with the needed bytes and the
  // plan's largest buffers, if the machine or a device has not that much memory; then the arena of
  // the host is not changed.
  void reserve_arena(const BuiltPlan& built);
  char* arena() const { return arena_.data(); }
  int64_t arena_bytes() const { return arena_.bytes(); }

  // The queue and the arena of a device that a plan uses; made by reserve_arena().
  DeviceContext& device(const Device& device);

  // Stops the active run, if there is one, before its next step. May be called from any thread and
  // from signal handlers.
  void cancel() {
    int running = kRunning;
    state_.compare_exchange_strong(running, kCancelled);
  }
  // Stops every run that takes longer in the same way; 0: no limit.
  void set_time_limit(std::chrono::nanoseconds limit) { time_limit_ = limit; }
  std::chrono::nanoseconds time_limit() const {
    return time_limit_.count() > 0 || outer() == nullptr ? time_limit_ : outer()->time_limit();
  }
  bool has_time_limit() const { return time_limit().count() > 0; }

  // A run is active as long as its outermost ActiveRun exists. So callers can include work that
  // precedes the first step.
  class ActiveRun {
   public:
    // Throws Unsupported if a thread of the parent was in a run when this process was forked.
    explicit ActiveRun(ExecutionContext& context);
    ~ActiveRun();
    ActiveRun(const ActiveRun&) = delete;
    ActiveRun& operator=(const ActiveRun&) = delete;

   private:
    ExecutionContext& context_;
    bool is_outermost_ = false;
  };

  // The runs of this context are part of the active run of `outer`, in whose pool they are, and end
  // with it. Null: they are not. Both pools have as many threads.
  void set_outer(ExecutionContext* outer) { outer_.store(outer, std::memory_order_relaxed); }
  bool is_nested() const { return outer() != nullptr; }

  // Whether the steps of nested graphs are recorded: as the outermost context says.
  void set_recording(bool is_on) { is_recording_ = is_on; }
  bool is_recording() const { return outer() == nullptr ? is_recording_ : outer()->is_recording(); }

  // The state of the active run.
  bool is_running() const {
    const ExecutionContext* const around = outer();
    return state_.load(std::memory_order_relaxed) == kRunning &&
           (around == nullptr || around->is_running());
  }
  bool is_cancelled() const {
    const ExecutionContext* const around = outer();
    return state_.load() == kCancelled || (around != nullptr && around->is_cancelled());
  }
  bool is_past_deadline(std::chrono::steady_clock::time_point now) const {
    return (time_limit_.count() > 0 && now >= deadline_) ||
           (outer() != nullptr && outer()->is_past_deadline(now));
  }
  // A different number for each run.
  uint64_t seed() const { return runs_ - 1; }

 private:
  enum State : int { kIdle, kRunning, kCancelled };

  ExecutionContext* outer() const { return outer_.load(std::memory_order_relaxed); }
  void reserve_device_arenas(const BuiltPlan& built);

  ThreadPool pool_;
  std::optional<ThreadPool> one_;
  Denormals denormals_;
  ArenaMemory arena_;
  std::vector<std::unique_ptr<DeviceContext>> devices_;
  ScratchMemory scratch_;
  uint64_t runs_ = 0;
  bool is_recording_ = false;
  std::chrono::nanoseconds time_limit_{0};
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<int> state_ = kIdle;
  std::atomic<ExecutionContext*> outer_ = nullptr;
  uint32_t used_after_forks_ = fork_count();
};

}  // namespace tessera
