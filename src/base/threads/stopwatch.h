// A clock that notices when another thread had the processor.
#pragma once

#include <chrono>
#include <cstdint>

namespace tessera {

// Starts at construction. For one thread.
class Stopwatch {
 public:
  Stopwatch();

  struct Reading {
    double seconds = 0;         // elapsed time
    double thread_seconds = 0;  // time for which the calling thread had a processor
    // Whether the system preempted a thread of this process meanwhile.
    bool was_preempted = false;
    // Whether the calling thread waited for a device, another thread or the clock.
    bool has_blocked = false;
  };
  Reading read() const;

 private:
  int64_t switches_;
  int64_t waits_;
  double thread_start_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tessera
