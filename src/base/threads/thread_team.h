// Threads of the library itself, on which ThreadPool runs loops in a forked process: oneTBB does
// not start its threads again there.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "base/threads/denormals.h"
#include "base/threads/function_ref.h"

namespace tessera {

// The calling thread takes part in each loop. A loop within a loop, or beside one, runs on the
// calling thread alone.
class ThreadTeam {
 public:
  // `threads` includes the caller. The others are started by the first loop: fewer if the system
  // starts no more.
  ThreadTeam(int threads, Denormals denormals) : size_(threads), denormals_(denormals) {}
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // ThreadPool::parallel_for() for `count` > `grain` >= 1.
  void parallel_for(int64_t count, int64_t grain,
                    FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  using Body = FunctionRef<void(int64_t begin, int64_t end)>;
  struct Loop {
    Body body;
    int64_t count = 0;
    int64_t grain = 1;
    std::atomic<int64_t> next = 0;
    std::atomic<bool> has_failed = false;
    std::exception_ptr failure = nullptr;

    void run();
  };
  void start();
  void work();

  int size_;
  bool has_started_ = false;
  Denormals denormals_;
  std::atomic<bool> is_busy_ = false;
  std::atomic<uint32_t> rounds_ = 0;   // loops that began; changes also at the end
  std::atomic<uint32_t> at_work_ = 0;  // threads that have not ended the present loop
  Loop* loop_ = nullptr;               // null at the end
  std::vector<std::thread> threads_;
};

}  // namespace tessera
