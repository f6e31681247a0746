// The project's only thread pool. parallel_tbb.cc implements it on oneTBB; parallel_std.cc on
// std::thread for ThreadSanitizer, which does not understand oneTBB.
#pragma once

#include <cstdint>
#include <memory>

#include "base/threads/denormals.h"
#include "base/threads/function_ref.h"

namespace tessera {

// A fixed number of threads that run loops. The calling thread takes part, so a pool of one thread
// runs everything in the caller. From outside, one loop at a time may be started; loops may be
// nested.
class ThreadPool {
 public:
  // `threads` = 0 means one per core that this process may use. Throws InvalidArgument if it is
  // negative. `denormals` is the rule within execute() and on all threads of its loops.
  explicit ThreadPool(int threads = 0, Denormals denormals = Denormals::Keep);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs `body` so that libraries on the same thread runtime use this pool's threads, and waits for
  // it. parallel_for() costs less inside than outside.
  void execute(FunctionRef<void()> body);

  // Calls body(begin, end) on disjoint ranges that cover [0, count), in any order. A range has
  // about `grain` indices or more (at least half of it, except the last range). The first exception
  // of a body ends the loop and is rethrown.
  void parallel_for(int64_t count, int64_t grain,
                    FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
