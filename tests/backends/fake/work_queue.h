// A queue of a fake device: a thread that executes operations in the order in which they were
// enqueued. fake_device.h decides what is enqueued.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "happens_before.h"
#include "tessera/backend.h"

namespace tessera::fake {

// One record_event(): complete when its queue has executed what was enqueued before.
class Recording {
 public:
  using Clock = std::chrono::steady_clock;

  // The operations that are ordered before this one; set before it is enqueued.
  VectorClock clock;
  Epoch epoch;

  void finish(const std::optional<plugin::Failure>& failure);
  // Waits until it is complete. Returns the failure of an earlier operation of its queue.
  std::optional<plugin::Failure> wait();
  // After wait().
  Clock::time_point time() const { return time_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::optional<plugin::Failure> failure_;
  Clock::time_point time_;
};

struct Operation {
  std::function<void()> body = {};              // may throw
  std::shared_ptr<Recording> waits_for = {};    // before the body
  std::shared_ptr<Recording> completes = {};    // after it, also after a failure
  std::optional<plugin::Failure> failure = {};  // it fails with this instead
  bool loses_device = false;                    // if it fails so
  std::mutex* alone = nullptr;                  // locked while the body runs
  std::chrono::nanoseconds delay{0};            // before it begins
  std::chrono::nanoseconds duration{0};         // of the body, at least
};

// Once an operation has failed, the queue executes no further ones; they complete without effect.
class WorkQueue {
 public:
  // `is_lost` is a flag of the device, which outlives the queue.
  explicit WorkQueue(std::atomic<bool>& is_lost);
  // Waits for all operations.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(Operation operation);
  // Waits until all pushed operations are executed. Returns the failure of an operation.
  std::optional<plugin::Failure> drain();
  std::optional<plugin::Failure> failure() const;

 private:
  void run();
  void execute(const Operation& operation);
  void fail(const plugin::Failure& failure);

  std::atomic<bool>& is_lost_;
  mutable std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_executed_;
  std::deque<Operation> operations_;
  uint64_t pushed_ = 0;
  uint64_t executed_ = 0;
  bool is_closing_ = false;
  std::optional<plugin::Failure> failure_;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace tessera::fake
