// The one way to use more than one thread. parallel_tbb.cc implements it on oneTBB; parallel_std.cc
// on std::thread, for ThreadSanitizer, which does not understand oneTBB.
#pragma once

#include <cstdint>
#include <memory>

#include "base/denormals.h"
#include "base/function_ref.h"

namespace tessera {

// A fixed number of threads that run loops. The calling thread takes part, so a pool of one thread
// runs everything in place. One loop at a time may be started from outside; loops may be nested.
class ThreadPool {
 public:
  // `threads` = 0 means one for each core that this process may use. Throws InvalidArgument where
  // it is negative. `denormals` is the rule within execute() and on all threads of its loops.
  explicit ThreadPool(int threads = 0, Denormals denormals = Denormals::Keep);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs `body` with this pool's threads as the ones that libraries on the same thread runtime use,
  // and waits for it. parallel_for() inside costs less than from outside.
  void execute(FunctionRef<void()> body);

  // Calls body(begin, end) on ranges that together cover [0, count) once each, in any order, in
  // pieces of about `grain` indices (half of it at least, but for the last) or more. The first
  // exception of a body ends the loop and is thrown.
  void parallel_for(int64_t count, int64_t grain,
                    FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
