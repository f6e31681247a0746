// How much other processes use the processors that this one may run on.
#pragma once

#include <chrono>

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

}  // namespace tessera
