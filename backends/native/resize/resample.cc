#include "resize/resample.h"

#include <algorithm>
#include <cmath>

#include "copy/table_copy.h"

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

bool is_widened(const ResampleOptions& options, const ResizeAxis& axis) {
  return options.is_antialiased && axis.scale() < 1;
}

double stretch_of(const ResampleOptions& options, const ResizeAxis& axis) {
  return is_widened(options, axis) ? axis.scale() : 1.0;
}

// The filter around the source of one output.
struct FilterAt {
  double position = 0;
  double stretch = 1;
  int64_t first = 0;  // input of the first tap

  // Of the input `source`, which may be outside of the axis.
  double weight(const ResampleOptions& options, const ResizeAxis& axis, int64_t source) const {
    const bool is_inside = source >= 0 && source < axis.input;
    if (options.is_outside_excluded && !is_inside) return 0;
    return filter_weight(options, (static_cast<double>(source) - position) * stretch);
  }
};

// Writes the taps of one output.
void write_output(const ResampleOptions& options, const ResizeAxis& axis, const FilterAt& filter,
                  int64_t output, int64_t line, const Taps& taps) {
  const bool is_scaled = is_widened(options, axis) || options.is_outside_excluded;
  double sum = 0;
  for (int64_t tap = 0; is_scaled && tap < taps.count; ++tap) {
    sum += filter.weight(options, axis, filter.first + tap);
  }
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    const double weight = filter.weight(options, axis, filter.first + tap);
    const auto number = static_cast<float>(sum != 0 ? weight / sum : weight);
    const auto source =
        static_cast<int32_t>(std::clamp<int64_t>(filter.first + tap, 0, axis.input - 1));
    if (line == 0) {
      taps.sources[output * taps.count + tap] = source;
      taps.weights[output * taps.count + tap] = number;
      continue;
    }
    const int64_t entry = (tap * axis.output + output) * line;
    for (int64_t index = 0; index < line; ++index) {
      taps.sources[entry + index] =
          source * static_cast<int32_t>(line) + static_cast<int32_t>(index);
      taps.weights[entry + index] = number;
    }
  }
}

}  // namespace

bool is_unchanged(const ResampleOptions& options, const ResizeAxis& axis) {
  return axis.input == axis.output && axis.scale() == 1 &&
         options.coordinates != ResizeCoordinates::TfCropAndResize;
}

void write_nearest(const ResampleOptions& options, const ResizeAxis& axis,
                   std::span<int64_t> table) {
  for (size_t index = 0; index < table.size(); ++index) {
    const double exact =
        plugin::source_position(options.coordinates, axis, static_cast<int64_t>(index));
    table[index] = is_extrapolated(options, axis, exact)
                       ? kFill
                       : plugin::nearest_source(options.rounding, axis, exact);
  }
}

int64_t tap_count(const ResampleOptions& options, const ResizeAxis& axis) {
  const double reach = options.interpolation == Interpolation::Linear ? 1 : 2;
  return 2 * static_cast<int64_t>(std::ceil(reach / stretch_of(options, axis)));
}

void write_taps(const ResampleOptions& options, const ResizeAxis& axis, int64_t line,
                const Taps& taps) {
  FilterAt filter = {.stretch = stretch_of(options, axis)};
  const int64_t elements = std::max<int64_t>(line, 1);
  for (int64_t output = 0; output < axis.output; ++output) {
    const double exact = plugin::source_position(options.coordinates, axis, output);
    filter.position = plugin::bounded_position(axis, exact);
    filter.first = static_cast<int64_t>(std::floor(filter.position)) - taps.count / 2 + 1;
    write_output(options, axis, filter, output, line, taps);
    const uint8_t is_outside = is_extrapolated(options, axis, exact) ? 1 : 0;
    std::fill_n(taps.is_outside + output * elements, elements, is_outside);
  }
}

}  // namespace tessera::native
