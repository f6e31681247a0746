#include "resample.h"

#include <algorithm>
#include <cmath>

namespace tessera::native {

namespace {

// Where output coordinate `place` lies in the input.
float position_of(Coordinates coordinates, const ResampleAxis& axis, int64_t place) {
  const auto x = static_cast<float>(place);
  const auto input = static_cast<float>(axis.input);
  const auto output = static_cast<float>(axis.output);
  const float half_pixel = (x + 0.5F) / axis.scale - 0.5F;
  switch (coordinates) {
    case Coordinates::HalfPixel:
      return half_pixel;
    case Coordinates::HalfPixelSymmetric: {
      const float adjustment = output / (axis.scale * input);
      return input / 2 * (1 - adjustment) + (x + 0.5F) / axis.scale - 0.5F;
    }
    case Coordinates::PytorchHalfPixel:
      return axis.output > 1 ? half_pixel : 0;
    case Coordinates::AlignCorners:
      return axis.output > 1 ? x * (input - 1) / (output - 1) : 0;
    case Coordinates::Asymmetric:
      return x / axis.scale;
    case Coordinates::TfHalfPixelForNn:
      return (x + 0.5F) / axis.scale;
    case Coordinates::TfCropAndResize:
      break;
  }
  if (axis.output == 1) return 0.5F * (axis.crop_start + axis.crop_end) * (input - 1);
  return axis.crop_start * (input - 1) +
         x * (axis.crop_end - axis.crop_start) * (input - 1) / (output - 1);
}

bool is_extrapolated(const ResampleOptions& options, const ResampleAxis& axis, float position) {
  // Written so that a NaN is outside.
  return options.coordinates == Coordinates::TfCropAndResize &&
         !(position >= 0 && position <= static_cast<float>(axis.input - 1));
}

// A position that fits an integer: two beyond the edge is as good as any further.
float bounded(const ResampleAxis& axis, float position) {
  if (std::isnan(position)) return 0;
  return std::clamp(position, -2.0F, static_cast<float>(axis.input) + 1);
}

float rounded(const ResampleOptions& options, const ResampleAxis& axis, float position) {
  const float down = std::floor(position);
  switch (options.rounding) {
    case Rounding::PreferFloor:
      return position == down + 0.5F ? down : std::round(position);
    case Rounding::PreferCeil:
      return std::floor(position + 0.5F);
    case Rounding::Floor:
      return down;
    case Rounding::Ceil:
      return std::ceil(position);
    case Rounding::Legacy:
      return axis.scale < 1 ? std::ceil(position) : down;
  }
  return down;
}

// The weight of an element at distance `t` from the position, in units of the filter.
double filter_weight(const ResampleOptions& options, double t) {
  t = std::abs(t);
  if (options.interpolation == Interpolation::Linear) return std::max(0.0, 1 - t);
  // Keys, "Cubic convolution interpolation for digital image processing", 1981.
  const double a = options.cubic_coefficient;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

}  // namespace

bool is_unchanged(const ResampleOptions& options, const ResampleAxis& axis) {
  return axis.input == axis.output && axis.scale == 1 &&
         options.coordinates != Coordinates::TfCropAndResize;
}

SourceTable nearest_table(const ResampleOptions& options, const ResampleAxis& axis) {
  if (is_unchanged(options, axis)) return identity_table(axis.output);
  SourceTable table;
  for (int64_t place = 0; place < axis.output; ++place) {
    const float exact = position_of(options.coordinates, axis, place);
    if (is_extrapolated(options, axis, exact)) {
      table.push_back(kFilled);
      continue;
    }
    const float chosen = rounded(options, axis, bounded(axis, exact));
    table.push_back(std::clamp<int64_t>(static_cast<int64_t>(chosen), 0, axis.input - 1));
  }
  return table;
}

Taps taps_of(const ResampleOptions& options, const ResampleAxis& axis) {
  const bool is_widened = options.is_antialiased && axis.scale < 1;
  const double stretch = is_widened ? double{axis.scale} : 1.0;
  const double reach = options.interpolation == Interpolation::Linear ? 1 : 2;
  const auto half = static_cast<int64_t>(std::ceil(reach / stretch));
  Taps taps;
  taps.count = 2 * half;
  std::vector<double> weights(static_cast<size_t>(taps.count));
  for (int64_t place = 0; place < axis.output; ++place) {
    const float exact = position_of(options.coordinates, axis, place);
    const float position = bounded(axis, exact);
    const int64_t first = static_cast<int64_t>(std::floor(position)) - half + 1;
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const int64_t source = first + tap;
      const bool is_inside = source >= 0 && source < axis.input;
      double& weight = weights[static_cast<size_t>(tap)];
      weight = filter_weight(options, (static_cast<double>(source) - double{position}) * stretch);
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
