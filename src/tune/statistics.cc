#include "tune/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tessera::tuning {
namespace {

constexpr double kConfidence = 0.95;
// From here on a 95 % interval of the median exists.
constexpr size_t kEnoughSamples = 6;

// How many samples to leave out at each end: the most for which at least kConfidence remains.
size_t samples_outside(size_t count) {
  // P(fewer than `outside` of `count` fair coins) on each side.
  double probability = std::pow(0.5, static_cast<double>(count));
  double tail = 0;
  size_t outside = 0;
  while (2 * (tail + probability) <= 1 - kConfidence && 2 * (outside + 1) < count) {
    tail += probability;
    probability *= static_cast<double>(count - outside) / static_cast<double>(outside + 1);
    ++outside;
  }
  return outside == 0 ? 0 : outside - 1;
}

}  // namespace

double Timing::half_width() const { return seconds <= 0 ? 0 : (high - low) / 2 / seconds; }

Timing summarise(std::span<const double> samples) {
  TESSERA_CHECK(!samples.empty(), "something was measured");
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t count = sorted.size();
  Timing timing;
  timing.rounds = static_cast<int>(count);
  timing.seconds =
      count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
  const size_t outside = samples_outside(count);
  timing.low = sorted[outside];
  timing.high = sorted[count - 1 - outside];
  double beyond = kProcessVariation;
  if (count < kEnoughSamples) beyond += 0.3 / static_cast<double>(count);
  timing.low = std::max(0.0, timing.low - beyond * timing.seconds - kClockSeconds);
  timing.high += beyond * timing.seconds + kClockSeconds;
  return timing;
}

}  // namespace tessera::tuning
