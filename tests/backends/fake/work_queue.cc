#include "work_queue.h"

#include <exception>
#include <new>
#include <utility>

namespace tessera::fake {
namespace {

using plugin::Failure;
using Clock = std::chrono::steady_clock;

// Sleeping ends late by some 50 microseconds, so the rest is spent awake.
void wait_until(Clock::time_point end) {
  constexpr std::chrono::microseconds kInaccuracy{100};
  if (end - Clock::now() > kInaccuracy) std::this_thread::sleep_until(end - kInaccuracy);
  while (Clock::now() < end) {
  }
}

}  // namespace

void Recording::finish(const std::optional<Failure>& failure) {
  const std::scoped_lock lock(mutex_);
  is_done_ = true;
  failure_ = failure;
  time_ = Clock::now();
  changed_.notify_all();
}

std::optional<Failure> Recording::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_done_; });
  return failure_;
}

WorkQueue::WorkQueue(std::atomic<bool>& is_lost) : is_lost_(is_lost), thread_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
  const std::scoped_lock lock(mutex_);
  is_closing_ = true;
  has_work_.notify_all();
}

void WorkQueue::push(Operation operation) {
  const std::scoped_lock lock(mutex_);
  operations_.push_back(std::move(operation));
  ++pushed_;
  has_work_.notify_one();
}

std::optional<Failure> WorkQueue::drain() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = pushed_;
  has_executed_.wait(lock, [&] { return executed_ >= wanted; });
  return failure_;
}

std::optional<Failure> WorkQueue::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void WorkQueue::fail(const Failure& failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = failure;
}

void WorkQueue::run() {
  while (true) {
    Operation next;
    {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [&] { return is_closing_ || !operations_.empty(); });
      if (operations_.empty()) return;
      next = std::move(operations_.front());
      operations_.pop_front();
    }
    execute(next);
    next.body = {};  // releases memory and kernels before anybody knows that it is done
    if (next.completes) next.completes->finish(failure());
    const std::scoped_lock lock(mutex_);
    ++executed_;
    has_executed_.notify_all();
  }
}

void WorkQueue::execute(const Operation& operation) {
  if (is_lost_) fail({TESSERA_DEVICE_FAILED, "the device is lost"});
  if (failure()) return;
  if (operation.delay.count() > 0) std::this_thread::sleep_for(operation.delay);
  if (operation.waits_for) {
    if (const std::optional<Failure> failed = operation.waits_for->wait()) {
      return fail(
          {failed->kind(), std::string("it waited for work that failed: ") + failed->what()});
    }
  }
  if (operation.failure) {
    if (operation.loses_device) is_lost_ = true;
    return fail(*operation.failure);
  }
  if (!operation.body) return;
  const Clock::time_point end = Clock::now() + operation.duration;
  try {
    std::unique_lock<std::mutex> alone;
    if (operation.alone != nullptr) alone = std::unique_lock(*operation.alone);
    operation.body();
  } catch (const Failure& failure) {
    fail(failure);
  } catch (const std::bad_alloc&) {
    fail({TESSERA_OUT_OF_MEMORY, "no memory left for an operation"});
  } catch (const std::exception& exception) {
    fail({TESSERA_INTERNAL, exception.what()});
  }
  if (operation.duration.count() > 0) wait_until(end);
}

}  // namespace tessera::fake
