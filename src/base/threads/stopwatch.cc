#include "base/threads/stopwatch.h"

#include <sys/resource.h>

#include <ctime>

namespace tessera {
namespace {

int64_t involuntary_switches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

int64_t waits_of_thread() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Stopwatch::Stopwatch()
    : switches_(involuntary_switches()),
      waits_(waits_of_thread()),
      thread_start_(thread_seconds()),
      start_(std::chrono::steady_clock::now()) {}

Stopwatch::Reading Stopwatch::read() const {
  const auto end = std::chrono::steady_clock::now();
  Reading reading;
  reading.seconds = std::chrono::duration<double>(end - start_).count();
  reading.thread_seconds = thread_seconds() - thread_start_;
  reading.was_preempted = involuntary_switches() != switches_;
  reading.has_blocked = waits_of_thread() != waits_;
  return reading;
}

}  // namespace tessera
