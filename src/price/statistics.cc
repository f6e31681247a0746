#include "price/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/errors/check.h"

namespace tessera::tuning {
namespace {

constexpr double kQuantile = 0.25;
// The probability outside of the interval on each side.
constexpr double kTail = 0.025;
// From this number of samples on, both ends of the interval are inside the observed range.
constexpr size_t kEnoughSamples = 9;

// P(exactly `hits` of `count` samples lie below the quantile).
double probability_of(size_t hits, size_t count) {
  double probability = std::pow(1 - kQuantile, static_cast<double>(count));
  for (size_t hit = 0; hit < hits; ++hit) {
    probability *= static_cast<double>(count - hit) / static_cast<double>(hit + 1) * kQuantile /
                   (1 - kQuantile);
  }
  return probability;
}

// The number of samples to exclude below and above.
struct ExcludedSamples {
  size_t below = 0;
  size_t above = 0;
};

ExcludedSamples excluded_samples(size_t count) {
  ExcludedSamples excluded;
  double tail = probability_of(0, count);
  while (tail <= kTail) tail += probability_of(++excluded.below, count);
  // The k-th sample lies below the quantile if at least k samples do.
  tail = probability_of(count, count);
  while (tail <= kTail && excluded.above + 1 < count) {
    ++excluded.above;
    tail += probability_of(count - excluded.above, count);
  }
  if (excluded.above > 0) --excluded.above;
  if (excluded.below > 0) --excluded.below;
  return excluded;
}

}  // namespace

double Timing::half_width() const { return seconds <= 0 ? 0 : (high - low) / 2 / seconds; }

Timing summarise(std::span<const Sample> samples) {
  TESSERA_CHECK(!samples.empty(), "something was measured");
  std::vector<double> sorted;
  std::vector<double> slowdowns;
  for (const Sample& sample : samples) {
    sorted.push_back(sample.seconds);
    slowdowns.push_back(sample.slowdown);
  }
  std::sort(sorted.begin(), sorted.end());
  std::sort(slowdowns.begin(), slowdowns.end());
  const size_t count = sorted.size();
  Timing timing;
  timing.rounds = static_cast<int>(count);
  timing.seconds = sorted[(count - 1) / 4];
  const ExcludedSamples excluded = excluded_samples(count);
  timing.low = sorted[std::min(excluded.below, (count - 1) / 4)];
  timing.high = sorted[std::max(count - 1 - excluded.above, (count - 1) / 4)];
  const double slowdown = slowdowns[(count - 1) / 4];
  const double often = samples.back().slowdown_p90;
  double beyond = kProcessVariation;
  if (count < kEnoughSamples) beyond += 0.3 / static_cast<double>(count * count);
  timing.low = timing.low / slowdown - beyond * timing.seconds - kClockSeconds;
  timing.low = std::clamp(timing.low, 0.0, timing.seconds);
  timing.high *= std::max(1.0, often / slowdown);
  timing.high += beyond * timing.seconds + kClockSeconds;
  return timing;
}

Timing summarise(std::span<const double> seconds) {
  std::vector<Sample> samples;
  for (const double one : seconds) samples.push_back({.seconds = one});
  return summarise(samples);
}

}  // namespace tessera::tuning
