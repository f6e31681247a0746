#include "base/threads/thread_team.h"

#include <algorithm>

#include "base/threads/start_thread.h"
#include "tessera/error.h"

namespace tessera {

void ThreadTeam::start() {
  has_started_ = true;
  try {
    while (std::ssize(threads_) < size_ - 1) {
      threads_.push_back(start_thread([this] { work(); }));
    }
  } catch (const Error&) {
    return;  // the others do the work
  }
}

ThreadTeam::~ThreadTeam() {
  loop_ = nullptr;
  ++rounds_;
  rounds_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Loop::run() {
  while (true) {
    const int64_t begin = next.fetch_add(grain);
    if (begin >= count) return;
    try {
      body(begin, std::min(count, begin + grain));
    } catch (...) {
      if (!has_failed.exchange(true)) failure = std::current_exception();
      next = count;
    }
  }
}

void ThreadTeam::work() {
  const ScopedDenormals kept(denormals_);
  uint32_t seen = 0;
  while (true) {
    rounds_.wait(seen);
    ++seen;  // a round ends only after each thread has seen it
    if (loop_ == nullptr) return;
    loop_->run();
    if (--at_work_ == 0) at_work_.notify_one();
  }
}

void ThreadTeam::parallel_for(int64_t count, int64_t grain, Body body) {
  if (is_busy_.exchange(true)) return body(0, count);
  if (!has_started_) start();
  Loop loop{.body = body, .count = count, .grain = grain};
  loop_ = &loop;
  at_work_ = static_cast<uint32_t>(threads_.size());
  ++rounds_;
  rounds_.notify_all();
  loop.run();
  while (const uint32_t others = at_work_) at_work_.wait(others);
  is_busy_ = false;
  if (loop.failure) std::rethrow_exception(loop.failure);
}

}  // namespace tessera
