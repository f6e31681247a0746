#include "resize/resample.h"

#include <algorithm>
#include <cmath>

namespace tessera::native {

using plugin::ResizeAxis;
using plugin::ResizeCoordinates;

namespace {

bool is_extrapolated(const ResampleOptions& options, const ResizeAxis& axis, double position) {
  // Written so that NaN counts as outside.
  return options.coordinates == ResizeCoordinates::TfCropAndResize &&
         !(position >= 0 && position <= static_cast<double>(axis.input - 1));
}

// The weight of an element at distance `t` from the source position, in units of the filter.
double filter_weight(const ResampleOptions& options, double t) {
  t = std::abs(t);
  if (options.interpolation == Interpolation::Linear) return std::max(0.0, 1 - t);
  // Keys, "Cubic convolution interpolation for digital image processing", 1981.
  const double a = options.cubic_coefficient;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

}  // namespace

bool is_unchanged(const ResampleOptions& options, const ResizeAxis& axis) {
  return axis.input == axis.output && axis.scale() == 1 &&
         options.coordinates != ResizeCoordinates::TfCropAndResize;
}

SourceTable nearest_table(const ResampleOptions& options, const ResizeAxis& axis) {
  if (is_unchanged(options, axis)) return identity_table(axis.output);
  SourceTable table;
  for (int64_t index = 0; index < axis.output; ++index) {
    const double exact = plugin::source_position(options.coordinates, axis, index);
    if (is_extrapolated(options, axis, exact)) {
      table.push_back(kFill);
      continue;
    }
    table.push_back(plugin::nearest_source(options.rounding, axis, exact));
  }
  return table;
}

Taps taps_of(const ResampleOptions& options, const ResizeAxis& axis) {
  const bool is_widened = options.is_antialiased && axis.scale() < 1;
  const double stretch = is_widened ? axis.scale() : 1.0;
  const double reach = options.interpolation == Interpolation::Linear ? 1 : 2;
  const auto half = static_cast<int64_t>(std::ceil(reach / stretch));
  Taps taps;
  taps.count = 2 * half;
  std::vector<double> weights(static_cast<size_t>(taps.count));
  for (int64_t index = 0; index < axis.output; ++index) {
    const double exact = plugin::source_position(options.coordinates, axis, index);
    const double position = plugin::bounded_position(axis, exact);
    const int64_t first = static_cast<int64_t>(std::floor(position)) - half + 1;
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const int64_t source = first + tap;
      const bool is_inside = source >= 0 && source < axis.input;
      double& weight = weights[static_cast<size_t>(tap)];
      weight = filter_weight(options, (static_cast<double>(source) - position) * stretch);
      if (options.is_outside_excluded && !is_inside) weight = 0;
      sum += weight;
      taps.sources.push_back(static_cast<int32_t>(std::clamp<int64_t>(source, 0, axis.input - 1)));
    }
    const bool is_scaled = (is_widened || options.is_outside_excluded) && sum != 0;
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<float>(is_scaled ? weight / sum : weight));
    }
    taps.is_outside.push_back(is_extrapolated(options, axis, exact) ? 1 : 0);
  }
  return taps;
}

}  // namespace tessera::native
