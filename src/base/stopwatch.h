// A clock that notices when somebody else had the processor.
#pragma once

#include <chrono>
#include <cstdint>

namespace tessera {

// Runs from its making on. On one thread.
class Stopwatch {
 public:
  Stopwatch();

  struct Reading {
    double seconds = 0;         // that passed
    double thread_seconds = 0;  // for which the calling thread had a processor
    // Whether the system took a processor from a thread of this process meanwhile.
    bool is_disturbed = false;
    // Whether the calling thread waited for something: a device, another thread, the clock.
    bool has_waited = false;
  };
  Reading read() const;

 private:
  int64_t switches_;
  int64_t waits_;
  double thread_start_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tessera
