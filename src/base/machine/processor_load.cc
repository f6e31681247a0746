#include "base/machine/processor_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <limits>
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

namespace {

using Clock = std::chrono::steady_clock;

// Four lanes exist in every vector instruction set. Enough independent sums hide the latency of
// additions, so the issue rate of the core limits the loop.
using Lanes = float __attribute__((vector_size(16)));
constexpr int kSums = 12;
constexpr int kIterations = 700;
// The minimum of a few repetitions, to ignore interrupts.
constexpr int kRepetitions = 3;

float compute() {
  Lanes sums[kSums] = {};
  const Lanes half = {0.5F, 0.5F, 0.5F, 0.5F};
  const Lanes one = {1, 1, 1, 1};
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (Lanes& sum : sums) sum = sum * half + one;
  }
  Lanes total = {};
  for (const Lanes& sum : sums) total += sum;
  return total[0] + total[1] + total[2] + total[3];
}

}  // namespace

ContentionProbe::Reading ContentionProbe::read(ThreadPool& pool) {
  do {
    recent_[count_++ % kRecent] = run(pool);
  } while (count_ < kRecent);
  const double seconds = recent_seconds();
  best_seconds_ = best_seconds_ == 0 ? seconds : std::min(best_seconds_, seconds);
  const double slowdown = seconds / best_seconds_;
  const auto step = static_cast<size_t>((slowdown - 1) * kBinsPerUnit);
  ++counts_[std::min(step, counts_.size() - 1)];
  return {slowdown, often()};
}

double ContentionProbe::run(ThreadPool& pool) {
  core_seconds_.assign(static_cast<size_t>(pool.threads()), 0);
  pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t end) {
    double fastest = std::numeric_limits<double>::max();
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const Clock::time_point start = Clock::now();
      // volatile keeps the compiler from removing the computation.
      [[maybe_unused]] volatile float result = compute();
      fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
    }
    for (int64_t share = begin; share < end; ++share) {
      core_seconds_[static_cast<size_t>(share)] = fastest;
    }
  });
  return *std::max_element(core_seconds_.begin(), core_seconds_.end());
}

double ContentionProbe::recent_seconds() const {
  std::array<double, kRecent> sorted = recent_;
  const auto quartile = sorted.begin() + kRecent / 4;
  std::nth_element(sorted.begin(), quartile, sorted.end());
  return *quartile;
}

double ContentionProbe::often() const {
  auto beyond = static_cast<int64_t>((count_ - kRecent) / 10);
  size_t step = counts_.size();
  while (step > 1 && beyond >= counts_[step - 1]) beyond -= counts_[--step];
  return 1 + static_cast<double>(step) / kBinsPerUnit;
}

}  // namespace tessera
