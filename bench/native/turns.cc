#include "turns.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace tessera::bench {
namespace {

double seconds_now(int threads) {
  if (threads == 1) {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

void Contender::take_turn() {
  run();
  const double start = seconds_now(threads);
  for (int number = 0; number < repeats; ++number) run();
  seconds.push_back((seconds_now(threads) - start) / repeats);
}

void Contender::set_repeats() {
  constexpr double kTurnSeconds = 2e-3;
  run();
  const double start = seconds_now(threads);
  run();
  const double once = std::max(seconds_now(threads) - start, 1e-7);
  repeats = std::clamp(static_cast<int>(kTurnSeconds / once), 1, 10000);
}

double Contender::quantile(double part) const {
  std::vector<double> sorted = seconds;
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(sorted.size() - 1) + 0.5);
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return sorted[static_cast<size_t>(at)];
}

void take_turns(std::vector<Contender>& contenders, ThreadPool& pool, int rounds) {
  pool.execute([&] {
    for (Contender& contender : contenders) contender.set_repeats();
    for (int round = 0; round < rounds; ++round) {
      for (Contender& contender : contenders) contender.take_turn();
    }
  });
}

std::vector<double> medians_in_turns(std::vector<Contender>& contenders, ThreadPool& pool,
                                     int rounds) {
  take_turns(contenders, pool, rounds);
  std::vector<double> medians;
  for (const Contender& contender : contenders) medians.push_back(contender.quantile(0.5));
  return medians;
}

}  // namespace tessera::bench
