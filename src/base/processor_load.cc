#include "base/processor_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace tessera {
namespace {

double seconds_of(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of_process(int process) {
  clockid_t clock = {};
  return process < 0 || clock_getcpuclockid(process, &clock) != 0 ? 0 : seconds_of(clock);
}

// The ticks of a line of /proc/stat in which the processor did not idle: user, nice, system, (idle,
// waiting for disks,) interrupts of two kinds, and the time that other machines took.
double busy_ticks(std::istringstream& line) {
  double ticks = 0;
  double of_kind = 0;
  for (int kind = 0; kind < 8 && line >> of_kind; ++kind) {
    const bool is_idle = kind == 3 || kind == 4;
    if (!is_idle) ticks += of_kind;
  }
  return ticks;
}

}  // namespace

ProcessorLoad read_processor_load(int helper) {
  ProcessorLoad load{.time = std::chrono::steady_clock::now()};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return load;
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file("/proc/stat");
  std::string text;
  while (std::getline(file, text) && text.starts_with("cpu")) {
    std::istringstream line(text.substr(3));
    int number = 0;
    // The first line is the sum of all.
    if (text[3] == ' ' || !(line >> number) || number >= CPU_SETSIZE) continue;
    if (!CPU_ISSET(number, &allowed)) continue;
    ++load.processors;
    load.busy_seconds += busy_ticks(line) / ticks_per_second;
  }
  load.own_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + seconds_of_process(helper);
  return load;
}

double processors_of_others(const ProcessorLoad& from, const ProcessorLoad& to) {
  const double seconds = std::chrono::duration<double>(to.time - from.time).count();
  if (from.processors == 0 || to.processors == 0 || seconds <= 0) return 0;
  const double busy = to.busy_seconds - from.busy_seconds;
  const double own = to.own_seconds - from.own_seconds;
  return std::max(0.0, busy - own) / seconds;
}

}  // namespace tessera
