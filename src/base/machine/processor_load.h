// How much other processes use the processors that this one may run on, and whether some of these
// cores are slow or shared.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/threads/parallel.h"

namespace tessera {

// A reading of the system's clocks. The system counts in steps of about 10 ms, so readings should
// be at least 50 ms apart.
struct ProcessorLoad {
  std::chrono::steady_clock::time_point time;
  int processors = 0;       // on which this process may run; 0: the system does not tell
  double busy_seconds = 0;  // of them together, also for others than the system's own processes
  double own_seconds = 0;   // of this process and of `helper`
};

// `helper`: a process that works for this one, or -1.
ProcessorLoad read_processor_load(int helper = -1);

// How many processors others used on average between two readings; 0 if the system does not tell.
double processors_of_others(const ProcessorLoad& from, const ProcessorLoad& to);

// Detects slow or shared cores among those on which this process computes, by a short computation
// that keeps a core's arithmetic units busy. It takes longer while another thread shares the core
// (simultaneous multithreading, on rented machines often by another tenant) or while the core's
// clock is slow; the system reports neither. Disturbances of milliseconds affect every round alike
// and show in its own spread. This class reports longer ones: the lower quartile of the recent
// readings. For one thread at a time.
class ContentionProbe {
 public:
  struct Reading {
    // The slowdown of the slowest core, relative to the best reading so far.
    double slowdown = 1;
    // The slowdown that one reading in ten exceeds.
    double often = 1;
  };

  // Call it inside ThreadPool::execute(). Takes about 10 us, the first time 300 us.
  Reading read(ThreadPool& pool);

 private:
  static constexpr size_t kRecent = 32;     // readings
  static constexpr int kBinsPerUnit = 100;  // bins of counts_ per unit of slowdown
  // The time that the computation takes on the slowest core, in seconds.
  double run(ThreadPool& pool);
  double recent_seconds() const;
  double often() const;

  std::vector<double> core_seconds_;         // by share of the work, one per thread
  std::array<double, kRecent> recent_ = {};  // ring buffer of the last readings
  double best_seconds_ = 0;                  // minimum of recent_seconds()
  // Histogram of slowdowns from 1 on; the last bin holds all larger ones.
  std::array<int64_t, 3 * kBinsPerUnit> counts_ = {};
  size_t count_ = 0;
};

}  // namespace tessera
